"""The kinds of outcome, provenance and sensitive values as the project's own audit log keeps them."""

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel

from ptc.audit import AuditLog
from ptc_tools import (
    Call,
    EmptyResult,
    Invoker,
    PartialResult,
    RunContext,
    Sensitive,
    Source,
    Traced,
    tool,
)


@tool(effects="write")
async def work(
    kind: str, pin: Annotated[str, Sensitive]
) -> Traced[list[int] | EmptyResult | PartialResult[list[int]]]:
    """Do it."""
    match kind:
        case "empty":
            return Traced.of(EmptyResult(), Source("crm", "7"), classification="restricted")
        case "partial":
            return Traced.of(PartialResult(value=[1], missing=["2"]), Source("crm", "7"))
        case "breaks":
            raise ConnectionError(f"with {pin}")
        case "fails":
            raise ValueError("no")
    return Traced.of([1], Source("crm", "7"))


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("some", "success"),
        ("empty", "empty"),
        ("partial", "partial"),
        ("breaks", "uncertain"),
        ("fails", "failure"),
    ],
)
async def test_the_record_keeps_what_kind_of_outcome_it_was(kind: str, status: str, tmp_path: Path) -> None:
    """An auditor must not take a part for the whole, or doubt for failure; nor see what is sensitive."""
    path = tmp_path / "audit.jsonl"
    async with AuditLog(path) as log:
        call = Call("call_1", "work", {"kind": kind, "pin": "9876-pin"})
        await Invoker([work], recorder=log).invoke(call, RunContext("run_1"))
    text = path.read_text()
    finished = next(line for line in text.splitlines() if '"tool.finished"' in line)
    assert f'"status":"{status}"' in finished
    assert ('"classification":' in finished) is (kind in ("some", "empty", "partial"))
    assert "9876-pin" not in text


async def test_a_refused_call_is_kept_without_what_is_sensitive(tmp_path: Path) -> None:
    """As text and as a value."""
    path = tmp_path / "audit.jsonl"
    async with AuditLog(path) as log:
        for arguments in ({"pin": "9876-pin"}, '{"pin":"9876-pin"}', '{"pin":"9876-pin"'):
            await Invoker([work], recorder=log).invoke(Call("c", "work", arguments), RunContext("run_1"))  # type: ignore[arg-type]
    assert path.read_text().count('"tool.denied"') == 3
    assert "9876-pin" not in path.read_text()


class Tree(BaseModel):
    name: str
    pin: Annotated[str, Sensitive]
    children: "list[Tree]"


async def test_a_tree_is_redacted_to_any_depth_in_the_log_too(tmp_path: Path) -> None:
    """The log walks schemas; the marks are put back for it."""

    @tool
    async def keep(tree: Tree) -> Tree:
        return tree

    deep = {"name": "n0", "pin": "PIN-0", "children": []}
    for level in range(1, 5):
        deep = {"name": f"n{level}", "pin": f"PIN-{level}", "children": [deep]}
    path = tmp_path / "audit.jsonl"
    async with AuditLog(path, levels="full") as log:
        await Invoker([keep], recorder=log).invoke(Call("c", "keep", {"tree": deep}), RunContext("run_1"))
    text = path.read_text()
    assert "PIN-" not in text
    assert text.count('"n0"') == 2
