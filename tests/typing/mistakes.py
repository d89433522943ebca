"""What users get wrong, as a type checker must tell them: each marked line has exactly the error that it names.

Nothing here runs. A test asks mypy and compares what it finds with the marks.
"""

from __future__ import annotations

import ptc


@ptc.tool
async def get_stock(sku: str) -> int:
    return len(sku)


async def calls() -> str:
    await get_stock(1)  # error: arg-type
    await get_stock(article="a")  # error: call-arg
    text: str = await get_stock("a")  # error: assignment
    get_stock.contract.effects = "read"  # error: misc
    get_stock.contract.nothing  # error: attr-defined
    return text


write = ptc.tool(effects="wrote")  # error: call-overload


read = ptc.tool(effect="read")  # error: call-overload


@ptc.tool(allowed_callers=["program"])  # error: list-item
async def wrong_caller(n: int) -> int:
    return n


wrong_evidence = ptc.Idempotency("argument_hash")  # error: arg-type
wrong_code = ptc.Denied("forbidden", "no")  # error: arg-type
no_such_name = ptc.Rnner  # error: attr-defined
in_time = ptc.Bounds(items="many")  # error: arg-type


async def forgets_the_context(invocation: ptc.Invocation) -> ptc.Outcome:
    return ptc.Success(1)


async def answers_nothing(invocation: ptc.Invocation, next: ptc.Next) -> None:
    await next(invocation)


wrong_layer = ptc.Invoker([get_stock], middleware=[forgets_the_context])  # error: list-item
silent_layer = ptc.Invoker([get_stock], middleware=[answers_nothing])  # error: list-item


async def forgets_to_wait(invoker: ptc.Invoker, call: ptc.Call, run: ptc.RunContext) -> str:
    outcome = await invoker.invoke(call, run)
    return outcome.value  # error: union-attr, return-value
