"""The runner: set up once, it runs conversations to their result, whole, streamed or synchronous.

It belongs to the application, as the client does; it keeps no state between runs, so that one runner serves
any number of runs at once. What it is told of tools never changes: each run starts from the same set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from typing_extensions import Unpack

from ptc.acting import Acting, ActingOptions
from ptc.agents import agent_tool
from ptc.approval import Decision
from ptc.asking import Emit
from ptc.choice import ToolChoice
from ptc.conversation import HistoryMode
from ptc.errors import ConfigurationError
from ptc.layers import OnlyFor
from ptc.limits import Limits
from ptc.providers.endpoint import Endpoint
from ptc.providers.openai_client import endpoint_of
from ptc.result import RunResult
from ptc.retry import RetryPolicy
from ptc.run import Run
from ptc.searching import FIND, LOAD, Search, SearchSettings, check_client, check_entries
from ptc.settings import Compact, OnToolError, Programs, Settings, check_request_fields
from ptc.setup import check_limits, check_setup
from ptc.start import (
    GivenTools,
    RecoverOptions,
    RunOptions,
    Start,
    added_tools,
    new_start,
    recovered_start,
    resumed_start,
)
from ptc.state import RunState
from ptc.store.protocol import RunStore
from ptc.stream import RunStream
from ptc.structured import OutputFormat
from ptc.sync import run_blocking
from ptc.toolbox import ToolLike, build_step, sendable_to_local
from ptc_tools.call import JsonValue
from ptc_tools.middleware import Middleware
from ptc_tools.policy import GRANT_REGISTERED, Approver, Policy
from ptc_tools.record import Recorder
from ptc_tools.secret import Secret
from ptc_tools.tool import AnyTool, Tool

if TYPE_CHECKING:
    from ptc_sandbox import Sandbox

T = TypeVar("T")


class Runner:
    """Runs a model with tools over the Responses API.

    `client`: an `openai` client, async or sync; the runner retries by itself and uses it without retries.
    `model`: the model or Azure deployment. `tools`: tools, typed functions, client tools, or definitions of
    hosted tools. `programs`: where programs run: `hosted` (the service), `local` (the sandbox here), `auto`
    (hosted, or local where the deployment cannot) or None. `sandbox`: shared by local runs; without one each
    run starts its own. `audit`: a recorder of every call. `on_tool_error`: `return` answers the model with
    an error, `raise` raises ToolCallError once the batch is answered. `limits`, or the two shortcuts
    `max_requests` and `max_concurrent_calls`. `history`: where the conversation is kept. `request`: more
    fields of every request, such as `reasoning`. `compact`: cuts the history between requests, where no call
    and no program is open. `middleware` goes around every call whatever its caller,
    the first outermost. `store` keeps each step of each run, so that `recover` goes on with one whose
    process ended.

    `tools` also takes sources: toolsets, registries, and uses of them (`ptc.use(records).defer("analyze")`);
    they are read before each request. `search`: how the model finds deferred tools, `lexical` or `hybrid`
    (here), `server` (the service searches), or an index of your own; `search_limit` is how many tools one
    search gives. `max_output_tokens` bounds each answer, all its rounds of search included; search needs it.
    Raises ConfigurationError, RegistrationError, ToolSearchUnsupported.
    """

    def __init__(
        self,
        *,
        client: object,
        model: str,
        tools: Iterable[ToolLike] = (),
        programs: Programs | None = None,
        audit: Recorder | None = None,
        instructions: str | None = None,
        on_tool_error: OnToolError = "return",
        max_requests: int | None = None,
        max_concurrent_calls: int | None = None,
        limits: Limits | None = None,
        sandbox: Sandbox | None = None,
        principal: str | None = None,
        labels: Mapping[str, str] | None = None,
        tenant: str | None = None,
        credentials: Mapping[str, Secret] | None = None,
        tool_choice: object = None,
        output_type: object = None,
        middleware: Sequence[Middleware] = (),
        policy: Policy = GRANT_REGISTERED,
        approver: Approver | None = None,
        namespaces: Mapping[str, str] | None = None,
        errors_in_schema: bool = True,
        history: HistoryMode = "stateless",
        background: bool = False,
        poll_interval: float = 2.0,
        request: Mapping[str, JsonValue] | None = None,
        request_timeout: float | None = None,
        call_timeout: float | None = 60.0,
        retry: RetryPolicy | None = None,
        compact: Compact | None = None,
        store: RunStore | None = None,
        search: Search | None = None,
        search_limit: int = 5,
        max_output_tokens: int | None = None,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise ConfigurationError("model= is the name of a model or of an Azure deployment")
        if programs not in ("hosted", "local", "auto", None):
            raise ConfigurationError(f'programs={programs!r}: give "hosted", "local", "auto" or None')
        if on_tool_error not in ("return", "raise"):
            raise ConfigurationError(f'on_tool_error={on_tool_error!r}: give "return" or "raise"')
        if background and history == "stateless":
            raise ConfigurationError(
                'background responses are stored by the service: set history="previous_response"'
            )
        given = GivenTools.of(tools)
        if given.programs_tool and programs == "local":
            raise ConfigurationError(
                'the programs tool of the service goes with programs="hosted", not "local"'
            )
        if given.programs_tool and programs is None:
            programs = "hosted"
        self._acting = Acting().given(
            principal=principal, labels=labels, tenant=tenant, credentials=credentials
        )
        self._settings = Settings(
            endpoint=_endpoint(client, search),
            model=model,
            entries=given.entries,
            functions=given.functions,
            programs=programs,
            sandbox=sandbox,
            instructions=instructions,
            namespaces=namespaces,
            errors_in_schema=errors_in_schema,
            recorder=audit,
            policy=policy,
            approver=approver,
            middleware=_layers(middleware),
            on_tool_error=on_tool_error,
            limits=_limits(limits, max_requests, max_concurrent_calls),
            retry=RetryPolicy() if retry is None else retry,
            history=history,
            background=background,
            poll_interval=poll_interval,
            request_timeout=request_timeout,
            call_timeout=call_timeout,
            tool_choice=ToolChoice.of(tool_choice),
            output=None if output_type is None else OutputFormat.of(output_type),
            request=check_request_fields({} if request is None else request),
            compact=compact,
            store=store,
            sources=given.sources,
            local_tools=given.local_tools,
            search=SearchSettings.of(
                search, limit=search_limit, max_output_tokens=max_output_tokens, programs=programs
            ),
            max_output_tokens=max_output_tokens,
        )
        if max_output_tokens is not None and "max_output_tokens" in self._settings.request:
            raise ConfigurationError("max_output_tokens is given twice: as an argument, and in request=")
        check_setup(self._settings)
        _check_tools(self._settings, given)

    @overload
    async def run(
        self, input: object, *, output_type: type[T], **options: Unpack[RunOptions]
    ) -> RunResult[T]: ...
    @overload
    async def run(
        self, input: object, *, output_type: object = None, **options: Unpack[RunOptions]
    ) -> RunResult[object]: ...
    async def run(
        self, input: object, *, output_type: object = None, **options: Unpack[RunOptions]
    ) -> RunResult[Any]:
        """Runs to the answer. `input`: a text, or wire items (`result.to_input(…)` of an earlier run).

        `output_type` asks for the answer as data of a type, or of a JSON schema. Raises RunError, each kind
        saying what to do; with `on_tool_error="raise"` also ToolCallError.
        """
        return await Run(*self._start(input, output_type, options)).drive()

    @overload
    def run_sync(
        self, input: object, *, output_type: type[T], **options: Unpack[RunOptions]
    ) -> RunResult[T]: ...
    @overload
    def run_sync(
        self, input: object, *, output_type: object = None, **options: Unpack[RunOptions]
    ) -> RunResult[object]: ...
    def run_sync(
        self, input: object, *, output_type: object = None, **options: Unpack[RunOptions]
    ) -> RunResult[Any]:
        """`run` for callers without an event loop. Raises LocalProtocolError inside one."""
        return run_blocking(self.run(input, output_type=output_type, **options), "run")

    async def resume(
        self,
        state: RunState,
        *,
        decisions: Mapping[str, Decision],
        tools: Iterable[ToolLike] = (),
        output_type: object = None,
        **acting: Unpack[ActingOptions],
    ) -> RunResult[Any]:
        """Goes on with a paused run: `decisions` by call id of its `approvals`, `Approve` or `Deny`.

        A call without a decision goes on waiting: the run pauses again. `tools`: those that the paused run
        had added, where it is resumed in another process. Principal, tenant, labels and credentials are not in
        a state and are given again. With a store the run goes on from there, and the state only names it. Raises
        ContractChanged, InvalidInput, and what `run` raises.
        """
        run = await self._resumption(None, state, decisions, tools, output_type, acting)
        return await run.drive()

    def resume_sync(
        self,
        state: RunState,
        *,
        decisions: Mapping[str, Decision],
        tools: Iterable[ToolLike] = (),
        output_type: object = None,
        **acting: Unpack[ActingOptions],
    ) -> RunResult[Any]:
        """`resume` for callers without an event loop."""
        coroutine = self.resume(
            state,
            decisions=decisions,
            tools=tools,
            output_type=output_type,
            **acting,
        )
        return run_blocking(coroutine, "resume")

    async def recover(self, run_id: str, **options: Unpack[RecoverOptions]) -> RunResult[Any]:
        """Goes on with a run of the store, wherever it was: its process ended, it paused, was cancelled or failed.

        Calls that have an outcome do not run again. One that was admitted and has none is in
        `result.uncertain`: a read or an idempotent mutation runs again, any other is settled by its declared
        read, or pauses the run (`decisions`: `Approve`, `Deny`, `Happened`). What a run was given of its own
        (output type, tool choice, limits, principal, tenant, labels, credentials, tools it added) is given
        again. `resend` sends a request again that may have reached a conversation kept by the service. Raises
        RunUnknown, RunLeased, ContractChanged, RequestUncertain, and what `run` raises.
        """
        return await (await self._recovery(None, run_id, options)).drive()

    def recover_sync(self, run_id: str, **options: Unpack[RecoverOptions]) -> RunResult[Any]:
        """`recover` for callers without an event loop; the same options."""
        return run_blocking(self.recover(run_id, **options), "recover")

    def stream(
        self, input: object, *, output_type: object = None, **options: Unpack[RunOptions]
    ) -> RunStream:
        """Runs and tells on the way: `async with runner.stream(…) as events: async for event in events: …`.

        The same run as `run`, with the same history; `events.result` afterwards. Leaving the block early
        cancels the run.
        """
        settings, start = self._start(input, output_type, options)

        async def begin(emit: Emit) -> Run:
            return Run(settings, start, emit)

        return RunStream(start.run_id, begin)

    def resume_stream(
        self,
        state: RunState,
        *,
        decisions: Mapping[str, Decision],
        tools: Iterable[ToolLike] = (),
        output_type: object = None,
        **acting: Unpack[ActingOptions],
    ) -> RunStream:
        """`resume`, told on the way as `stream` tells it."""
        return RunStream(
            state.run_id,
            lambda emit: self._resumption(emit, state, decisions, tools, output_type, acting),
        )

    def recover_stream(self, run_id: str, **options: Unpack[RecoverOptions]) -> RunStream:
        """`recover`, told on the way as `stream` tells it. What happened before is not told again: of a call
        that is given again there is a `CallFinished` whose report says `reused`."""
        return RunStream(run_id, lambda emit: self._recovery(emit, run_id, options))

    @property
    def keeps_runs(self) -> bool:
        """Whether it has a store."""
        return self._settings.store is not None

    def as_tool(
        self,
        name: str,
        description: str,
        output_schema: Mapping[str, JsonValue] | type | None = None,
        **options: Any,
    ) -> AnyTool:
        """This runner as a tool of another: `name(input: str)`; see `ptc.agents.agent_tool`."""
        return agent_tool(self, name, description, output_schema, **options)

    async def _resumption(
        self,
        emit: Emit | None,
        state: RunState,
        decisions: Mapping[str, Decision],
        tools: Iterable[ToolLike],
        output_type: object,
        acting: ActingOptions,
    ) -> Run:
        tools = tuple(tools)
        if self._settings.store is not None:
            options: RecoverOptions = {
                **acting,  # type: ignore[typeddict-item]
                "decisions": decisions,
                "tools": (*tools, *added_tools(self._settings, state, tools)),
                "output_type": output_type,
            }
            return await self._recovery(emit, state.run_id, options)
        own = self._acting.given(**acting)
        return Run(*resumed_start(self._settings, own, state, decisions, tools, output_type), emit)

    async def _recovery(self, emit: Emit | None, run_id: str, options: RecoverOptions) -> Run:
        settings, start = await recovered_start(self._settings, self._acting, run_id, options)
        try:
            return Run(settings, start, emit)
        except BaseException:
            assert start.durable is not None
            await start.durable.let_go()
            raise

    def _start(self, input: object, output_type: object, options: RunOptions) -> tuple[Settings, Start]:
        return new_start(self._settings, self._acting, input, output_type, options)


def _limits(limits: Limits | None, max_requests: int | None, max_concurrent_calls: int | None) -> Limits:
    chosen = Limits() if limits is None else limits
    check_limits(chosen)
    if max_requests is not None:
        chosen = replace(chosen, max_requests=max_requests)
    if max_concurrent_calls is not None:
        chosen = replace(chosen, max_concurrent_calls=max_concurrent_calls)
    return chosen


def _endpoint(client: object, search: Search | None) -> Endpoint:
    check_client(client, search)
    return endpoint_of(client)


def _layers(middleware: object) -> tuple[Middleware, ...]:
    if isinstance(middleware, Iterable) and not callable(middleware):
        layers = tuple(middleware)
        if all(map(callable, layers)):
            return layers
    raise ConfigurationError("middleware= is a list of middleware: async functions of (invocation, next)")


def _check_tools(settings: Settings, given: GivenTools) -> None:
    """Names, collisions and callers, found at construction instead of in the first run."""
    if settings.search is None and given.deferring is not None:
        raise ConfigurationError(
            f'tools of {given.deferring!r} are deferred, and nothing searches for them: set search="lexical"'
        )
    check_entries(settings.known, settings.search, settings.programs)
    local = settings.programs == "local"
    step = build_step(
        sendable_to_local(settings.known) if local else settings.known,
        programs=None if local else ("hosted" if settings.programs == "auto" else settings.programs),
        namespaces=settings.namespaces,
        errors_in_schema=settings.errors_in_schema,
    )
    all_known = settings.sources is None or settings.sources.static
    if not local and all_known:
        settings.tool_choice.check(step)
    named = {tool.contract.qualified_name for tool in (*step.functions, *step.handlers)}
    named |= {entry.contract.qualified_name for entry in settings.known if isinstance(entry, Tool)}
    named |= {FIND, LOAD}
    if settings.programs in ("local", "auto"):
        from ptc_sandbox.codeact import PROGRAM_TOOL

        named.add(PROGRAM_TOOL)
    for layer in settings.middleware:
        if isinstance(layer, OnlyFor):
            layer.check(named, all_known=all_known)
