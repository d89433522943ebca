"""`python -m benchmarks.loop`: what the driver itself costs, beside other runners over the same transport.

A run is ten requests; nine of them ask for five calls each. What a runner adds is its time less that of the
same requests over the bare transport. Memory is that of a history of 2,000 items; the import is measured in
fresh processes.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import tracemalloc
from typing import Any

from benchmarks.harness import Figure, interleaved, median, p99, report
from benchmarks.loop_peers import Run, Script, agent_framework, floor, openai_agents, ours

ROUNDS = 30
WARM_UP = 3
ITEMS = 2_000


def main() -> list[Figure]:
    return [*_added(), _history(), *_imports()]


def _added() -> list[Figure]:
    loop = asyncio.new_event_loop()
    try:
        contenders: dict[str, Run | None] = {
            "floor": floor(Script().http()),
            "ours": ours(Script().client()),
            "openai-agents": openai_agents(Script().client()),
            "agent-framework": agent_framework(Script().client()),
        }
        present = {name: run for name, run in contenders.items() if run is not None}
        for run in present.values():
            for _ in range(WARM_UP):
                loop.run_until_complete(run())

        def timed(run: Run) -> float:
            start = time.perf_counter()
            loop.run_until_complete(run())
            return (time.perf_counter() - start) * 1000

        samples = interleaved({name: _bind(timed, run) for name, run in present.items()}, ROUNDS)
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    bare = median(samples["floor"])
    added = {name: median(values) - bare for name, values in samples.items()}
    goals = {"openai-agents": 0.5, "agent-framework": 1.0}
    return [
        Figure(
            "time the runner adds to 10 requests with 45 calls",
            added["ours"],
            "ms",
            peer=peer,
            peer_value=added.get(peer),
            goal=goal,
            p99=p99(samples["ours"]) - bare,
            note=f"bare transport {bare:.1f} ms",
        )
        for peer, goal in goals.items()
    ]


def _bind(timed: Any, run: Run) -> Any:
    return lambda: timed(run)


def _history() -> Figure:
    """Bytes that a conversation holds for each item, beside the items themselves."""
    from ptc.conversation import Conversation

    def items() -> list[dict[str, Any]]:
        return [
            {
                "type": "message",
                "id": f"msg_{n}",
                "role": "assistant",
                "status": "completed",
                "phase": "commentary",
                "content": [{"type": "output_text", "text": f"{n} " * 50, "annotations": []}],
            }
            for n in range(ITEMS)
        ]

    tracemalloc.start()
    plain = items()
    alone = tracemalloc.get_traced_memory()[0]
    del plain
    tracemalloc.stop()
    tracemalloc.start()
    conversation = Conversation()
    conversation.send("go")
    for item in items():
        conversation.request()
        conversation.receive({"id": "r", "status": "completed", "output": [item]})
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    name = f"memory of a history of {ITEMS:,} items"
    return Figure(name, held / 1024, "KiB", peer="the dicts alone", peer_value=alone / 1024)


def _imports() -> list[Figure]:
    codes = {
        "ours": "import ptc",
        "base": "import pydantic, jsonschema_rs",
        "used": "import ptc; ptc.Runner; ptc.tool",
    }
    samples = interleaved({name: lambda code=code: _import_ms(code) for name, code in codes.items()}, 7)
    base = median(samples["base"])
    peer = "pydantic and jsonschema_rs"
    return [
        Figure("import ptc", median(samples["ours"]), "ms", peer=peer, peer_value=base, goal=1.3),
        Figure(
            "import ptc, with Runner and tool loaded",
            median(samples["used"]),
            "ms",
            peer=peer,
            peer_value=base,
        ),
    ]


def _import_ms(code: str) -> float:
    timed = f"import time; t = time.perf_counter(); {code}; print((time.perf_counter() - t) * 1000)"
    done = subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    report("The Responses loop", main)
