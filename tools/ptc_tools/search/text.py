"""How text becomes terms: words and identifiers are split, folded and lightly stemmed, the same for tools and queries.

`terms_of` is told one chunk of text and gives its terms; `Query` reads what somebody asks. Nothing here knows a
catalog, and what a word means is never looked up: two words are the same term only if they are written alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_QUERY = 4_096
"""Characters of a query that are read; a longer one is cut. A model that pastes a document asks by its start."""
MAX_QUERY_WORDS = 64
LONGEST_WORD = 80
LONGEST_CHUNK = 200
"""Letters of an identifier that are read; what is told to the caches below must be small, whoever wrote it."""

# `\w` is without the marks that other scripts spell with, and that accents are in decomposed text: all of those of
# living scripts stand in these three ranges.
_MARKS = "".join(
    letter
    for start, end in ((0x300, 0x1E00), (0x3099, 0x309B), (0xA800, 0xAC00))
    for letter in map(chr, range(start, end))
    if unicodedata.category(letter) in ("Mn", "Mc")
)
_W = rf"[\w{_MARKS}]"
# A chunk is what stands between spaces and punctuation: `describe_instances`, `multi-region`, `records.search`.
CHUNK = re.compile(rf"{_W}+(?:[-.]{_W}+)*")
# Where an identifier is cut: separators, `aB`, and before the last capital of `HTTPServer`.
_CUT = re.compile(r"[-._]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DIGITS = re.compile(r"\d+")
# Scripts that are written without spaces (Han, kana, Thai, Lao, Khmer, Burmese): their terms are pairs of letters.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")

_SMALL = """
    a an and are as at be been but by can could did do does for from had has have how i if in into is it its just let
    me my of or our please should so such than that the their them then there these they this those to us very was we
    were what when where while who whose why will with would you your
"""
STOP_WORDS = frozenset(_SMALL.split())


@lru_cache(maxsize=1 << 15)
def terms_of(chunk: str) -> tuple[str, ...]:
    """The terms of one chunk: its stemmed words and, if there are several, the whole of them joined as well."""
    words = words_of(chunk)
    terms = [stem(word) for word in words]
    if len(words) > 1:
        terms.append(stem("".join(words)))
    return tuple(dict.fromkeys(term[:LONGEST_WORD] for term in terms))


@lru_cache(maxsize=1 << 15)
def words_of(chunk: str) -> tuple[str, ...]:
    """The words of an identifier or of a chunk of prose, folded: `HTTPServer_v2` is `http`, `server`, `v2`."""
    words: list[str] = []
    for piece in _CUT.split(chunk):
        folded = fold(piece)
        if _UNSPACED.search(folded):
            words.extend(_unspaced(folded))
        elif folded:
            words.append(folded)
    return tuple(words)


def fold(text: str) -> str:
    """Without case, accents and compatibility forms."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not _accent(c)))


def _accent(character: str) -> bool:
    """A Latin, Greek or Cyrillic accent. Signs of scripts that spell with them (Thai, Devanagari, kana) stay."""
    return "\u0300" <= character <= "\u036f"


def _unspaced(text: str) -> Iterator[str]:
    at = 0
    for run in _UNSPACED.finditer(text):
        if run.start() > at:
            yield text[at : run.start()]
        letters = run.group()
        if len(letters) == 1:
            yield letters
        yield from (letters[n : n + 2] for n in range(len(letters) - 1))
        at = run.end()
    if at < len(text):
        yield text[at:]


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """The word without its inflection: plural, -ing, -ed, a final e. Only for words of ASCII letters."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _singular(word)
    for ending in ("ing", "ed"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) >= 3 and any(vowel in base for vowel in "aeiouy"):
            word = base
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    if word.endswith("y") and len(word) > 3:
        word = word[:-1] + "i"
    return word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def count(text: str, *, stop_words: bool = False) -> Counter[str]:
    """How often each term occurs in a text; words that carry no meaning are left out unless `stop_words`."""
    counts: Counter[str] = Counter()
    for chunk, times in Counter(CHUNK.findall(text)).items():
        for term in terms_of(chunk[:LONGEST_CHUNK]):
            if stop_words or term not in _STOP_TERMS:
                counts[term] += times
    return counts


@dataclass(frozen=True, slots=True)
class Query:
    """What somebody asks: `terms` by how often they occur, and `joined`, neighbours written as one word.

    `joined` finds `autoscaling` for "auto scaling"; who looks them up drops those that no tool has.
    `unstemmed` gives the word that a term was made from.
    """

    terms: dict[str, int]
    joined: tuple[str, ...]
    unstemmed: dict[str, str]

    @classmethod
    def read(cls, text: str) -> Query:
        """Reads a question. One of stop words alone keeps them: a tool may be called `who_is`."""
        terms: dict[str, int] = {}
        small: dict[str, int] = {}
        unstemmed: dict[str, str] = {}
        words: list[str] = []
        for chunk in CHUNK.findall(text[:MAX_QUERY])[:MAX_QUERY_WORDS]:
            own, parts = _asked(chunk[:LONGEST_CHUNK])
            words += parts
            for term, word in own:
                counts = small if term in _STOP_TERMS else terms
                counts[term] = counts.get(term, 0) + 1
                if word:
                    unstemmed[term] = word
        return cls(terms or small, tuple(dict.fromkeys(_neighbours(words))), unstemmed)


@lru_cache(maxsize=1 << 13)
def _asked(chunk: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The terms of a chunk, each with the word that it was made from (none for the whole, joined), and its words."""
    words = words_of(chunk)
    unstemmed = {stem(word)[:LONGEST_WORD]: word for word in words}
    return tuple((term, unstemmed.get(term, "")) for term in terms_of(chunk)), words


def _neighbours(words: list[str]) -> Iterator[str]:
    """Each two, three and four words that stand together with no small word between, as one."""
    for start, word in enumerate(words):
        if word in STOP_WORDS:
            continue
        joined = word
        for other in words[start + 1 : start + 4]:
            if other in STOP_WORDS or len(joined) > LONGEST_WORD:
                break
            joined += other
            yield stem(joined)[:LONGEST_WORD]


_STOP_TERMS = frozenset(stem(word) for word in STOP_WORDS)
