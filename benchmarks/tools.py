"""`python -m benchmarks.tools`: a call on the one path, and what registering ten thousand tools costs.

The call is of a no-op async tool with two bounded fields in and out, without a durable record. Its yardstick is
what `jsonschema` alone takes to validate the same arguments and result; other frameworks' invocation of the
same function stands beside it. Registration is compared with building the same types' pydantic adapters.
All of it is computing, so the times are the process's CPU time: others on the machine do not count.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import time
import tracemalloc
from collections.abc import Callable
from typing import Annotated, Any, Literal

from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, TypeAdapter, create_model
from typing_extensions import TypedDict

from benchmarks.harness import Figure, interleaved, median, p99, report
from benchmarks.tools_peers import Invocation, agent_framework, openai_agents
from ptc_tools import AnyTool, Call, Invoker, RunContext, Success, tool
from ptc_tools.strict_json import canonical

CALLS = 500
ROUNDS = 40
TOOLS = 10_000
MODELS = 100
DECODED = 1_000

ARGUMENTS = '{"sku":"sku_123","site":3}'


Sku = Annotated[str, Field(max_length=20)]


class Stock(BaseModel):
    sku: Sku
    units: Annotated[int, Field(ge=0)]


def main() -> list[Figure]:
    return [*_calls(), *_registration()]


def _calls() -> list[Figure]:
    @tool(allowed_callers=["direct", "programmatic"])
    async def get_stock(sku: Sku, site: Annotated[int, Field(ge=0, le=99)]) -> Stock:
        """Units of one article in stock at one site."""
        return Stock(sku=sku, units=site)

    invoker, run = Invoker([get_stock]), RunContext("run_1")
    call = Call("call_1", "get_stock", ARGUMENTS)

    async def ours() -> object:
        return await invoker.invoke(call, run)

    parameters = Draft202012Validator(dict(get_stock.contract.parameters))
    output = Draft202012Validator(dict(get_stock.contract.output_schema or {}))
    arguments, result = {"sku": "sku_123", "site": 3}, {"sku": "sku_123", "units": 3}

    async def validations() -> object:
        parameters.validate(arguments)
        output.validate(result)
        return None

    contenders: dict[str, Invocation | None] = {
        "ours": ours,
        "jsonschema, two validations": validations,
        "openai-agents": openai_agents(ARGUMENTS),
        "agent-framework-core": agent_framework(ARGUMENTS),
    }
    samples = _timed({name: run for name, run in contenders.items() if run is not None})
    assert asyncio.run(_once(ours)) == Success(result)
    goals = {"jsonschema, two validations": 0.3}
    return [
        Figure(
            "one call of a no-op tool, CPU time",
            median(samples["ours"]),
            "µs",
            peer=peer,
            peer_value=median(samples[peer]) if peer in samples else None,
            goal=goals.get(peer),
            p99=p99(samples["ours"]),
        )
        for peer in contenders
        if peer != "ours"
    ]


async def _once(run: Invocation) -> object:
    return await run()


def _timed(contenders: dict[str, Invocation]) -> dict[str, list[float]]:
    """Microseconds for each call, one sample a round."""
    loop = asyncio.new_event_loop()

    async def many(run: Invocation) -> float:
        start = time.process_time()
        for _ in range(CALLS):
            await run()
        return (time.process_time() - start) / CALLS * 1e6

    def measure(run: Invocation) -> Callable[[], float]:
        return lambda: loop.run_until_complete(many(run))

    try:
        for run in contenders.values():
            loop.run_until_complete(many(run))
        return interleaved({name: measure(run) for name, run in contenders.items()}, ROUNDS)
    finally:
        loop.close()


def _registration() -> list[Figure]:
    models = [
        create_model(f"Row{n}", sku=(str, ...), units=(int, ...), note=(str | None, None))
        for n in range(MODELS)
    ]
    functions = [_function(n, models[n % MODELS]) for n in range(TOOLS)]

    def adapters(_: object = None) -> list[object]:
        return [_adapters(function) for function in functions]

    def register(_: object = None) -> list[AnyTool]:
        return [tool(function) for function in functions]

    samples = interleaved({"ours": _clocked(register), "adapters": _clocked(adapters)}, 3)
    tools = register()
    declared = [entry.contract.to_json() for entry in tools]

    def fingerprints(_: object = None) -> list[str]:
        return [entry.contract.fingerprint() for entry in tools]

    def hashes(_: object = None) -> list[str]:
        return [hashlib.sha256(canonical(data)).hexdigest() for data in declared]

    prints = interleaved({"ours": _clocked(fingerprints), "hashes": _clocked(hashes)}, 3)
    arguments = {"sku": "a", "site": "north", "limit": 3}
    decoders = interleaved(
        {
            "ours": _clocked(lambda: [tool(f).decode(arguments) for f in functions[:DECODED]]),
            "adapters": _clocked(lambda: [_adapters(f) for f in functions[:DECODED]]),
        },
        3,
    )
    return [
        Figure(
            f"registering {TOOLS:,} typed tools",
            median(samples["ours"]) * 1000,
            "ms",
            peer="their pydantic adapters",
            peer_value=median(samples["adapters"]) * 1000,
            goal=1.5,
            note=f"{MODELS} result types; decoders are built at a tool's first call",
        ),
        Figure(
            f"registering {DECODED:,} typed tools and decoding one call of each",
            median(decoders["ours"]) * 1000,
            "ms",
            peer="their pydantic adapters",
            peer_value=median(decoders["adapters"]) * 1000,
        ),
        Figure(
            f"fingerprints of {TOOLS:,} contracts",
            median(prints["ours"]) * 1000,
            "ms",
            peer="hashing their canonical JSON",
            peer_value=median(prints["hashes"]) * 1000,
            goal=2,
        ),
        Figure(
            "memory of one registered tool",
            _memory(lambda: [tool(function) for function in functions[:DECODED]]),
            "KiB",
            peer="its pydantic adapters",
            peer_value=_memory(lambda: [_adapters(function) for function in functions[:DECODED]]),
        ),
    ]


def _function(number: int, model: Any) -> Callable[..., Any]:
    async def find(
        sku: Annotated[str, Field(max_length=20, description=f"Article of list {number}.")],
        site: Literal["north", "south"],
        limit: Annotated[int, Field(ge=1, le=100)] = 10,
    ) -> Any:
        return None

    find.__name__ = f"find_{number}"
    find.__doc__ = f"Find rows of list {number}.\n\nArgs:\n    site: Where.\n    limit: How many at most."
    find.__annotations__ = {
        "sku": Annotated[str, Field(max_length=20, description=f"Article of list {number}.")],
        "site": Literal["north", "south"],
        "limit": Annotated[int, Field(ge=1, le=100)],
        "return": list[model],
    }
    return find


def _adapters(function: Callable[..., Any]) -> object:
    fields = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    shape = TypedDict("Arguments", fields)  # type: ignore[operator]
    return TypeAdapter(shape), TypeAdapter(function.__annotations__["return"])


def _clocked(work: Callable[[], object]) -> Callable[[], float]:
    def measure() -> float:
        gc.collect()
        start = time.process_time()
        work()
        return time.process_time() - start

    return measure


def _memory(work: Callable[[], list[Any]]) -> float:
    """KiB that stay for each element of what `work` makes, after the types are known."""
    work()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = work()
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / len(kept) / 1024


if __name__ == "__main__":
    report("Tools: a call on the one path, and registration", main)
