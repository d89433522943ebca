"""A credential as a value that does not show itself: not in a repr, a log line, JSON or a traceback's locals.

It stops accidents, not the application's own code: whoever calls `reveal` has the text.
"""

from __future__ import annotations

from typing import NoReturn


class Secret:
    """Wraps one credential. Compare, hash and print it freely; `reveal()` gives the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"a secret is text, not {type(text).__name__}")
        self._text = text

    def reveal(self) -> str:
        """The credential itself: for the one place that sends it."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, _: str) -> str:
        return "Secret(…)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled or copied into anything that is stored")
