"""The vectors of texts, kept by what the text is: a catalog is encoded once, a changed tool alone is encoded again.

It holds vectors and hashes of texts, never a text. A file of it may be deleted while nobody has it open: then all is
encoded again. A vector that is not of the encoder's size counts as missing.
"""

from __future__ import annotations

import hashlib
import math
import os
import sqlite3
import threading
import weakref
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from ptc_tools.search.encoders import Encoder
from ptc_tools.search.errors import EncoderError, SearchError

SCALE: Final = 2048
"""Vectors have length 1 and are kept in steps of 1/2048. The product of two is below 2**24, so single-precision
arithmetic adds it up exactly: a score does not depend on which tools stand beside, nor on the processor."""
_TOGETHER: Final = 64
_ASKED: Final = 500


class Vectors:
    """Keeps vectors in memory, or in an SQLite file that several processes may share.

    A file that it makes is for its owner alone. `most` bounds how many are kept (384 dimensions: 0.8 kB each);
    the oldest go first. Raises `SearchError` if the file cannot be used.
    """

    def __init__(self, path: str | Path | None = None, *, most: int = 200_000) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._path = path
        try:
            if path is not None:  # what tools there are is the owner's alone; SQLite makes the rest alike
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._store = sqlite3.connect(
                ":memory:" if path is None else path,
                check_same_thread=False,
                timeout=30,
                isolation_level=None,
            )
            # Indexes share it and nobody owns it, so it closes with the last of them.
            weakref.finalize(self, self._store.close)
            self._store.execute("PRAGMA journal_mode = WAL")
            self._store.execute("PRAGMA synchronous = OFF")
            self._store.execute(
                "CREATE TABLE IF NOT EXISTS vectors (of BLOB PRIMARY KEY, steps BLOB NOT NULL)"
            )
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from None

    def close(self) -> None:
        """Closes the file. What was kept in memory is gone."""
        with self._lock:
            self._store.close()

    def of(self, encoder: Encoder, texts: Sequence[str]) -> list[array[int]]:
        """The vectors of the texts, in steps; what is not kept is encoded. Raises `EncoderError`, `SearchError`."""
        names = [_name(encoder, text) for text in texts]
        size = encoder.dimensions * 2
        known = {name: steps for name, steps in self._read(set(names)) if len(steps) == size}
        missing = {name: text for name, text in zip(names, texts, strict=True) if name not in known}
        wanted = list(missing.items())
        for start in range(0, len(wanted), _TOGETHER):
            part = wanted[start : start + _TOGETHER]
            rows = encoded(encoder, [text for _, text in part])
            made = {name: row.tobytes() for (name, _), row in zip(part, rows, strict=True)}
            self._write(made)  # each part at once: who is interrupted goes on from there
            known.update(made)
        return [array("h", known[name]) for name in names]

    def _read(self, names: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
        asked, found = list(names), []
        try:
            for start in range(0, len(asked), _ASKED):
                part = asked[start : start + _ASKED]
                marks = ",".join("?" * len(part))
                with self._lock:
                    rows = self._store.execute(
                        f"SELECT of, steps FROM vectors WHERE of IN ({marks})",  # noqa: S608 - question marks
                        part,
                    )
                    found += [(of, steps) for of, steps in rows if isinstance(steps, bytes)]
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        return found

    def _write(self, made: dict[bytes, bytes]) -> None:
        try:
            with self._lock, self._store:
                self._store.execute("BEGIN IMMEDIATE")
                self._store.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", made.items())
                self._store.execute(
                    "DELETE FROM vectors WHERE rowid <= (SELECT max(rowid) FROM vectors) - ?", (self._most,)
                )
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def _unusable(self, error: sqlite3.Error | OSError) -> SearchError:
        where = "the vectors in memory" if self._path is None else f"the file of vectors {str(self._path)!r}"
        return SearchError(f"{where} cannot be used: {error}; delete the file or name another")


def encoded(encoder: Encoder, texts: Sequence[str]) -> list[array[int]]:
    """What the encoder gives, checked, brought to length 1 and rounded to steps. Raises `EncoderError`."""
    vectors = encoder.encode([_unicode(text) for text in texts])
    if len(vectors) != len(texts):
        raise EncoderError(f"encoder {encoder.name!r} gave {len(vectors)} vectors for {len(texts)} texts")
    return [_steps(encoder, vector) for vector in vectors]


def _unicode(text: str) -> str:
    """The text with marks for lone surrogates: an encoder takes Unicode, and a question may hold anything."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _steps(encoder: Encoder, vector: Sequence[float]) -> array[int]:
    try:
        numbers = [float(number) for number in vector]
    except (TypeError, ValueError):
        raise EncoderError(f"encoder {encoder.name!r} gave {type(vector).__name__!r}, not numbers") from None
    if len(numbers) != encoder.dimensions:
        raise EncoderError(
            f"encoder {encoder.name!r} gave a vector of {len(numbers)} numbers, and declares {encoder.dimensions}"
        )
    length = math.hypot(*numbers)
    if not math.isfinite(length):
        raise EncoderError(f"encoder {encoder.name!r} gave a number that is not finite")
    return array("h", (round(number / length * SCALE) if length else 0 for number in numbers))


def _name(encoder: Encoder, text: str) -> bytes:
    return hashlib.sha256(
        f"{encoder.name}\0{encoder.dimensions}\0{text}".encode("utf-8", "surrogatepass")
    ).digest()
