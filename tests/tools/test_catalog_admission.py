"""Admission: an accepted call keeps its definition, its partner and its token; a registry takes it for those alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ptc
from ptc_tools.admission import TABLE, CallState, KnownCall, decide, registration_token
from ptc_tools.call import JsonObject
from ptc_tools.contract import Contract
from ptc_tools.middleware import Invocation
from ptc_tools.registry_protocol import CallResult, ResolvedCall
from tests.tools.catalog_support import RUN, Client, Yes, call_of, lookup, published, records, search, table
from tests.tools.tool_support import MemoryRecorder

COMPANY = ptc.Registry("company")


def of(token: str, call_id: str = "call_1", **changes: object) -> ResolvedCall:
    call = ResolvedCall("run_1", call_id, "records", "lookup", {"key": "1"}, token)
    return replace(call, **changes)  # type: ignore[arg-type]


class Counted:
    """A toolset whose tool counts its runs, and waits while it is told to."""

    def __init__(self) -> None:
        self.ran = 0
        self.go = asyncio.Event()
        self.go.set()
        self.began = asyncio.Event()

        async def lookup(key: str) -> str:
            """Look one record up."""
            self.ran += 1
            self.began.set()
            await self.go.wait()
            return f"record {key}"

        self.toolset = ptc.Toolset("records", [ptc.tool(lookup, effects="read")])

    def publish(self, registry: ptc.LocalRegistry, **options: str) -> str:
        return registry.publish(self.toolset.export(version="1.0.0"), **options)


# The table


def test_the_table_has_an_answer_to_everything() -> None:
    """No state of a call, with a registration that is current or not, is left to chance."""
    states: list[CallState | None] = [None, *get_args(CallState)]
    assert set(TABLE) == {(state, current) for state in states for current in (True, False)}


@given(
    state=st.sampled_from([None, *get_args(CallState)]),
    current=st.sampled_from(["reg_a", "reg_b", None]),
    same=st.booleans(),
    token=st.sampled_from(["reg_a", "reg_b"]),
    attempt=st.integers(1, 3),
    left=st.booleans(),
)
def test_nothing_is_ever_published_for_another_registration(
    state: CallState | None, current: str | None, same: bool, token: str, attempt: int, left: bool
) -> None:
    """The rule behind all of the table's rows."""
    call = of("reg_a", attempt=attempt)
    digest = call.digest if same else of("reg_a", tool="another").digest
    known = None if state is None else KnownCall(state, digest, token, 2, left)
    try:
        action = decide(known, call, current)
    except ptc.CallRefused:
        return
    further = attempt > 2
    again = further and left and state in ("published", "finished")
    assert known is None or (same and (further or token == call.token))
    assert action != "publish" or (current == call.token and (state in (None, "overloaded") or again))
    assert action != "attach" or state in ("published", "finished")


def test_equal_schemas_do_not_make_equal_tokens() -> None:
    """Only a shared revision does, and only for the same tools."""
    tools = records().export(version="1").declarations
    assert registration_token("records", tools, None) != registration_token("records", tools, None)
    assert registration_token("records", tools, "a") == registration_token("records", tools, "a")
    assert registration_token("records", tools, "a") != registration_token("records", tools, "b")
    assert registration_token("records", tools, "a") != registration_token("records", tools[:1], "a")
    assert registration_token("records", tools, "a") != registration_token("billing", tools, "a")
    assert registration_token("records", tools, "a", "1") != registration_token("records", tools, "a", "2")


# What an accepted call keeps


async def test_an_accepted_call_keeps_definition_partner_and_token() -> None:
    """As the step had them."""
    paged, more = paging_tools()
    registry = ptc.LocalRegistry()
    token = registry.publish(ptc.Toolset("pages", [paged, more]).export(version="1"))
    step = await ptc.Sources([COMPANY], registries=table(company=registry)).read()
    admission = step.admit(call_of("list_all", {}, namespace="pages"))
    assert admission is not None
    assert admission.token == token
    assert admission.tool is step.catalog.resolve("pages", "list_all")
    assert admission.paging_partner is step.catalog.resolve("pages", "list_more")


def paging_tools() -> tuple[ptc.AnyTool, ptc.AnyTool]:
    paging = ptc.Paging(cursor="cursor", next_cursor="next", continue_tool="list_more")

    @ptc.tool(effects="read", publication=ptc.Publication(paging=paging), output_schema=PAGE)
    def list_all() -> dict[str, object]:
        """List a first page."""
        return {"items": [1], "next": "b"}

    @ptc.tool(effects="read", output_schema=PAGE)
    def list_more(cursor: str) -> dict[str, object]:
        """List a further page."""
        return {"items": [2], "next": None}

    return list_all, list_more


PAGE: JsonObject = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"type": "integer"}},
        "next": {"type": ["string", "null"]},
    },
    "required": ["items", "next"],
}


async def test_a_tool_that_reads_itself_on_is_its_own_partner() -> None:
    """Where no other is named."""

    @ptc.tool(
        effects="read",
        publication=ptc.Publication(paging=ptc.Paging(cursor="cursor", next_cursor="next")),
        output_schema=PAGE,
    )
    def pages(cursor: str | None = None) -> dict[str, object]:
        """List pages."""
        return {"items": [], "next": None}

    step = ptc.Sources([ptc.Toolset("t", [pages])]).fixed()
    admission = step.admit(call_of("pages", {}, namespace="t"))
    assert admission is not None
    assert admission.paging_partner is admission.tool
    assert admission.token is None
    assert admission.to_json() is None


async def test_confirmation_decoding_and_execution_use_what_was_kept_and_read_no_catalog() -> None:
    """The registry is asked for the call alone, even while its list cannot be read."""
    asked = ptc.Confirmation("Look {{ key }} up?")

    @ptc.tool(effects="read", publication=ptc.Publication(confirmation=asked))
    def look(key: str) -> str:
        """Look up."""
        return key

    client = Client(published(ptc.Toolset("records", [look])))
    step = await ptc.Sources([COMPANY], registries=table(company=client)).read()
    reads = list(client.reads)
    client.before_resolve = lambda name: pytest.fail("the catalog was read for a call")
    approver = Yes()
    invoker = ptc.Invoker(step.catalog, approver=approver)
    assert await invoker.invoke(call_of("look", {"key": "7"}), RUN) == ptc.Success("7")
    assert approver.asked == ["Look 7 up?"]
    assert client.reads == reads


async def test_recovery_uses_what_was_kept_and_reads_no_catalog() -> None:
    """A saved call goes on with its own definition and token, whatever the registry offers now."""
    counted = Counted()
    registry = ptc.LocalRegistry()
    counted.publish(registry)
    client = Client(registry)
    sources = ptc.Sources([COMPANY], registries=table(company=client))
    admission = (await sources.read()).admit(call_of("lookup", {"key": "1"}))
    assert admission is not None
    saved = admission.to_json()
    assert saved is not None
    reads = list(client.reads)

    again = ptc.Sources([COMPANY], registries=table(company=client)).restore(saved)
    assert client.reads == reads
    assert again.tool.contract == admission.tool.contract
    assert (again.token, again.origin) == (admission.token, admission.origin)
    outcome = await ptc.Invoker([again.tool]).invoke(call_of("lookup", {"key": "1"}), RUN)
    assert outcome == ptc.Success("record 1")
    counted.publish(registry)
    late = await ptc.Invoker([again.tool]).invoke(call_of("lookup", {"key": "1"}, "call_2"), RUN)
    assert getattr(late, "code", None) == "call_not_admitted"
    assert counted.ran == 1


async def test_a_saved_partner_is_restored_with_its_call() -> None:
    """The next page is read by the tool of the same registration."""
    registry = published(ptc.Toolset("pages", list(paging_tools())))
    sources = ptc.Sources([COMPANY], registries=table(company=registry))
    admission = (await sources.read()).admit(call_of("list_all", {}, namespace="pages"))
    assert admission is not None
    saved = admission.to_json()
    assert saved is not None
    partner = sources.restore(saved).paging_partner
    assert partner is not None
    assert partner.contract.qualified_name == "pages.list_more"


async def test_a_saved_call_of_a_source_that_is_not_used_any_more_is_not_admitted() -> None:
    """Today's consumption authorises, the saved definition only explains."""
    registry = published(records())
    sources = ptc.Sources([COMPANY], registries=table(company=registry))
    admission = (await sources.read()).admit(call_of("lookup", {"key": "1"}))
    assert admission is not None
    saved = admission.to_json()
    assert saved is not None
    other = ptc.Sources([ptc.Toolset.from_registry(COMPANY, "billing")], registries=table(company=registry))
    with pytest.raises(ptc.CallNotAdmitted, match="does not use any more"):
        other.restore(saved)


@pytest.mark.parametrize("name", ["registry", "toolset", "token", "tool", "version"])
async def test_a_damaged_saved_call_is_refused(name: str) -> None:
    """Rather than run as something else."""
    sources = ptc.Sources([COMPANY], registries=table(company=published(records())))
    admission = (await sources.read()).admit(call_of("lookup", {"key": "1"}))
    assert admission is not None
    saved = admission.to_json()
    assert saved is not None
    with pytest.raises(ptc.RegistrationError):
        sources.restore({**saved, name: 7})


# call_resolved


async def test_the_token_is_checked_before_anything_is_published() -> None:
    """Replaced, by an identical schema too: call_not_admitted, and the tool never runs."""
    counted, registry = Counted(), ptc.LocalRegistry()
    old = counted.publish(registry)
    new = counted.publish(registry)
    assert old != new
    with pytest.raises(ptc.CallNotAdmitted) as refused:
        await registry.call_resolved(of(old))
    assert refused.value.code == "call_not_admitted"
    assert refused.value.executed is False
    assert counted.ran == 0


async def test_a_call_that_was_not_admitted_never_is() -> None:
    """An exact retry cannot run, not even if the registration came back."""
    counted, registry = Counted(), ptc.LocalRegistry()
    for _ in range(3):
        with pytest.raises(ptc.CallNotAdmitted):
            await registry.call_resolved(of("reg_none"))
        counted.publish(registry)
    assert counted.ran == 0


async def test_a_removed_toolset_admits_nothing() -> None:
    """Removal is a replacement by nothing."""
    counted, registry = Counted(), ptc.LocalRegistry()
    token = counted.publish(registry)
    registry.remove("records", token)
    with pytest.raises(ptc.CallNotAdmitted):
        await registry.call_resolved(of(token))


async def test_a_published_call_keeps_its_result_after_a_replacement() -> None:
    """It ended; asking again gives the same, and nothing runs twice."""
    counted, registry = Counted(), ptc.LocalRegistry()
    token = counted.publish(registry)
    first = await registry.call_resolved(of(token))
    counted.publish(registry)
    assert await registry.call_resolved(of(token)) == first
    assert counted.ran == 1


async def test_a_call_that_runs_keeps_its_assignment_during_a_replacement() -> None:
    """It was published for the old one, and ends there."""
    counted, registry = Counted(), ptc.LocalRegistry()
    counted.go.clear()
    token = counted.publish(registry)
    running = asyncio.create_task(registry.call_resolved(of(token)))
    await counted.began.wait()
    registry.publish(ptc.Toolset("records", [search]).export(version="2"))
    attached = asyncio.create_task(registry.call_resolved(of(token)))
    counted.go.set()
    assert (await running).value == "record 1"
    assert await attached == await running
    assert counted.ran == 1


async def test_the_same_call_id_with_another_token_is_refused() -> None:
    """Also one with other arguments or of another tool: the id stands for one call."""
    counted, registry = Counted(), ptc.LocalRegistry()
    old = counted.publish(registry)
    await registry.call_resolved(of(old))
    new = counted.publish(registry)
    for other in (
        of(new),
        of(old, arguments={"key": "2"}),
        of(old, tool="search"),
        of(old, toolset="billing"),
    ):
        with pytest.raises(ptc.CallIdentityConflict):
            await registry.call_resolved(other)
    assert counted.ran == 1


async def test_another_run_may_have_the_same_call_id() -> None:
    """Ids of calls are unique in a run."""
    counted, registry = Counted(), ptc.LocalRegistry()
    token = counted.publish(registry)
    for call in (of(token), of(token, run_id="run_2")):
        await registry.call_resolved(call)
    assert counted.ran == 2


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_further_attempt_has_the_result_of_the_call(replaced: bool) -> None:
    """Who lost the answer with its process, and asks anew, never makes a second call of it."""
    counted, registry = Counted(), ptc.LocalRegistry()
    token = counted.publish(registry)
    first = await registry.call_resolved(of(token))
    new = counted.publish(registry) if replaced else token
    for again in (of(token, attempt=2), of(new, attempt=3)):
        assert await registry.call_resolved(again) == first
    assert counted.ran == 1


async def test_a_further_attempt_waits_for_a_call_that_runs_and_does_not_end_it_by_leaving() -> None:
    """It is the same call; who merely waits for it beside another may go."""
    counted, registry = Counted(), ptc.LocalRegistry()
    counted.go.clear()
    token = counted.publish(registry)
    running = asyncio.create_task(registry.call_resolved(of(token)))
    await counted.began.wait()
    counted.publish(registry)
    leaving, waiting = (
        asyncio.create_task(registry.call_resolved(of(token, attempt=number))) for number in (2, 3)
    )
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    counted.go.set()
    assert await waiting == await running
    assert counted.ran == 1


async def test_what_ended_without_a_result_runs_again_for_a_further_attempt_alone() -> None:
    """A retry asks for another try; a repeated request for what is known. The tool sees which attempt it is."""
    seen: list[tuple[int, str]] = []

    async def lookup(key: str, context: ptc.ToolContext) -> str:
        """Look one record up."""
        seen.append((context.attempt, context.idempotency_key))
        if context.attempt < 3:
            raise ptc.ToolError("not yet")
        return "at last"

    registry = ptc.LocalRegistry()
    token = registry.publish(ptc.Toolset("records", [ptc.tool(lookup, effects="read")]).export(version="1"))
    results = [await registry.call_resolved(of(token, attempt=number)) for number in (1, 1, 2, 3, 4)]
    assert [result.status for result in results] == ["failure", "failure", "failure", "success", "success"]
    assert [attempt for attempt, _ in seen] == [1, 2, 3]
    assert len({key for _, key in seen}) == 1


class Refusing:
    """A registry that knows of no call any more, or whose provider refuses: it refuses the attempt that it is asked for."""

    def __init__(self, answer: ptc.CallRefused | CallResult, registry: ptc.LocalRegistry) -> None:
        self.answer = answer
        self.list_toolsets = registry.list_toolsets
        self.resolve_toolset = registry.resolve_toolset

    async def call_resolved(self, call: ResolvedCall) -> CallResult:
        if isinstance(self.answer, CallResult):
            return self.answer
        raise self.answer


class Attempt(ptc.Invoker):
    """The one path of a run that goes on elsewhere: this is the call's so many-th attempt."""

    number = 2

    async def execute(self, invocation: Invocation, keywords: dict[str, object], attempt: int) -> ptc.Outcome:
        return await super().execute(invocation, keywords, self.number)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("effects", ["read", "write"])
@pytest.mark.parametrize(
    "answer",
    [
        ptc.CallNotAdmitted("it was replaced; the call did not run"),
        ptc.AdmissionConflict("it was replaced; the call did not run"),
        CallResult("denied", code="call_refused", message="it did not run"),
    ],
)
async def test_a_refused_further_attempt_of_a_mutation_is_uncertain(
    answer: ptc.CallRefused | CallResult, effects: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt may have changed something: the model must not be told that nothing ran."""
    monkeypatch.setattr(Attempt, "number", number)

    async def lookup(key: str) -> str:
        """Look one record up, or change it."""
        return key

    keep: Any = {"effects": effects}
    if effects == "write":
        keep |= {"commitment": "changes a record", "idempotency": ptc.Idempotency("service")}
    registry = ptc.LocalRegistry()
    registry.publish(ptc.Toolset("records", [ptc.tool(lookup, **keep)]).export(version="1"))
    client = Refusing(answer, registry)
    step = await ptc.Sources([COMPANY], registries=table(company=client)).read()
    call = call_of("lookup", {"key": "1"}, namespace="records")
    outcome = await Attempt(step.catalog).invoke(call, ptc.RunContext("run_1"))
    doubtful = effects == "write" and number == 2
    assert isinstance(outcome, ptc.Uncertain if doubtful else ptc.Denied)
    assert ("did not run" in outcome.message) <= (not doubtful or "may have taken effect" in outcome.message)


async def busy(counted: Counted) -> tuple[ptc.LocalRegistry, str, asyncio.Task[ptc.CallResult]]:
    """A registry whose only place is taken."""
    registry = ptc.LocalRegistry(max_concurrent=1)
    counted.go.clear()
    token = counted.publish(registry)
    running = asyncio.create_task(registry.call_resolved(of(token, "call_busy")))
    await counted.began.wait()
    return registry, token, running


async def test_an_overload_retry_keeps_the_token_and_runs_once() -> None:
    """The call waits at its consumer for the registration that it was made for."""
    counted = Counted()
    registry, token, running = await busy(counted)
    with pytest.raises(ptc.RegistryOverloaded):
        await registry.call_resolved(of(token))
    counted.go.set()
    await running
    assert (await registry.call_resolved(of(token))).value == "record 1"
    assert counted.ran == 2


async def test_an_overloaded_call_that_was_replaced_is_an_admission_conflict() -> None:
    """It had been admitted; it does not move to the new registration."""
    counted = Counted()
    registry, token, running = await busy(counted)
    with pytest.raises(ptc.RegistryOverloaded):
        await registry.call_resolved(of(token))
    counted.publish(registry)
    with pytest.raises(ptc.AdmissionConflict) as refused:
        await registry.call_resolved(of(token))
    assert refused.value.code == "admission_conflict"
    counted.go.set()
    await running
    assert counted.ran == 1


@pytest.mark.parametrize(("replaced", "code"), [(False, "success"), (True, "admission_conflict")])
async def test_the_path_tries_an_overloaded_call_again_by_itself(replaced: bool, code: str) -> None:
    """With the same token: it runs when there is room, or is refused when there is another registration."""
    counted = Counted()
    registry, _, running = await busy(counted)
    client = Client(registry)
    step = await ptc.Sources([COMPANY], registries=table(company=client)).read()

    def free(call: ResolvedCall) -> None:
        if len(client.calls) > 1:
            if replaced:
                counted.publish(registry)
            client.before_call = lambda call: None
            counted.go.set()

    client.before_call = free
    invocation = asyncio.create_task(
        ptc.Invoker(step.catalog).invoke(call_of("lookup", {"key": "1"}, "call_9"), RUN)
    )
    outcome = await invocation
    await running
    assert getattr(outcome, "code", outcome.status) == code
    assert len({call.token for call in client.calls}) == 1
    assert len({call.key for call in client.calls}) == 1


async def test_a_refusal_reaches_the_model_as_a_denial_and_the_record_as_one() -> None:
    """It says what to do, and that nothing ran."""
    counted, registry = Counted(), ptc.LocalRegistry()
    counted.publish(registry)
    step = await ptc.Sources([COMPANY], registries=table(company=registry)).read()
    counted.publish(registry)
    outcome = await ptc.Invoker(step.catalog).invoke(call_of("lookup", {"key": "1"}), RUN)
    assert isinstance(outcome, ptc.Denied)
    assert outcome.code == "call_not_admitted"
    assert "did not run" in outcome.message


async def test_the_record_says_which_registration_a_call_went_to() -> None:
    """Its contract may be that of several."""
    counted, registry = Counted(), ptc.LocalRegistry()
    token = counted.publish(registry)
    step = await ptc.Sources([COMPANY], registries=table(company=registry)).read()
    recorder = MemoryRecorder()
    await ptc.Invoker(step.catalog, recorder=recorder).invoke(call_of("lookup", {"key": "1"}), RUN)
    assert recorder.kinds == ["started", "registry.called", "finished"]
    said = recorder.records[1][1]
    assert isinstance(said, dict)
    assert (said["registry"], said["registration"], said["call_id"]) == ("company", token, "call_1")


async def test_a_replaced_registration_cannot_come_back() -> None:
    """Else calls that were refused for good could run after all."""
    counted, registry = Counted(), ptc.LocalRegistry()
    first = counted.publish(registry, revision="a")
    assert counted.publish(registry, revision="a") == first  # a replica of the same
    counted.publish(registry, revision="b")
    with pytest.raises(ptc.AdmissionConflict, match="new revision"):
        counted.publish(registry, revision="a")


async def test_publishing_over_an_unexpected_registration_is_a_conflict() -> None:
    """Two publishers do not take turns unseen."""
    counted, registry = Counted(), ptc.LocalRegistry()
    first = counted.publish(registry)
    second = counted.publish(registry, expected_token=first)
    with pytest.raises(ptc.AdmissionConflict):
        counted.publish(registry, expected_token=first)
    with pytest.raises(ptc.AdmissionConflict):
        registry.remove("records", first)
    registry.remove("records", second)
    registry.remove("records", second)  # again is no trouble
    with pytest.raises(ptc.SourceMissing):
        registry.remove("records", "reg_other")


async def test_a_cancelled_call_is_in_doubt_for_who_asks_again() -> None:
    """What it did before is not known, and it does not run a second time."""
    counted = Counted()
    registry, token, running = await busy(counted)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    again = await registry.call_resolved(of(token, "call_busy"))
    assert again.status == "uncertain"
    assert counted.ran == 1


async def test_only_the_last_calls_are_remembered() -> None:
    """Memory is bounded; a call that still runs is never forgotten."""
    counted = Counted()
    registry = ptc.LocalRegistry(keep_calls=2)
    token = counted.publish(registry)
    for number in range(5):
        await registry.call_resolved(of(token, f"call_{number}"))
    await registry.call_resolved(of(token, "call_4"))
    assert counted.ran == 5
    await registry.call_resolved(of(token, "call_0"))
    assert counted.ran == 6


# Agents


async def agents(executor: str = "writer", configuration: str = "rev/1") -> ptc.LocalRegistry:
    return published(ptc.Toolset("helpers", [agent(executor, configuration)]))


def agent(executor: str, configuration: str, kind: str = "string") -> ptc.AnyTool:
    return ptc.agent_reference(
        "write",
        "Write something.",
        executor=executor,
        configuration=configuration,
        output_schema={"type": kind},
        effects="read",
    )


async def test_an_agents_call_keeps_its_executor_and_result_contract() -> None:
    """It runs here, as it was published when the model chose it."""
    registry = await agents()
    registries = table(company=registry)
    ran: list[tuple[str, JsonObject, object]] = []

    async def execute(
        configuration: str, arguments: JsonObject, contract: Contract, context: ptc.ToolContext
    ) -> str:
        ran.append((configuration, arguments, contract.output_schema))
        return "text"

    registries.register_executor("writer", execute)
    sources = ptc.Sources([COMPANY], registries=registries)
    admission = (await sources.read()).admit(call_of("write", {"input": "a"}, namespace="helpers"))
    assert admission is not None
    saved = admission.to_json()
    assert saved is not None
    for tool in (admission.tool, sources.restore(saved).tool):
        outcome = await ptc.Invoker([tool]).invoke(call_of("write", {"input": "a"}, namespace="helpers"), RUN)
        assert outcome == ptc.Success("text")
    assert ran == [("rev/1", {"input": "a"}, {"type": "string"})] * 2
    registry.publish(ptc.Toolset("helpers", [agent("other", "rev/2", "integer")]).export(version="2"))
    late = await ptc.Invoker([admission.tool]).invoke(
        call_of("write", {"input": "a"}, "call_2", "helpers"), RUN
    )
    assert getattr(late, "code", None) == "call_not_admitted"
    assert len(ran) == 2


async def test_an_agents_result_is_held_to_the_contract_that_was_kept() -> None:
    """An executor cannot give something else."""
    registries = table(company=await agents())

    async def execute(*_: object) -> int:
        return 7

    registries.register_executor("writer", execute)
    step = await ptc.Sources([COMPANY], registries=registries).read()
    outcome = await ptc.Invoker(step.catalog).invoke(
        call_of("write", {"input": "a"}, namespace="helpers"), RUN
    )
    assert getattr(outcome, "code", None) == "invalid_result"


async def test_an_agent_without_its_executor_does_not_run() -> None:
    """The denial says what to register."""
    step = await ptc.Sources([COMPANY], registries=table(company=await agents())).read()
    outcome = await ptc.Invoker(step.catalog).invoke(
        call_of("write", {"input": "a"}, namespace="helpers"), RUN
    )
    assert getattr(outcome, "code", None) == "call_refused"
    assert "register_executor" in getattr(outcome, "message", "")


def test_calls_and_results_cross_a_wire_unchanged() -> None:
    """And what is none is refused."""
    call = of("reg_1", labels={"a": "b"}, timeout=2.5, caller="programmatic")
    assert ResolvedCall.from_json(call.to_json()) == call
    result = ptc.CallResult("success", {"a": [1]}, server_data=(("card", {"x": 1}),))
    assert ptc.CallResult.from_json(result.to_json()) == result
    broken: list[Callable[[], object]] = [
        lambda: ResolvedCall.from_json({**call.to_json(), "more": 1}),
        lambda: ResolvedCall.from_json({**call.to_json(), "attempt": 0}),
        lambda: ResolvedCall.from_json({**call.to_json(), "attempt": True}),
        lambda: ResolvedCall.from_json({**call.to_json(), "attempt": 10**400}),
        lambda: ResolvedCall.from_json({**call.to_json(), "run_id": ""}),
        lambda: ResolvedCall.from_json({**call.to_json(), "call_id": "x" * 1_025}),
        lambda: ResolvedCall.from_json({**call.to_json(), "caller": "program"}),
        lambda: ResolvedCall.from_json({**call.to_json(), "labels": {"a": 1}}),
        lambda: ResolvedCall.from_json([]),
        lambda: ptc.CallResult.from_json({**result.to_json(), "status": "fine"}),
        lambda: ptc.CallResult.from_json({**result.to_json(), "server_data": [["card"]]}),
        lambda: ptc.CallResult.from_json(None),
    ]
    for read in broken:
        with pytest.raises(ValueError):
            read()
    assert lookup.contract.namespace is None
