"""What a program has printed, bounded: everything up to the limit is kept, and not a byte more."""

from __future__ import annotations


class Printed:
    """Printed text of at most `limit` bytes of UTF-8."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._pieces: list[str] = []

    def add(self, piece: str) -> bool:
        """Keep the piece, or what fits of it. Whether all of it did."""
        size = len(piece) if piece.isascii() else len(piece.encode())
        fits = size <= self._left
        if not fits:
            piece = piece.encode()[: self._left].decode(
                errors="ignore"
            )  # a character is kept whole or not at all
        self._left = self._left - size if fits else 0
        self._pieces.append(piece)
        return fits

    @property
    def text(self) -> str:
        """What was kept."""
        return "".join(self._pieces)
