"""Registries as sources: names until a run reads them, mandatory or whole, never overlapping, never widened."""

from __future__ import annotations

import pytest

import ptc
from tests.tools.catalog_support import Client, analyze, call_of, lookup, names, published, records, table

COMPANY = ptc.Registry("company")
RECORDS = ptc.Toolset.from_registry(COMPANY, "records")


def test_building_sources_does_no_io() -> None:
    """A client is neither needed nor asked before a run."""
    client = Client(published(records()))
    sources = ptc.Sources([COMPANY], registries=table(company=client))
    assert client.reads == []
    assert not sources.static
    ptc.Sources([ptc.use(RECORDS).defer()], registries=table())


async def test_a_whole_registry_offers_all_of_its_toolsets() -> None:
    """As they are at each read."""
    registry = published(records(), ptc.Toolset("billing", [lookup]))
    step = await ptc.Sources([COMPANY], registries=table(company=registry)).read()
    assert sorted(names(step)) == ["billing.lookup", "records.analyze", "records.lookup", "records.search"]


@pytest.mark.parametrize("listed", [None, 7, "records"])
async def test_a_list_that_is_none_is_an_error_of_the_catalog(listed: object) -> None:
    """A client is another's code: what it gives wrong has a name, and no traceback of ours."""

    class Broken(Client):
        async def list_toolsets(self):  # type: ignore[no-untyped-def]
            return listed

    sources = ptc.Sources([COMPANY], registries=table(company=Broken(published(records()))))
    with pytest.raises(ptc.SourceUnreadable, match="its client lists"):
        await sources.read()


async def test_a_choice_that_fails_says_why() -> None:
    """Whoever runs it has to find the cause."""

    class Choice:
        def resolve(self, catalog: ptc.SourceCatalog) -> None:
            raise KeyError("product")

        def allows(self, source: ptc.RegistryToolset) -> bool:
            return False

    with pytest.raises(
        ptc.SourceUnreadable, match="could not choose the sources of a step: KeyError: 'product'"
    ):
        await ptc.Sources([Choice()], registries=table()).read()


async def test_a_named_source_offers_that_toolset_alone() -> None:
    """The rest of the registry is nothing to this consumer."""
    registry = published(records(), ptc.Toolset("billing", [lookup]))
    step = await ptc.Sources([RECORDS], registries=table(company=registry)).read()
    assert names(step) == ["records.lookup", "records.search", "records.analyze"]


async def test_a_named_source_is_mandatory() -> None:
    """A run that was built on it does not go on without."""
    sources = ptc.Sources([RECORDS], registries=table(company=published()))
    with pytest.raises(ptc.SourceMissing, match="company/records"):
        await sources.read()


async def test_a_whole_registry_may_be_empty() -> None:
    """Nothing is an answer there."""
    step = await ptc.Sources([COMPANY], registries=table(company=published())).read()
    assert names(step) == []


async def test_version_verifies_the_published_one() -> None:
    """It is checked, and selects no other."""
    registry = published(records(), version="1.2.3")
    right = ptc.Toolset.from_registry(COMPANY, "records", version="1.2.3")
    assert len(await ptc.Sources([right], registries=table(company=registry)).read()) == 3
    wrong = ptc.Toolset.from_registry(COMPANY, "records", version="1.2.4")
    with pytest.raises(ptc.VersionMismatch, match=r"1\.2\.3.*1\.2\.4"):
        await ptc.Sources([wrong], registries=table(company=registry)).read()


@pytest.mark.parametrize("source", [COMPANY, RECORDS])
def test_named_deferral_is_refused_on_both(source: ptc.Registry | ptc.RegistryToolset) -> None:
    """What their tools are is not known before a run."""
    with pytest.raises(ptc.InvalidDeferral, match=r"use defer\(\) for all"):
        ptc.use(source).defer("search")


@pytest.mark.parametrize("source", [COMPANY, RECORDS])
async def test_all_of_a_registrys_tools_can_be_deferred(source: ptc.Registry | ptc.RegistryToolset) -> None:
    """Loading and dynamics are independent."""
    registries = table(company=published(records()))
    deferred = await ptc.Sources([ptc.use(source).defer()], registries=registries).read()
    assert deferred.deferred == {"records.lookup", "records.search", "records.analyze"}
    assert (await ptc.Sources([source], registries=registries).read()).deferred == frozenset()


@pytest.mark.parametrize(
    "uses",
    [
        [COMPANY, COMPANY],
        [RECORDS, ptc.use(RECORDS).defer()],
        [COMPANY, RECORDS],
        [RECORDS, COMPANY],
        [RECORDS, ptc.Toolset.from_registry(COMPANY, "records", version="2")],
        [ptc.Toolset("records", [lookup]), ptc.Toolset("records", [analyze])],
    ],
)
def test_duplicate_and_overlapping_sources_are_refused(uses: list[ptc.Registry]) -> None:
    """A tool has one source."""
    with pytest.raises(ptc.InvalidSource):
        ptc.Sources(uses)


def test_two_registries_and_two_toolsets_of_one_do_not_overlap() -> None:
    """Overlap is about what is the same, not about what is alike."""
    ptc.Sources([RECORDS, ptc.Toolset.from_registry(COMPANY, "billing"), ptc.Registry("other")])


def test_inline_tools_on_a_reference_are_refused() -> None:
    """Its provider owns what it has."""
    with pytest.raises(ptc.InvalidSource, match="takes no tools of its own"):
        ptc.Toolset.from_registry(COMPANY, "records", tools=[lookup])


def test_exporting_a_reference_again_is_refused() -> None:
    """Else two registries would answer for one provider."""
    with pytest.raises(ptc.InvalidSource, match="exported again"):
        RECORDS.export(version="1.0.0")
    with pytest.raises(ptc.InvalidSource, match="offered again"):
        ptc.Toolset("mine", [RECORDS])  # type: ignore[list-item]


@pytest.mark.parametrize("source", [COMPANY, RECORDS])
def test_consumer_tags_on_a_reference_are_refused(source: ptc.Registry | ptc.RegistryToolset) -> None:
    """The provider owns the tags; the consumer filters by policy."""
    with pytest.raises(ptc.InvalidSource, match="filter by policy"):
        ptc.use(source).tag("finance")


async def test_register_registry_connects_before_a_run() -> None:
    """The name in the sources is the name that the client is registered under, in the whole process."""
    sources = ptc.Sources([ptc.Registry("registered_here")])
    with pytest.raises(ptc.RegistryUnknown, match="register_registry"):
        await sources.read()
    ptc.register_registry("registered_here", published(records()))
    try:
        assert len(await sources.read()) == 3
        with pytest.raises(ptc.InvalidSource, match="unregister_registry"):
            ptc.register_registry("registered_here", published())
    finally:
        ptc.unregister_registry("registered_here")
    with pytest.raises(ptc.RegistryUnknown):
        await sources.read()


async def test_registered_again_with_the_same_client_is_no_change() -> None:
    """Two parts of an application may both say it."""
    registry, registries = published(records()), table()
    registries.register("company", registry)
    registries.register("company", registry)
    assert registries.client("company") is registry


async def test_a_registrys_tool_runs_through_its_client() -> None:
    """By the one path on both sides."""
    client = Client(published(records()))
    step = await ptc.Sources([COMPANY], registries=table(company=client)).read()
    outcome = await ptc.Invoker(step.catalog).invoke(call_of("analyze", {"query": "abc", "depth": 2}), RUN)
    assert outcome == ptc.Success(6)
    assert [(call.toolset, call.tool, call.arguments) for call in client.calls] == [
        ("records", "analyze", {"query": "abc", "depth": 2})
    ]


RUN = ptc.RunContext("run_1", labels={"secret": "of the run"})


async def test_a_provider_gets_the_required_labels_and_no_others() -> None:
    """What else the host knows of a run is not the provider's."""
    seen: list[dict[str, str]] = []

    @ptc.tool(effects="read", publication=ptc.Publication(required_labels=("team",)))
    def whoami(context: ptc.ToolContext) -> str:
        """Say whose run it is."""
        seen.append(dict(context.labels))
        return context.labels["team"]

    registry = published(ptc.Toolset("team", [whoami]))
    sources = ptc.Sources([COMPANY], registries=table(company=registry))
    labels = {"team": "red", "secret": "of the run"}
    step = await sources.read(labels)
    outcome = await ptc.Invoker(step.catalog).invoke(
        call_of("whoami", {}, namespace="team"), ptc.RunContext("r", labels=labels)
    )
    assert outcome == ptc.Success("red")
    assert seen == [{"team": "red"}]


async def test_what_a_provider_refuses_or_breaks_ends_as_that_here() -> None:
    """Its policy's no is a denial, its failure a failure, its doubt a doubt; no host's text goes along."""

    @ptc.tool(effects="read", authority=("admin",))
    def forbidden(x: int) -> int:
        """Do something forbidden."""
        return x

    @ptc.tool(effects="read")
    def broken(x: int) -> int:
        """Break."""
        raise RuntimeError("/srv/secret/place is gone")

    @ptc.tool(effects="write", commitment="changes", idempotency=ptc.Idempotency("service"))
    def doubtful(x: int) -> int:
        """Change."""
        raise ConnectionResetError("the line broke")

    registry = ptc.LocalRegistry(policy=ptc.RequireAuthority({}))
    registry.publish(ptc.Toolset("t", [forbidden, broken, doubtful]).export(version="1"))
    step = await ptc.Sources([COMPANY], registries=table(company=registry)).read()
    invoker = ptc.Invoker(step.catalog)
    denied, failed, uncertain = [
        await invoker.invoke(call_of(name, {"x": 1}, name, "t"), RUN)
        for name in ("forbidden", "broken", "doubtful")
    ]
    assert (denied.status, getattr(denied, "code", None)) == ("denied", "not_authorized")
    assert isinstance(failed, ptc.Failure)
    assert (failed.status, failed.code) == ("failure", "tool_error")
    assert "secret" not in failed.message
    assert isinstance(uncertain, ptc.Uncertain)


async def test_empty_and_partial_results_stay_what_they_are() -> None:
    """A consumer is told as much as the provider's own model would be."""

    @ptc.tool(effects="read")
    def nothing() -> list[int] | ptc.EmptyResult:
        """Find nothing."""
        return ptc.EmptyResult(reason="there is none")

    @ptc.tool(effects="read", bounds=ptc.Bounds(items=2))
    def much() -> list[int]:
        """Find much."""
        return [1, 2, 3]

    registry = published(ptc.Toolset("t", [nothing, much]))
    step = await ptc.Sources([COMPANY], registries=table(company=registry)).read()
    invoker = ptc.Invoker(step.catalog)
    assert isinstance(await invoker.invoke(call_of("nothing", {}, "a", "t"), RUN), ptc.Empty)
    partial = await invoker.invoke(call_of("much", {}, "b", "t"), RUN)
    assert isinstance(partial, ptc.Partial)
    assert partial.missing == ("/: items after the first 2 of 3",)


@pytest.mark.parametrize(
    "given",
    [
        ptc.CallResult("success", {"not": "a text"}),
        ptc.CallResult("success", float("nan")),
        ptc.CallResult("success", "x" * 5_000_000),
        ptc.CallResult("admitted"),
        ptc.CallResult("partial", {"value": 1}),
        None,
        "record 1",
    ],
)
async def test_a_result_that_breaks_its_published_schema_is_refused_here(given: object) -> None:
    """A registry's answer is held to what was published, as every result is."""

    class Liar(Client):
        async def call_resolved(self, call):  # type: ignore[no-untyped-def]
            return given

    step = await ptc.Sources([COMPANY], registries=table(company=Liar(published(records())))).read()
    outcome = await ptc.Invoker(step.catalog).invoke(call_of("lookup", {"key": "1"}), RUN)
    assert getattr(outcome, "code", None) == "invalid_result"


async def test_a_providers_words_reach_the_model_short_and_without_what_the_host_knows() -> None:
    """No terminal control, no label of the run, no flood."""

    class Loud(Client):
        async def call_resolved(self, call):  # type: ignore[no-untyped-def]
            return ptc.CallResult("failure", code="tool_error", message="of the run \x1b[31m" + "a" * 10_000)

    step = await ptc.Sources([COMPANY], registries=table(company=Loud(published(records())))).read()
    outcome = await ptc.Invoker(step.catalog).invoke(call_of("lookup", {"key": "1"}), RUN)
    message = getattr(outcome, "message", "")
    assert len(message) <= 400
    assert "\x1b" not in message
    assert "of the run" not in message
