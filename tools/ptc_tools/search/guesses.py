"""What a word that no tool has may have been meant to be: a slip of the finger, or two words written as one.

It is told a word and how to ask whether a term exists, and gives terms that do. It never guesses for a word that
is there, nor for a short one: `ec2` is not a misspelt `ec3`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptc_tools.search.text import LONGEST_WORD, STOP_WORDS, stem

SHORTEST = 5
"""Letters of a word that is guessed at: a shorter one has too many neighbours."""
LONGEST = 24
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def guesses(word: str, has: Callable[[str], bool]) -> tuple[str, ...]:
    """The terms one edit away from the word (a letter dropped, doubled, changed or swapped); else its two halves."""
    if not SHORTEST <= len(word) <= LONGEST or not word.isascii() or not word.isalpha():
        return ()
    near = dict.fromkeys(filter(has, _edits(stem(word))))
    near.update(dict.fromkeys(term for slip in _slips(word) if has(term := stem(slip))))
    return tuple(near) or _halves(word, has)


def _slips(word: str) -> Iterator[str]:
    """A letter dropped, or two swapped."""
    for at in range(len(word)):
        head, tail = word[:at], word[at:]
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]
        yield head + tail[1:]


def _edits(word: str) -> Iterator[str]:
    """Of a stem, so that what is tried is a term as it stands; slips in the ending are tried on the word."""
    yield from _slips(word)
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        for letter in _LETTERS:
            yield head + letter + tail[1:]
            yield head + letter + tail


def _halves(word: str, has: Callable[[str], bool]) -> tuple[str, ...]:
    """`loadbalancer` as `load`, `balancer`: the first cut into two words of three letters or more that exist."""
    for at in range(len(word) - 3, 2, -1):
        first, second = word[:at], word[at:]
        if first not in STOP_WORDS and second not in STOP_WORDS:
            terms = stem(first), stem(second)
            if has(terms[0]) and has(terms[1]):
                return terms
    return ()


assert LONGEST < LONGEST_WORD
