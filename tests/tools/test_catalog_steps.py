"""The catalog of a step: read once, filtered by policy, whole or an error, and shared with no other run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptc
from ptc_tools.call import JsonObject
from ptc_tools.contract import Contract
from ptc_tools.registry_protocol import ResolvedToolset, ToolsetInfo
from tests.tools.catalog_support import (
    RUN,
    ByTag,
    Client,
    analyze,
    call_of,
    lookup,
    names,
    published,
    records,
    search,
    table,
)

COMPANY = ptc.Registry("company")
RECORDS = ptc.Toolset.from_registry(COMPANY, "records")


async def failing(client: ptc.RegistryClient, source: object = COMPANY) -> ptc.CatalogError:
    """The error of a read that must fail."""
    with pytest.raises(ptc.CatalogError) as raised:
        await ptc.Sources([source], registries=table(company=client)).read()  # type: ignore[list-item]
    return raised.value


async def test_each_source_is_read_once_for_a_step() -> None:
    """A read is one look at each."""
    client = Client(published(records(), ptc.Toolset("billing", [lookup])))
    client.without_tokens = True
    sources = ptc.Sources([COMPANY], registries=table(company=client))
    await sources.read()
    assert sorted(client.reads) == ["billing", "list", "records"]


async def test_a_snapshot_holds_whatever_its_sources_do_meanwhile() -> None:
    """What the model was shown is what its calls reach."""
    registry = published(records())
    sources = ptc.Sources([COMPANY], registries=table(company=registry))
    before = await sources.read()
    registry.publish(ptc.Toolset("records", [lookup]).export(version="2.0.0"))
    assert names(before) == ["records.lookup", "records.search", "records.analyze"]
    assert names(await sources.read()) == ["records.lookup"]
    assert names(before) == ["records.lookup", "records.search", "records.analyze"]


async def test_the_next_step_sees_what_was_published_between() -> None:
    """A provider that came between two steps is there at the second, without any restart."""
    registry = published(records())
    sources = ptc.Sources([COMPANY], registries=table(company=registry))
    first = await sources.read()
    registry.publish(ptc.Toolset("billing", [lookup]).export(version="1.0.0"))
    second = await sources.read()
    assert set(names(second)) - set(names(first)) == {"billing.lookup"}


async def test_an_unchanged_registration_is_not_compiled_again() -> None:
    """Reads share what did not change, so that a step costs what changed."""
    client = Client(published(records()))
    sources = ptc.Sources([COMPANY], registries=table(company=client))
    first = await sources.read()
    assert await sources.read() is first
    assert client.reads == ["list", "records", "list"]


async def test_a_large_toolset_is_compiled_once_for_all_runs_and_beside_the_event_loop() -> None:
    """A hundred runs that begin together wait for one compilation, and others go on meanwhile."""
    many = ptc.Toolset("many", [ptc.tool(lookup.function, name=f"t{n}", effects="read") for n in range(60)])
    client = Client(published(many, records()))
    client.without_tokens = True
    sources = ptc.Sources([COMPANY], registries=table(company=client))
    steps = await asyncio.gather(*(sources.read() for _ in range(100)))
    assert len({id(step) for step in steps}) == 1
    assert len(steps[0]) == 63


async def test_an_identical_replacement_is_another_snapshot() -> None:
    """Equal schemas of another registration are other tools to admission."""
    registry = published(records())
    sources = ptc.Sources([COMPANY], registries=table(company=registry))
    first = await sources.read()
    registry.publish(records().export(version="1.0.0"))
    assert (await sources.read()).fingerprint != first.fingerprint


async def test_the_policy_filters_what_a_run_may_see() -> None:
    """What is not permitted is not in the catalog: neither by name, nor in any program, nor for a call."""

    @ptc.tool(effects="read", tags=["red"], allowed_callers=["direct", "programmatic"])
    def red(x: int) -> int:
        """Red."""
        return x

    @ptc.tool(effects="read", tags=["blue"], allowed_callers=["direct", "programmatic"])
    def blue(x: int) -> int:
        """Blue."""
        return x

    local = ptc.Toolset("local", [red, blue])
    registry = published(ptc.Toolset("remote", [red, blue]))
    sources = ptc.Sources([local, COMPANY], registries=table(company=registry))
    step = await sources.read({"team": "red"}, policy=ByTag())
    assert names(step) == ["local.red", "remote.red"]
    assert set(step.catalog.program_names) == {"local_red", "remote_red"}
    assert step.admit(call_of("blue", {"x": 1}, namespace="remote")) is None
    assert names(await sources.read({"team": "green"}, policy=ByTag())) == []
    assert len(await sources.read({"team": "green"})) == 4  # a policy without `permits` hides nothing


async def test_require_authority_hides_what_a_principal_may_not_call() -> None:
    """With `hide`; without it a call is refused when it is made."""

    @ptc.tool(effects="read", authority=("admin",))
    def secret(x: int) -> int:
        """Secret."""
        return x

    sources = ptc.Sources([ptc.Toolset("t", [secret, lookup])])
    hiding = ptc.RequireAuthority({"ann": ["admin"]}, hide=True)
    assert names(await sources.read(policy=hiding, principal="ann")) == ["t.secret", "t.lookup"]
    assert names(await sources.read(policy=hiding, principal="bob")) == ["t.lookup"]
    assert len(await sources.read(policy=ptc.RequireAuthority({}), principal="bob")) == 2


@pytest.mark.parametrize("answer", [None, 1, "yes", ["x"]])
async def test_a_policy_that_answers_neither_true_nor_false_fails_the_step(answer: object) -> None:
    """A slip in a policy is no permission."""

    class Slip:
        def permits(self, principal: str | None, tool: Contract, labels: Mapping[str, str]) -> bool:
            return answer  # type: ignore[return-value]

    with pytest.raises(ptc.VisibilityFailed):
        await ptc.Sources([records()]).read(policy=Slip())


async def test_a_policy_that_raises_fails_the_step() -> None:
    """It has not permitted anything."""

    class Broken:
        def permits(self, principal: str | None, tool: Contract, labels: Mapping[str, str]) -> bool:
            raise KeyError("team")

    with pytest.raises(ptc.VisibilityFailed):
        await ptc.Sources([records()]).read(policy=Broken())


async def test_a_policy_cannot_write_into_the_runs_labels() -> None:
    """It sees them; they are the host's."""

    class Writer:
        def permits(self, principal: str | None, tool: Contract, labels: Mapping[str, str]) -> bool:
            labels["team"] = "red"  # type: ignore[index]
            return True

    labels = {"team": "blue"}
    with pytest.raises(ptc.VisibilityFailed):
        await ptc.Sources([records()]).read(labels, policy=Writer())
    assert labels == {"team": "blue"}


async def test_a_tool_is_not_offered_to_a_run_without_the_labels_that_it_requires() -> None:
    """It could not run there."""

    @ptc.tool(effects="read", publication=ptc.Publication(required_labels=("team", "site")))
    def needs(x: int) -> int:
        """Need labels."""
        return x

    sources = ptc.Sources([ptc.Toolset("t", [needs, lookup])])
    assert names(await sources.read({"team": "a", "site": "b"})) == ["t.needs", "t.lookup"]
    assert names(await sources.read({"team": "a"})) == ["t.lookup"]


# An explicit failure, never part of a catalog


async def test_a_missing_source_fails() -> None:
    """Also where other sources were read."""
    error = await failing(published(ptc.Toolset("billing", [lookup])), RECORDS)
    assert error.code == "source_missing"


async def test_a_wrong_version_fails() -> None:
    """Before anything is offered."""
    error = await failing(published(records()), ptc.Toolset.from_registry(COMPANY, "records", version="9"))
    assert error.code == "version_mismatch"


async def test_a_duplicate_identity_fails() -> None:
    """Two sources with a tool of one name, or two toolsets of one name in a registry."""
    one, two = published(records()), published(records())
    sources = ptc.Sources([COMPANY, ptc.Registry("other")], registries=table(company=one, other=two))
    with pytest.raises(ptc.DuplicateIdentity, match="records"):
        await sources.read()

    class Twice(Client):
        async def list_toolsets(self):  # type: ignore[no-untyped-def]
            return [ToolsetInfo("records"), ToolsetInfo("records")]

    assert (await failing(Twice(one))).code == "duplicate_identity"


async def test_a_registry_adds_no_tools_to_a_namespace_of_another_source() -> None:
    """`records.search` beside our own `records.lookup` would be taken for ours."""
    other = published(ptc.Toolset("records", [search]))
    for local in (ptc.Toolset("records", [lookup]), ptc.tool(lookup.function, namespace="records")):
        sources = ptc.Sources([local, COMPANY], registries=table(company=other))
        with pytest.raises(ptc.DuplicateIdentity, match="this process and registry 'company'"):
            await sources.read()
    both = [COMPANY, ptc.Registry("second")]
    second = published(ptc.Toolset("records", [analyze]))
    with pytest.raises(ptc.DuplicateIdentity):
        await ptc.Sources(both, registries=table(company=other, second=second)).read()


def test_a_duplicate_among_local_sources_is_found_before_any_run() -> None:
    """They are known when they are listed."""
    with pytest.raises(ptc.DuplicateTool):
        ptc.Sources([ptc.tool(lookup.function, namespace="records"), records()])


@pytest.mark.parametrize("where", ["list_toolsets", "resolve_toolset"])
@pytest.mark.parametrize("trouble", [OSError("no route"), ValueError("no json"), RuntimeError()])
async def test_a_read_error_fails(where: str, trouble: Exception) -> None:
    """With the trouble as its cause."""

    class Broken(Client):
        pass

    async def raising(self: object, *_: object, **__: object) -> None:
        raise trouble

    setattr(Broken, where, raising)
    error = await failing(Broken(published(records())))
    assert error.code == "source_unreadable"
    assert error.__cause__ is trouble


async def test_a_removal_while_resolving_fails() -> None:
    """What was listed and is gone is not left out in silence."""
    registry = ptc.LocalRegistry()
    token = registry.publish(records().export(version="1.0.0"))
    client = Client(registry)
    client.before_resolve = lambda name: registry.remove(name, token)
    assert (await failing(client)).code == "source_removed"


async def test_a_read_that_takes_too_long_fails() -> None:
    """A registry that does not answer holds no run for ever."""

    class Silent(Client):
        async def list_toolsets(self):  # type: ignore[no-untyped-def]
            await asyncio.Event().wait()

    sources = ptc.Sources([COMPANY], registries=table(company=Silent(published())), timeout=0.01)
    with pytest.raises(ptc.SourceUnreadable, match="did not answer"):
        await sources.read()


async def test_the_failure_of_one_source_gives_up_the_others() -> None:
    """Nothing goes on reading for a step that there will not be."""
    given_up = asyncio.Event()

    class Slow(Client):
        async def resolve_toolset(self, name: str, *, known: str | None = None) -> ResolvedToolset | None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                given_up.set()
                raise
            return None

    sources = ptc.Sources(
        [RECORDS, ptc.Toolset.from_registry(ptc.Registry("slow"), "t")],
        registries=table(company=published(), slow=Slow(published())),
    )
    with pytest.raises(ptc.SourceMissing):
        await sources.read()
    assert given_up.is_set()


async def test_a_failed_read_leaves_nothing_behind() -> None:
    """The next one is whole again."""
    registry = published(records())
    client = Client(registry)

    def fail(name: str) -> None:
        client.before_resolve = lambda name: None
        raise OSError("once")

    client.before_resolve = fail
    sources = ptc.Sources([COMPANY], registries=table(company=client))
    with pytest.raises(ptc.SourceUnreadable):
        await sources.read()
    assert len(await sources.read()) == 3


def answer(**changes: object) -> ResolvedToolset:
    declarations = records().export(version="1").declarations
    values: dict[str, object] = {"name": "records", "token": "reg_1", "tools": declarations, "version": "1"}
    return ResolvedToolset(**{**values, **changes})  # type: ignore[arg-type]


def declared(**changes: object) -> JsonObject:
    return {**records().export(version="1").declarations[0], **changes}  # type: ignore[dict-item]


HOSTS_OWN: JsonObject = {
    "type": "object",
    "properties": {"ptc_context__": {"type": "string"}},
    "required": ["ptc_context__"],
    "additionalProperties": False,
}
CHANGES: JsonObject = {"effects": "write", "commitment": "changes"}
READ_OF_ITSELF: JsonObject = {"tool": "records.change", "arguments": {}}


@pytest.mark.parametrize(
    "given",
    [
        answer(name="billing"),
        answer(token=""),
        answer(token=None),
        answer(tools=None),
        answer(tools=[{}]),
        answer(tools=["lookup"]),
        answer(tools=[declared(), declared()]),
        answer(tools=[declared(namespace="billing")]),
        answer(tools=[declared(namespace=None)]),
        answer(tools=[declared(defer_loading=True)]),
        answer(tools=[declared(surprise=1)]),
        answer(tools=[declared(timeout=1e300)]),
        answer(tools=[declared(parameters=HOSTS_OWN, accepted=HOSTS_OWN)]),
        answer(tools=[declared(), declared(name="change", reconciliation=READ_OF_ITSELF, **CHANGES)]),
        answer(tools=[declared(name="web_search", namespace="web")]),
        "records",
    ],
)
async def test_an_answer_that_is_no_publication_fails(given: object) -> None:
    """A registry is another party: what it says is checked as such."""

    class Strange(Client):
        async def resolve_toolset(self, name: str, *, known: str | None = None) -> ResolvedToolset | None:
            return given  # type: ignore[return-value]

    assert (await failing(Strange(published(records())))).code == "source_unreadable"


# RegistryTools


class Choice:
    """Includes what the run's label names."""

    def __init__(self) -> None:
        self.seen: list[Mapping[str, str]] = []

    def resolve(self, catalog: ptc.SourceCatalog) -> None:
        labels = catalog.labels
        self.seen.append(dict(labels))
        labels["product"] = "changed"
        assert catalog.labels["product"] != "changed"  # a copy, each time
        catalog.include(ptc.Toolset.from_registry(COMPANY, catalog.labels["product"]))

    def allows(self, source: ptc.RegistryToolset) -> bool:
        return source.name == "records"


async def test_registry_tools_sees_a_copy_of_the_labels_and_includes_sources() -> None:
    """The application chooses by what it knows of the run."""
    registry = published(records(), ptc.Toolset("billing", [lookup]))
    choice = Choice()
    sources = ptc.Sources([choice], registries=table(company=registry))
    labels = {"product": "billing"}
    assert names(await sources.read(labels)) == ["billing.lookup"]
    assert names(await sources.read({"product": "records"}))[0] == "records.lookup"
    assert labels == {"product": "billing"}
    assert choice.seen == [{"product": "billing"}, {"product": "records"}]


async def test_what_registry_tools_includes_is_filtered_by_policy_and_deferred_by_its_use() -> None:
    """It widens nothing."""

    class Deferring:
        async def resolve(self, catalog: ptc.SourceCatalog) -> None:
            catalog.include(ptc.use(COMPANY).defer())

        def allows(self, source: ptc.RegistryToolset) -> bool:
            return True

    sources = ptc.Sources([Deferring()], registries=table(company=published(records())))
    assert (await sources.read()).deferred == {"records.lookup", "records.search", "records.analyze"}
    assert names(await sources.read({"team": "red"}, policy=ByTag())) == []


async def test_included_sources_may_not_overlap_the_listed_ones() -> None:
    """A tool has one source, whoever chose it."""
    sources = ptc.Sources([COMPANY, Choice()], registries=table(company=published(records())))
    with pytest.raises(ptc.InvalidSource, match="in one step"):
        await sources.read({"product": "records"})


async def test_registry_tools_that_raises_fails_the_step() -> None:
    """Half a choice is none."""
    sources = ptc.Sources([Choice()], registries=table(company=published(records())))
    with pytest.raises(ptc.SourceUnreadable, match="Choice could not choose"):
        await sources.read({})


async def test_registry_tools_includes_registry_sources_only() -> None:
    """Local ones are listed with the run's, where they are checked before it."""
    catalog = ptc.SourceCatalog({})
    for wrong in (records(), ptc.use(records()), lookup, "records"):
        with pytest.raises(TypeError):
            catalog.include(wrong)  # type: ignore[arg-type]


async def test_allows_governs_which_sources_saved_calls_may_go_on_using() -> None:
    """As the consumer is today: its own sources, and what its choice allows."""
    sources = ptc.Sources(
        [ptc.Registry("whole"), ptc.Toolset.from_registry(COMPANY, "billing", version="2"), Choice()],
        registries=table(),
    )
    assert sources.allows("whole", "anything")
    assert sources.allows("company", "billing", "2")
    assert not sources.allows("company", "billing", "1")
    assert sources.allows("company", "records")
    assert not sources.allows("company", "other")
    assert not sources.allows("elsewhere", "billing", "2")


# Isolation


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    teams=st.lists(st.sampled_from(["red", "blue", "green", "none"]), min_size=100, max_size=100),
    order=st.randoms(use_true_random=False),
)
async def test_100_runs_at_once_see_and_run_nothing_across_the_line(teams: list[str], order: object) -> None:
    """One registry, one consumer, policies that differ, replacements in between: each run sees its own tools.

    Every run tries every tool; what its policy hides must be unknown to it, and no provider may see the call.
    """
    ran: list[tuple[str, str]] = []

    def of(team: str) -> ptc.AnyTool:
        async def act(context: ptc.ToolContext) -> str:
            await asyncio.sleep(0)
            ran.append((team, context.labels["team"]))
            return team

        return ptc.tool(
            act,
            name=f"act_{team}",
            description="Act.",
            effects="read",
            tags=[team],
            publication=ptc.Publication(required_labels=("team",)),
        )

    colours = ["red", "blue", "green"]
    toolset = ptc.Toolset("acts", [of(team) for team in colours])
    registry = ptc.LocalRegistry()
    registry.publish(toolset.export(version="1"))
    sources = ptc.Sources([COMPANY], registries=table(company=registry))
    outcomes: dict[int, dict[str, str]] = {}

    async def run(number: int, team: str) -> None:
        labels = {"team": team}
        for _ in range(order.randint(0, 3)):  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        step = await sources.read(labels, policy=ByTag())
        assert names(step) == ([f"acts.act_{team}"] if team in colours else [])
        context = ptc.RunContext(f"run_{number}", labels=labels)
        if number % 10 == 0:
            registry.publish(toolset.export(version="1"))
        invoker = ptc.Invoker(step.catalog, policy=ByTag())  # type: ignore[arg-type]
        outcomes[number] = {}
        for other in colours:
            assert (step.admit(call_of(f"act_{other}", {}, namespace="acts")) is None) == (other != team)
            outcome = await invoker.invoke(call_of(f"act_{other}", {}, f"call_{other}", "acts"), context)
            code = getattr(outcome, "code", outcome.status)
            outcomes[number][other] = code

    await asyncio.gather(*(run(number, team) for number, team in enumerate(teams)))
    for number, team in enumerate(teams):
        for other, code in outcomes[number].items():
            expected = {"success", "call_not_admitted"} if other == team else {"unknown_tool"}
            assert code in expected
    assert all(team == label for team, label in ran)


async def test_what_one_run_reads_changes_nothing_for_another() -> None:
    """A snapshot belongs to those who may see exactly it."""
    sources = ptc.Sources([records(), ptc.Toolset("billing", [search, analyze])])
    everything = await sources.read()
    nothing = await sources.read({"team": "red"}, policy=ByTag())
    assert names(nothing) == []
    assert await sources.read() is everything
    assert await ptc.Invoker(nothing.catalog).invoke(call_of("lookup", {"key": "1"}), RUN) != ptc.Success(
        "record 1"
    )
