"""One disposable child: confines itself, waits for a program, runs it, and is killed.

It is forked from the server with everything loaded. Before it reads a byte of the program the kernel wall
stands; parsing, policy and compilation happen behind it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

from ptc_sandbox.confine import LayerUnavailable
from ptc_sandbox.confine.child import Prepared
from ptc_sandbox.guest.channel import ChannelClosed, framed
from ptc_sandbox.guest.stage import Stage

_READY = framed(b'["ready"]')
_OUT_OF_MEMORY = framed(b'["end",{"status":"memory"}]')


def serve(stage: Stage, prepared: Prepared, rehearse: Callable[[], None]) -> NoReturn:
    """The whole life of a child. Never returns and never raises.

    `stage` was made before the fork; its channel is open here. `rehearse` is done, behind the kernel wall, when the
    host says that there is time.
    """
    channel = stage.channel
    fd = channel.fd
    try:
        try:
            prepared.confine_child(fd)
        except BaseException as error:  # noqa: BLE001 -- whatever it is, nothing may run
            layer = error.report.layer if isinstance(error, LayerUnavailable) else "unknown"
            channel.put(["unconfined", layer, f"{type(error).__name__}: {error}"])
            channel.flush()
            os._exit(1)
        os.write(fd, _READY)
        while (frame := channel.get())[0] == "rehearse":
            rehearse()
        channel.received = 1  # from here on host and child count the same frames
        stage.run(frame[1])
        channel.get()  # stay until the host has read what this process used, and kills it
    except ChannelClosed:
        pass
    except MemoryError:
        # Made ahead: nothing can be allocated now, not even for saying so.
        os.write(fd, _OUT_OF_MEMORY)
        os.read(fd, 1)
    finally:
        os._exit(0)
