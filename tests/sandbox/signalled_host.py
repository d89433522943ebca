"""A host that ends gracefully: told to stop by a signal to its whole group, it lets its program finish.

Started by `test_host_signals`: `signalled_host.py ENGINE SIGNAL` prints how the program ended and what the next gave.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import ptc


async def main(engine: str, name: str) -> None:
    stop, called = asyncio.Event(), asyncio.Event()
    number = signal.Signals[name]
    asyncio.get_running_loop().add_signal_handler(number, stop.set)

    async def wait(x: int) -> int:
        """Answers once the host was told to stop."""
        called.set()
        await stop.wait()
        return x

    made: ptc.Engine = ptc.Sandbox() if engine == "sandbox" else ptc.MontyEngine()
    try:
        running = asyncio.create_task(made.run("await wait(x=3)", tools=[wait]))
        await called.wait()
        os.killpg(0, number)
        result = await running
        print(result.status, result.value, (await made.run("4")).value)
    finally:
        await made.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
    sys.stdout.flush()
    os._exit(0)  # pydantic-monty's threads abort some interpreters at their end (docs/engines.md)
