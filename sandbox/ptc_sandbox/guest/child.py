"""One disposable child: confines itself, waits for a program, runs it, and is killed.

It is forked from the server with everything loaded. Before it reads a byte of the program the kernel wall
stands; parsing, policy and compilation happen behind it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

from ptc_sandbox.confine import LayerUnavailable
from ptc_sandbox.guest.channel import Channel, ChannelClosed
from ptc_sandbox.guest.stage import Stage

_OUT_OF_MEMORY = b'["end",{"status":"memory"}]'
_OUT_OF_MEMORY_FRAME = len(_OUT_OF_MEMORY).to_bytes(4, "little") + _OUT_OF_MEMORY


def serve(fd: int, confine: Callable[[], None], rehearse: Callable[[], None]) -> NoReturn:
    """The whole life of a child. Never returns and never raises.

    `rehearse` is done, behind the kernel wall, when the host says that there is time.
    """
    channel = Channel(fd)
    try:
        try:
            confine()
        except BaseException as error:  # noqa: BLE001 -- whatever it is, nothing may run
            layer = error.report.layer if isinstance(error, LayerUnavailable) else "unknown"
            channel.put(["unconfined", layer, f"{type(error).__name__}: {error}"])
            channel.flush()
            os._exit(1)
        channel.put(["ready"])
        stage = None
        while (frame := channel.get())[0] == "rehearse":
            rehearse()
            stage = Stage(channel)
        stage = stage or Stage(channel)
        channel.received = 1  # from here on host and child count the same frames
        stage.run(frame[1])
        channel.get()  # stay until the host has read what this process used, and kills it
    except ChannelClosed:
        pass
    except MemoryError:
        # Made ahead: nothing can be allocated now, not even for saying so.
        os.write(fd, _OUT_OF_MEMORY_FRAME)
        os.read(fd, 1)
    finally:
        os._exit(0)
