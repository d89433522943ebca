"""A runner as a tool of another runner: the inner run is a call of the outer one.

`agent_tool` makes the tool of a runner that is here. `agent_reference` publishes one in a registry, by the names
of its executor and its configuration, and `agent_executor` runs such calls where they are made. The inner run
has its own history, limits and tools. It takes the outer run's principal, tenant, labels, credentials and
cancellation, and names the outer run and call in its labels, so that the audit record shows whose it is. What it
may do is what it was set up with: nothing that the outer model says widens it. Where both are kept in stores, the
inner run's id comes from the call, so that a call that was cut off goes on with its run instead of beginning another.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ptc.durable import in_tool
from ptc.store.errors import RunExists
from ptc.structured import OutputFormat
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.context import ToolContext
from ptc_tools.contract import Contract
from ptc_tools.errors import ToolError
from ptc_tools.frozen import thaw_object
from ptc_tools.publication import Publication
from ptc_tools.registry_protocol import Executor
from ptc_tools.strict_json import dumps
from ptc_tools.tool import AnyTool, Tool

if TYPE_CHECKING:
    from ptc.acting import ActingOptions
    from ptc.result import RunResult
    from ptc.runner import Runner


MAX_DEPTH: Final = 8
"""How many runs a run may stand inside. A runner whose tools come to hold itself would never end."""

_depth: ContextVar[int] = ContextVar("runs inside each other", default=0)


def agent_tool(
    runner: Runner,
    name: str,
    description: str,
    output_schema: Mapping[str, JsonValue] | type | None = None,
    **options: Any,
) -> AnyTool:
    """The tool `name(input: str)` that runs `runner` and gives its answer.

    With `output_schema`, a schema or a type such as a pydantic model, the inner run is asked for such data
    and the tool gives it; else it gives the text.
    `options` are those of a contract (`ptc_tools.contract`): `allowed_callers`, `timeout`, `effects` and so
    on. A refusal or an error of the inner run is a failure of the call, and so is a pause of it: nobody could
    decide, so give such a runner an approver that answers at once. So is a run that would stand inside more
    than `MAX_DEPTH` others.
    """
    callers = tuple(options.pop("allowed_callers", None) or ("direct",))
    form = None if output_schema is None else OutputFormat.of(output_schema)
    result: JsonObject | None = None if form is None else form.result_schema
    if result is None and "programmatic" in callers:
        result = {"type": "string"}
    options.setdefault("timeout", 600.0)
    contract = Contract(
        name=name,
        description=description,
        parameters=_one_text(),
        output_schema=result,
        allowed_callers=callers,
        **options,
    )

    async def run_agent(input: str, context: ToolContext) -> JsonValue:
        return await _inner_run(runner, name, input, output_schema, context)

    return Tool(contract, run_agent)


async def _inner_run(
    runner: Runner, name: str, input: str, output_type: object, context: ToolContext
) -> JsonValue:
    """The answer of a run inside a call. What is no answer is an error of the call."""
    form = None if output_type is None else OutputFormat.of(output_type)
    outer = _depth.get()
    if outer >= MAX_DEPTH:
        raise ToolError(f"{name} was not asked: its run would stand inside more than {MAX_DEPTH} others")
    before = _depth.set(outer + 1)
    try:
        result = await _its_own_run(runner, input, output_type, context)
    finally:
        _depth.reset(before)
    if result.refusal is not None:
        raise ToolError(f"{name} refused: {result.refusal}")
    if result.status == "paused":
        waiting = ", ".join(request.name for request in result.approvals)
        raise ToolError(f"{name} cannot go on: a run inside another cannot wait for approvals ({waiting})")
    return result.output_text if form is None else form.plain(result.output)


async def _its_own_run(
    runner: Runner, input: str, output_type: object, context: ToolContext
) -> RunResult[Any]:
    """Begun, or where both runs are kept and the call was cut off, gone on with: what it did it does not do again."""
    acting: ActingOptions = {
        "principal": context.run.principal,
        "tenant": context.run.tenant,
        "credentials": context.run.credentials,
        "labels": {
            **context.run.labels,
            "parent_run_id": context.run.run_id,
            "parent_call_id": context.call.call_id,
        },
    }
    if not (in_tool.get() and runner.keeps_runs):
        return await runner.run(input, output_type=output_type, **acting)
    run_id = f"agent_{context.idempotency_key}"
    try:
        return await runner.run(input, output_type=output_type, run_id=run_id, **acting)
    except RunExists:
        return await runner.recover(run_id, output_type=output_type, **acting)


def agent_reference(
    name: str,
    description: str,
    *,
    executor: str,
    configuration: str,
    output_schema: Mapping[str, JsonValue],
    parameters: Mapping[str, JsonValue] | None = None,
    **options: Any,
) -> AnyTool:
    """An agent as a tool of a registry's toolset: `Toolset("helpers", [agent_reference(…)]).export(version=…)`.

    It runs where it is called, by the executor that the consumer registered under the name `executor`, which
    is told `configuration`: an immutable reference, such as `installer/revisions/7`. An accepted call keeps
    both, and its result contract. `parameters`: by default one text, `input`. `options`: see `Contract`.
    """
    given = options.pop("publication", None) or Publication()
    publication = Publication(
        kind="agent",
        title=given.title,
        search_terms=given.search_terms,
        required_labels=given.required_labels,
        confirmation=given.confirmation,
        executor=executor,
        configuration=configuration,
    )
    options.setdefault("timeout", 600.0)
    contract = Contract(
        name=name,
        description=description,
        parameters=dict(parameters) if parameters is not None else _one_text(),
        output_schema=dict(output_schema),
        publication=publication,
        **options,
    )

    def runs_elsewhere(**arguments: Any) -> NoReturn:
        raise RuntimeError(f"{name} is a reference: it runs where a registry's consumer calls it")

    runs_elsewhere.__annotations__ = {}
    return Tool(contract, runs_elsewhere)


def agent_executor(runner_for: Callable[[str], Runner | Awaitable[Runner]]) -> Executor:
    """An executor for `ptc.register_executor`: runs each call by the runner of its configuration.

    `runner_for(configuration)` gives the runner, or raises for a configuration that it does not know. A single
    parameter `input` is the run's input, other arguments are as JSON; an object is asked for as structured output.
    """

    async def run(
        configuration: str, arguments: JsonObject, contract: Contract, context: ToolContext
    ) -> JsonValue:
        found = runner_for(configuration)
        runner = await found if inspect.isawaitable(found) else found
        text = arguments.get("input") if set(arguments) == {"input"} else None
        schema = contract.output_schema
        asked = None if schema is None or schema.get("type") == "string" else thaw_object(schema)
        return await _inner_run(
            runner, contract.name, text if isinstance(text, str) else dumps(arguments), asked, context
        )

    return run


def _one_text() -> JsonObject:
    return {
        "type": "object",
        "properties": {"input": {"type": "string", "description": "The task, with all that it needs."}},
        "required": ["input"],
        "additionalProperties": False,
    }
