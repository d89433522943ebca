"""Server-sent events, sans-I/O: bytes in, decoded JSON events out.

It is told bytes as they arrive, in any pieces, and gives whole events. It never guesses: see
`ptc.providers.bodies` for an event whose data is not a JSON object.
"""

from __future__ import annotations

from ptc.errors import ResponseCut
from ptc.providers.bodies import decode_body
from ptc_tools.call import JsonObject

MAX_EVENT_BYTES = 64 * 1024 * 1024
"""A stream that sends more without an event's end is given up: the service's fault must not be our memory."""


class SseDecoder:
    """Feed it; it returns the events that are now whole. `[DONE]` and comments are passed over."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0
        self._after_return = False

    def feed(self, piece: bytes) -> list[JsonObject]:
        if self._after_return and piece:
            # The line end of a piece that ended in \r was taken already; its \n may be the next byte.
            piece = piece.removeprefix(b"\n")
            self._after_return = False
        self._size += len(piece)
        if self._size > MAX_EVENT_BYTES:
            raise ResponseCut(
                f"the stream sent more than {MAX_EVENT_BYTES} bytes without the end of an event"
            )
        self._partial.append(piece)
        if b"\n" not in piece and b"\r" not in piece:
            return []  # joined once, when its end is there: an event may come in very many pieces
        text, self._partial = b"".join(self._partial), []
        if b"\r" in text:
            lines = text.splitlines(keepends=True)
        else:
            lines = [line + b"\n" for line in text.split(b"\n")]
            lines[-1] = lines[-1][:-1]
        events: list[JsonObject] = []
        for line in lines:
            if not line.endswith((b"\n", b"\r")):
                self._partial.append(line)
            else:
                events.extend(self._line(line.rstrip(b"\r\n")))
        self._after_return = piece.endswith(b"\r")
        return events

    def _line(self, line: bytes) -> list[JsonObject]:
        if line:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            return []
        data, self._data = b"\n".join(self._data), []
        self._size = 0
        if not data or data == b"[DONE]":
            return []
        return [decode_body(data, "an event of the stream")]
