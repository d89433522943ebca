"""Every registry keeps the same rules: the one in memory and the one in a file answer alike, whatever happens."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptc
from ptc.registry import RegistryStore
from ptc_tools.registry_protocol import CallResult, ResolvedCall


@ptc.tool(effects="read")
def lookup(key: str) -> str:
    """Look one record up."""
    if key == "fails":
        raise ptc.ToolError("the record cannot be read")
    return f"record {key}"


@ptc.tool(effects="read")
def search(query: str) -> str:
    """Search the records."""
    return query


EXPORTS = [
    ptc.Toolset("records", tools).export(version=version)
    for tools, version in (([lookup], "1"), ([lookup, search], "2"))
]
STEPS = st.one_of(
    st.tuples(st.just("publish"), st.sampled_from([0, 1]), st.sampled_from([None, "a", "b"]), st.booleans()),
    st.tuples(st.just("remove"), st.integers(0, 5), st.none(), st.none()),
    st.tuples(
        st.just("call"),
        st.integers(0, 5),
        st.sampled_from(["c1", "c2", "c3"]),
        st.tuples(st.sampled_from(["1", "2", "fails"]), st.integers(1, 3)),
    ),
)


class Memory:
    """The registry in this process."""

    def __init__(self) -> None:
        self.registry = ptc.LocalRegistry()
        self.tokens: list[str] = ["reg_unknown"]

    async def publish(self, export: ptc.Export, revision: str | None, expected: str | None) -> str:
        return self.registry.publish(export, revision=revision, expected_token=expected)

    async def remove(self, token: str) -> None:
        self.registry.remove("records", token)

    async def call(self, call: ResolvedCall) -> CallResult:
        return await self.registry.call_resolved(call)

    async def current(self) -> str | None:
        found = await self.registry.resolve_toolset("records")
        return None if found is None else found.token


class File:
    """The registry in a file, with a provider that serves what waits for whatever registration."""

    def __init__(self, path: Path) -> None:
        self.store = RegistryStore(path)
        self.tokens: list[str] = ["reg_unknown"]

    async def publish(self, export: ptc.Export, revision: str | None, expected: str | None) -> str:
        return await self.store.publish(
            export.name,
            export.version,
            export.description,
            export.declarations,
            owner="team",
            revision=revision,
            expected_token=expected,
        )

    async def remove(self, token: str) -> None:
        await self.store.remove("records", token, owner="team")

    async def call(self, call: ResolvedCall) -> CallResult:
        result = await self.store.submit("assistant", call)
        if result is not None:
            return result
        claim = f"claim of {call.call_id} and sixteen"
        taken = await self.store.claim("records", call.token, claim, 0.0, owner="team")
        assert taken is not None
        assert taken.call == call
        key = taken.call.arguments["key"]
        ended = CallResult("success", f"record {key}")
        if key == "fails":
            ended = CallResult("failure", code="tool_error", message="the record cannot be read")
        await self.store.finish(taken.key, claim, ended, owner="team", covers=lambda name: name == "records")
        again = await self.store.wait("assistant", call.key, 0.0)
        assert again is not None
        return again

    async def current(self) -> str | None:
        found = await self.store.resolve("records")
        return None if found is None else found.token


async def outcome(registry: Memory | File, step: tuple[str, object, object, object]) -> str:
    """What a step comes to, in words that do not depend on the tokens' texts."""
    kind, first, second, third = step
    tokens = registry.tokens
    try:
        if kind == "publish":
            assert isinstance(first, int)
            expected = await registry.current() if third else None
            token = await registry.publish(EXPORTS[first], second, expected)  # type: ignore[arg-type]
            known = token in tokens
            tokens.append(token)
            return f"published, {'known' if known else 'new'}"
        assert isinstance(first, int)
        token = tokens[-1 - first % len(tokens)]
        if kind == "remove":
            await registry.remove(token)
            return "removed"
        assert isinstance(third, tuple)
        call = ResolvedCall(
            "run", str(second), "records", "lookup", {"key": third[0]}, token, attempt=third[1]
        )
        result = await registry.call(call)
        return f"{result.status} {result.value}"
    except ptc.PtcError as error:
        return error.code


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=14))
async def test_memory_and_file_answer_alike(steps: list[tuple[str, object, object, object]]) -> None:
    """Publishing, replacing, removing and calling in any order; after each step both have the same to say."""
    with tempfile.TemporaryDirectory() as folder:
        memory, file = Memory(), File(Path(folder) / "registry.db")
        try:
            for step in steps:
                assert await outcome(memory, step) == await outcome(file, step)
                at_memory, at_file = await memory.current(), await file.current()
                assert (at_memory is None) == (at_file is None)
        finally:
            await file.store.aclose()
