"""`python -m samples.records`: the toolset at work, called directly and by a program, without any model.

Prints each call and how it ended: a result, a partial and an empty one, a section that is unavailable, a
refusal, and a change that is uncertain until it is looked up.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import ptc
from ptc_tools.strict_json import dumps
from samples.records.store import Store
from samples.records.tools import toolset

NAMES = ["Ada Byron", "Bo Li", "Cy Grant", "Di Adams", "Ed Adair"]
PROGRAM = """
page, seen = await records_search(text=""), []
while isinstance(page, dict) and page["outcome"] == "partial":
    seen += [customer["name"] for customer in page["value"]]
    page = await records_search(**page["continuation"])
seen += [customer["name"] for customer in page]
seen
"""


async def show(invoker: ptc.Invoker, run: ptc.RunContext, name: str, **arguments: object) -> ptc.Outcome:
    call = ptc.Call(f"call_{name}_{len(arguments)}", name, dumps(arguments), namespace="records")
    outcome = await invoker.invoke(call, run)
    sent = outcome.value if isinstance(outcome, ptc.Success) else ptc.error_object(outcome)
    print(f"records.{name}({dumps(arguments)})\n  {outcome.status}: {dumps(sent)}")
    return outcome


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "records.db")
        store.create(
            "acme", [(f"c_{n:03}", name, f"{n}@example.org", None) for n, name in enumerate(NAMES, 1)]
        )
        tools = toolset(store)
        invoker = ptc.Invoker(tools)
        run = ptc.RunContext("run_demo", principal="demo", tenant="acme")

        partial = await show(invoker, run, "search", text="")
        if isinstance(partial, ptc.Partial):
            await show(invoker, run, "search", **(partial.continuation or {}))
        await show(invoker, run, "search", text="nobody")
        await show(invoker, run, "get", customer_id="c_001", store="other.db")
        store.shipments_available = False
        await show(invoker, run, "get", customer_id="c_001")
        store.cut_after_commit.append(True)
        change = {"operation_id": "op_1", "customer_id": "c_002", "status": "blocked"}
        uncertain = await show(invoker, run, "set_status", **change)
        if isinstance(uncertain, ptc.Uncertain):
            await show(invoker, run, "find_operation", operation_id="op_1")
        await show(invoker, run, "set_status", **change)
        await show(invoker, run, "count_by_status")

        async with ptc.Sandbox() as sandbox:
            result = await sandbox.run(PROGRAM, tools=tools, run=run)
        print(f"a program that pages through all of them\n  {result.status}: {dumps(result.value)}")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ptc.PtcError as error:
        sys.exit(f"{error.code}: {error.message}")
