"""What descriptions say, by rules of thumb about words: two promises in one sentence, two tools alike.

It reads English sentences for verbs and words of any script for likeness. It is never sure, so it only advises.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

_CHANGES = (
    "create", "update", "delete", "remove", "send", "cancel", "refund", "approve", "archive",
    "move", "rename", "close", "post", "pay", "charge", "ship", "publish", "notify", "email",
    "write", "insert", "add", "set", "reset", "revoke", "grant", "transfer", "book", "order",
    "void", "reopen", "open", "merge", "reject", "assign", "start", "stop", "restart", "deploy",
    "replace", "schedule", "issue", "credit", "debit", "disable", "enable", "block", "unblock",
    "lock", "unlock", "mark", "reserve", "release", "buy", "sell", "submit", "upload", "subscribe",
    "unsubscribe", "register", "invite", "withdraw", "deposit", "refuse", "accept", "confirm", "attach", "detach",
    "copy", "restore", "purge", "wipe", "drop", "clear", "import", "sync", "trigger", "launch", "invoice", "bill",
)  # fmt: skip
_DOUBLED = {"cancel", "ship", "set", "reset", "transfer", "stop", "debit", "submit", "drop"}


def _forms(verb: str) -> Iterator[tuple[str, str]]:
    if verb.endswith(("sh", "ch", "x", "s")):
        yield f"{verb}es", "s"
    elif verb.endswith("y") and verb[-2] not in "aeiou":
        yield f"{verb[:-1]}ies", "s"
    else:
        yield f"{verb}s", "s"
    yield verb, ""
    yield (verb[:-1] if verb.endswith("e") else verb) + "ing", "ing"
    if verb in _DOUBLED:
        yield f"{verb}{verb[-1]}ing", "ing"


# Each form with its verb and its ending: two verbs of one sentence's subject have the same one.
_VERBS = {form: (verb, ending) for verb in _CHANGES for form, ending in _forms(verb)}
_LEAD = frozenset({"this", "the", "it", "tool", "function", "will", "can", "to", "please", "we", "you", "let", "lets",
                   "use", "used", "for", "by", "a", "call", "first"})  # fmt: skip
_TOKEN = re.compile(r"[\w'-]+|[,;&]")
_SENTENCE_END = re.compile(r"[.!?:](?:\s|$)|\n")
_JOINS = frozenset({"and", "then", "&", ",", ";", "plus"})
_ADVERBS = frozenset({"also", "then", "and", "afterwards", "finally", "subsequently"})
# What follows a noun, and never a verb that has an object.
_AFTER_NOUNS = frozenset(
    {"of", "for", "is", "are", "and", "or", ",", ";", "&", "in", "on", "by", "with", "from"}
)


def two_changes(text: str) -> str | None:
    """The words from the first verb to the second, where one sentence promises two changes."""
    for sentence in _SENTENCE_END.split(text):
        tokens = list(_TOKEN.finditer(sentence))
        words = [token[0].lower() for token in tokens]
        first = _opening(words)
        if first is None:
            continue
        second = _joined(words, first)
        if second is not None:
            return sentence[tokens[first].start() : tokens[second].end()]
    return None


def _opening(words: list[str]) -> int | None:
    """The place of the verb that the sentence opens with."""
    for index, word in enumerate(words):
        if word in _VERBS:
            return index
        if word not in _LEAD and not word.endswith("ly"):
            return None
    return None


def _joined(words: list[str], first: int) -> int | None:
    """The place of another verb of the same form, which a conjunction joins to the first."""
    verb, ending = _VERBS[words[first]]
    for index in range(first + 2, len(words)):
        found, form = _VERBS.get(words[index], ("", ""))
        if not found or found == verb or form != ending:
            continue
        before = index - 1
        while before > first and (words[before] in _ADVERBS or words[before].endswith("ly")):
            if words[before] in _JOINS:
                break
            before -= 1
        if words[before] not in _JOINS:
            continue
        follows = words[index + 1] if index + 1 < len(words) else None
        # "creates and sends it": both verbs have one object; "adds a book and posts": the second is a noun.
        if before == first + 1 or (follows is not None and follows not in _AFTER_NOUNS):
            return index
    return None


_WORD = re.compile(r"\w+")
_ENDING = re.compile(r"(?<=...)(es|s|e)$")
_COMMON = frozenset({"a", "an", "and", "as", "by", "for", "from", "in", "is", "it", "its", "of", "on", "one",
                     "or", "return", "returns", "that", "the", "this", "to", "with"})  # fmt: skip
_ALIKE = 0.8
_FEWEST_WORDS = 3
_MOST_COMPARED = 500


def words_of(description: str) -> frozenset[str]:
    """The words of a description's first paragraph that tell it from others."""
    text = description.split("\n\n")[0].lower()
    return frozenset(_ENDING.sub("", word) for word in _WORD.findall(text) if word not in _COMMON)


def alike(descriptions: list[str]) -> list[tuple[int, list[int]]]:
    """Families of descriptions that share nearly all their words: the first of each, and the others.

    One is of the family of the first that it is alike to. One of few words is alike only to the first that has
    the same ones. Two sets that share four fifths of their words share one of the rarest words of each, so only
    those that have such a word in common are compared, and of those no more than a number.
    """
    bags = [words_of(description) for description in descriptions]
    common = Counter(word for bag in bags for word in bag)
    by_rare_word: dict[str, list[int]] = {}
    few: dict[frozenset[str], int] = {}
    family: dict[int, int] = {}
    for index, bag in enumerate(bags):
        if len(bag) < _FEWEST_WORDS:
            first = few.setdefault(bag, index) if bag else index
            if first != index:
                family[index] = first
            continue
        kept = len(bag) - math.ceil(_ALIKE * len(bag)) + 1
        rarest = sorted(bag, key=lambda word: (common[word], word))[:kept]
        other = next(
            (other for other in _candidates(rarest, by_rare_word) if _is_alike(bag, bags[other])), None
        )
        if other is not None:
            family[index] = family.get(other, other)
        for word in rarest:
            by_rare_word.setdefault(word, []).append(index)
    families: dict[int, list[int]] = {}
    for index, first in family.items():
        families.setdefault(first, []).append(index)
    return sorted(families.items())


def _candidates(rarest: list[str], by_rare_word: dict[str, list[int]]) -> Iterator[int]:
    for word in rarest:
        yield from by_rare_word.get(word, [])[:_MOST_COMPARED]


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) / len(one | other) >= _ALIKE
