"""For whom a run acts: a runner's tenant and credentials, and a run's own, reach the tools and nothing that is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call

KEY = b"0123456789abcdef"


def looking(seen: list[tuple[str | None, dict[str, str]]], approval: Any = "never") -> Any:
    @ptc.tool(approval=approval)
    def look(context: ptc.ToolContext) -> int:
        """Look."""
        seen.append((context.tenant, {name: item.reveal() for name, item in context.credentials.items()}))
        return 7

    return look


def runner(*turns: Any, tool: Any, **options: Any) -> ptc.Runner:
    return ptc.Runner(client=FakeEndpoint(*turns), model="m", tools=[tool], retry=AT_ONCE, **options)


def kept_in(folder: Path) -> str:
    return "".join(file.read_bytes().decode("latin-1") for file in folder.iterdir())


async def test_a_run_takes_tenant_and_credentials_of_its_own_or_its_runners() -> None:
    """One runner serves many tenants; what a run says for itself is no other run's."""
    seen: list[Any] = []
    turns = [[function_call("look", arguments="{}")], [answer()]]
    shared = runner(
        *turns, *turns, tool=looking(seen), tenant="house", credentials={"db": ptc.Secret("runner-key")}
    )
    await shared.run("go", tenant="acme", credentials={"mail": ptc.Secret("run-key")})
    await shared.run("go")
    assert seen == [("acme", {"db": "runner-key", "mail": "run-key"}), ("house", {"db": "runner-key"})]


async def test_a_credential_in_the_open_is_refused_and_not_quoted() -> None:
    """A plain text would show itself in the next log line."""
    with pytest.raises(ptc.ConfigurationError) as caught:
        runner(tool=looking([]), credentials={"db": "plain-key"})
    assert "plain-key" not in str(caught.value)


async def test_an_agent_acts_for_the_tenant_of_the_run_that_called_it() -> None:
    """Else its tools would look into another's data, or nobody's."""
    seen: list[Any] = []
    inner = runner([function_call("look", arguments="{}")], [answer("seven")], tool=looking(seen))
    expert = inner.as_tool("expert", "Knows.")
    outer = runner([function_call("expert", "c1", {"input": "?"})], [answer()], tool=expert)
    await outer.run("go", tenant="acme", credentials={"db": ptc.Secret("run-key")})
    assert seen == [("acme", {"db": "run-key"})]


@pytest.mark.parametrize("durable", [False, True])
async def test_who_resumes_a_run_gives_tenant_and_credentials_again(tmp_path: Path, durable: bool) -> None:
    """Neither a state nor a store keeps them."""
    seen: list[Any] = []
    tool, path = looking(seen, "always"), tmp_path / "runs.sqlite"
    store = ptc.SQLiteRunStore(path) if durable else None
    options: Any = {"tool": tool, "approver": ptc.PauseForApproval(), "store": store}
    given: Any = {"tenant": "tenant-canary", "credentials": {"db": ptc.Secret("key-canary")}}
    paused = await runner([function_call("look", "c1", {})], **options).run("go", **given)
    assert paused.state is not None
    assert not seen
    kept = paused.state.seal(KEY)
    kept += kept_in(tmp_path)
    assert "tenant-canary" not in kept
    assert "key-canary" not in kept
    decisions = {"c1": ptc.Approve(by="ann")}
    await runner([answer()], **options).resume(paused.state, decisions=decisions, **given)
    assert seen == [("tenant-canary", {"db": "key-canary"})]
