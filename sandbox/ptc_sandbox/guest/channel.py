"""The child's end of the wire: length-prefixed JSON frames on one descriptor, blocking.

A frame is a four-byte little-endian length and a JSON array whose first element names it (docs/wire.md).
Frames are buffered until the guest has to wait, so that a call and the word that the program is blocked
leave in one write. Nothing here is checked for the host's sake: the host checks every byte itself.
"""

from __future__ import annotations

import json
import os
from typing import Any

_decode = json.JSONDecoder().raw_decode
_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode
_READ = 1 << 16
AROUND_CALL = 6
AROUND_VALUE = 4
"""What `count_values` finds in the frame around a call's arguments, and around the program's value."""
FEW = 64
"""Values of a call that are not worth an exact count."""


class ChannelClosed(Exception):
    """The host has gone, or has closed this program's channel: there is nothing left to do but to end."""


class TooLarge(ValueError):
    """A value is larger than what may cross."""


def framed(body: bytes) -> bytes:
    """A whole frame: its length and `body`, which is JSON."""
    return len(body).to_bytes(4, "little") + body


def count_values(body: bytes, enough: int) -> int:
    """The JSON values in a text, by its punctuation: an empty list or object counts as two.

    Exact where there are more than `enough`; otherwise what is in strings may be counted too, which costs less.
    """
    values = body.count(b",") + body.count(b"[") + body.count(b"{") + 1
    if values <= enough:
        return values
    outside = b"".join(body.replace(b"\\\\", b"__").replace(b'\\"', b"__").split(b'"')[::2])
    return outside.count(b",") + outside.count(b"[") + outside.count(b"{") + 1


class Channel:
    """Frames to and from the host. `received` counts frames for the host.

    `values` bounds the JSON values of a call's arguments and of the program's value, `depth` their levels.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._incoming = bytearray()
        self._outgoing: list[bytes] = []
        self.received = 0
        self.values = 0
        self.depth = 0
        self._kept = 0

    def put(self, frame: list[Any], limit: int | None = None) -> None:
        """Queue a frame of plain JSON values.

        Raises UnicodeEncodeError for a lone surrogate, and TooLarge where a call's arguments or the program's value
        take more than `limit` bytes, or more values than the host takes: it would end the program for it.
        """
        body = _encode(frame).encode()
        if limit is not None:
            self._check(frame, body, limit)
        self._outgoing.append(len(body).to_bytes(4, "little"))
        self._outgoing.append(body)

    def _check(self, frame: list[Any], body: bytes, limit: int) -> None:
        """What the frame is about in its bounds; what is around it does not count."""
        is_call = frame[0] == "call"
        if len(body) > limit:
            size = len(_encode(frame[3] if is_call else frame[1]["value"]).encode())
            if size > limit:
                raise TooLarge(f"it takes {size} bytes as JSON; at most {limit} may cross")
        around = AROUND_CALL if is_call else AROUND_VALUE
        values = count_values(body, FEW if is_call else self.values + around) - around
        if values > self.values:
            raise TooLarge(f"it holds {values} JSON values; at most {self.values} may cross")
        if is_call:
            if self._kept + values > 4 * self.values:
                raise TooLarge(
                    f"with it the calls of the program would hold more than {4 * self.values} JSON values in all"
                )
            self._kept += values

    def flush(self) -> None:
        """Write everything queued; blocks while the host is slow to read."""
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        written = 0
        while written < len(data):
            written += os.write(self.fd, data[written:] if written else data)

    def has_frame(self) -> bool:
        """Whether a whole frame has been read already and `get` would not have to wait."""
        buffer = self._incoming
        return len(buffer) >= 4 and len(buffer) >= 4 + int.from_bytes(buffer[:4], "little")

    def get(self) -> list[Any]:
        """The next frame from the host; flushes first, then waits. Raises ChannelClosed at the end."""
        if self._outgoing:
            self.flush()
        buffer = self._incoming
        while not self.has_frame():
            data = os.read(self.fd, _READ)
            if not data:
                raise ChannelClosed
            buffer += data
        size = 4 + int.from_bytes(buffer[:4], "little")
        text = buffer[4:size].decode()
        del buffer[:size]
        self.received += 1
        frame: list[Any] = _decode(text)[0]
        return frame
