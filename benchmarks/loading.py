"""What loading, deferral and programs cost in tokens: one task, four ways to offer the tools, three catalogs.

The catalogs are parts of botocore's operations; the task looks at eight machines, and asks for an hour of
measurements of each. A script plays the model against the strict peer, which counts a quarter of the letters of
what a request holds and of what a response says. Programs run here, so that what their calls give is in no
request. Nothing is cached in between: every request is paid for in full.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import ptc
from benchmarks.harness import Figure, report
from benchmarks.search_catalog import read_catalog
from ptc.testing import ScriptedModel, call, in_process, run_code, say, search
from ptc_tools.search import Document

SIZES = (20, 100, 1000)
LIST, MEASURE = "ec2.describe_instances", "cloudwatch.get_metric_statistics"
MACHINES = [f"i-{number:08x}" for number in range(8)]
_NAME = 64
_LETTERS = 1_000
"""Of a name that the service takes, and of a description that a provider would publish; botocore's are whole pages."""

_PROGRAM = """\
import asyncio
machines = (await ec2_describe_instances())["Instances"]
told = await asyncio.gather(*(cloudwatch_get_metric_statistics(Namespace=m["InstanceId"]) for m in machines))
sum(max(point["Average"] for point in one["Datapoints"]) > 90 for one in told)"""


def answer_of(key: str) -> dict[str, Any]:
    """What a tool of the task gives; of the size that such answers have."""
    if key == LIST:
        state = {"State": {"Name": "running", "Code": 16}, "Placement": {"AvailabilityZone": "eu-west-1a"}}
        return {
            "Instances": [
                {"InstanceId": machine, "InstanceType": "m7i.large", **state} for machine in MACHINES
            ]
        }
    points = [
        {"Timestamp": f"2030-01-01T10:{minute:02}:00Z", "Average": minute * 1.6} for minute in range(60)
    ]
    return {"Label": "CPUUtilization", "Datapoints": [{**point, "Unit": "Percent"} for point in points]}


def tool_of(document: Document, caller: str) -> Any:
    """The tool of an operation."""
    definition: Any = {
        "type": "function",
        "name": document.name,
        "description": document.description[:_LETTERS],
        "parameters": {"type": "object", **document.parameters},
        "output_schema": {"type": "object"},
        "allowed_callers": [caller],
    }
    return ptc.define_tool(definition, lambda **_: answer_of(document.key))


def toolsets(documents: Iterable[Document], size: int, caller: str) -> list[ptc.Toolset]:
    """The two tools of the task among `size`, by service."""
    by_key = {document.key: document for document in documents if len(document.name) <= _NAME}
    others = [key for key in sorted(by_key, key=lambda key: key[::-1]) if key not in (LIST, MEASURE)]
    step = len(others) // size
    chosen = [LIST, MEASURE, *others[::step][: size - 2]]
    spaces: dict[str, list[Any]] = defaultdict(list)
    for key in chosen:
        spaces[by_key[key].namespace].append(tool_of(by_key[key], caller))
    return [ptc.Toolset(name, tools, description=f"Operations of {name}.") for name, tools in spaces.items()]


def turns(*, deferred: bool, programs: bool) -> list[Any]:
    """What the model says."""
    words = ("describe ec2 instances", "get metric statistics")
    if programs:
        find: list[Any] = [call("search_tools", query=query) for query in words]
        asked = [find, call("load", names=[LIST, MEASURE])] if deferred else []
        return [*asked, run_code(_PROGRAM), say("One of them.")]
    asked = [list(map(search, words))] if deferred else []
    one_each = [
        call("get_metric_statistics", namespace="cloudwatch", Namespace=machine) for machine in MACHINES
    ]
    return [*asked, call("describe_instances", namespace="ec2"), one_each, say("One of them.")]


async def tokens(spaces: list[ptc.Toolset], *, deferred: bool, programs: bool) -> tuple[int, int, int]:
    """(input tokens, output tokens, requests) of one run."""
    uses: list[Any] = [ptc.use(space).defer() if deferred else ptc.use(space) for space in spaces]
    async with in_process(ScriptedModel(*turns(deferred=deferred, programs=programs))) as client:
        runner = ptc.Runner(
            client=client,
            model="m",
            tools=uses,
            programs="local" if programs else None,
            search="lexical" if deferred else None,
            max_output_tokens=4_000,
        )
        result = await runner.run("How many of the machines were over 90 percent in the last hour?")
    ran = [one.call.name for one in result.calls if one.outcome.status == "success"]
    task = [name for name in ran if f".{name}" in f"{LIST} {MEASURE}"]
    assert len(task) == 1 + len(MACHINES), json.dumps(list(result.items))[-2000:]
    return result.usage.input_tokens, result.usage.output_tokens, result.requests


def run() -> list[Figure]:
    try:
        documents = read_catalog()
    except ImportError:
        return [Figure("tokens by way of loading", None, "tokens", note="botocore is not installed")]
    figures = []
    for size in SIZES:
        plain: int | None = None
        for programs in (False, True):
            spaces = toolsets(documents, size, "programmatic" if programs else "direct")
            for deferred in (False, True):
                read, written, requests = asyncio.run(tokens(spaces, deferred=deferred, programs=programs))
                plain = read if plain is None else plain
                way = (
                    f"{'deferred' if deferred else 'all sent'}, {'a program' if programs else 'direct calls'}"
                )
                note = f"{written} written, {requests} requests"
                figures.append(
                    Figure(
                        f"{size:,} tools, {way}",
                        read,
                        "tokens read",
                        "all sent, direct calls",
                        plain,
                        note=note,
                    )
                )
    return figures


if __name__ == "__main__":
    report("Tokens by way of loading", run)
