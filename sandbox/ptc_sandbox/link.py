"""Bytes to and from one child, on the event loop: nothing is understood here, and nothing waits.

Reads are bounded for each turn of the loop, so that a flood does not hold up everybody else; what a child
does not read is kept up to a bound, and then it is given up.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

_READ = 1 << 16
"""Bytes read in one turn of the loop."""
UNREAD = 64 * 1024 * 1024
"""Bytes that a child may leave unread."""


class Link:
    """The host's end of a child's channel. The socket stays its child's to close."""

    def __init__(
        self,
        channel: socket.socket,
        *,
        on_data: Callable[[bytes], None],
        on_closed: Callable[[], None],
        on_backlog: Callable[[], None],
    ) -> None:
        self._channel = channel
        self._on_data = on_data
        self._on_closed = on_closed
        self._on_backlog = on_backlog
        self._loop = asyncio.get_running_loop()
        self._unsent = bytearray()
        self._closed = False

    def open(self) -> None:
        """Begin to read; what is there already is read at once."""
        self._loop.add_reader(self._channel, self._on_readable)
        self._on_readable()

    def write(self, data: bytes) -> None:
        """Send now what goes, and the rest when the child reads."""
        if self._unsent:
            self._unsent += data
            if len(self._unsent) > UNREAD:
                self._on_backlog()
            return
        try:
            sent = self._channel.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            return  # the child is gone; the reader will see it
        if sent < len(data):
            self._unsent += data[sent:]
            self._loop.add_writer(self._channel, self._on_writable)

    def close(self) -> None:
        """Neither read nor write any more. Call before the socket is closed; again does nothing."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._channel)
        if self._unsent:
            self._loop.remove_writer(self._channel)

    def _on_readable(self) -> None:
        try:
            data = self._channel.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._on_data(data)
        else:
            self._loop.remove_reader(self._channel)
            self._on_closed()

    def _on_writable(self) -> None:
        try:
            sent = self._channel.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            sent = len(self._unsent)
        del self._unsent[:sent]
        if not self._unsent:
            self._loop.remove_writer(self._channel)
