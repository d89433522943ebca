"""A runner as a tool of another runner: the inner run is a call of the outer one.

It has its own history, limits and tools. It takes the outer run's principal, tenant, labels, credentials and
cancellation, and names the outer run and call in its labels, so that the audit record shows whose it is. What
it may do is what it was set up with: nothing that the outer model says widens it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ptc.structured import OutputFormat
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.context import ToolContext
from ptc_tools.contract import Contract
from ptc_tools.tool import AnyTool, Tool

if TYPE_CHECKING:
    from ptc.runner import Runner


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
    decide, so give such a runner an approver that answers at once.
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
        parameters={
            "type": "object",
            "properties": {"input": {"type": "string", "description": "The task, with all that it needs."}},
            "required": ["input"],
            "additionalProperties": False,
        },
        output_schema=result,
        allowed_callers=callers,
        **options,
    )

    async def run_agent(input: str, context: ToolContext) -> JsonValue:
        result = await runner.run(
            input,
            output_type=output_schema,
            principal=context.run.principal,
            tenant=context.run.tenant,
            credentials=context.run.credentials,
            labels={
                **context.run.labels,
                "parent_run_id": context.run.run_id,
                "parent_call_id": context.call.call_id,
            },
        )
        if result.refusal is not None:
            raise RuntimeError(f"{name} refused: {result.refusal}")
        if result.status == "paused":
            waiting = ", ".join(request.name for request in result.approvals)
            raise RuntimeError(
                f"{name} cannot go on: a run inside another cannot wait for approvals ({waiting})"
            )
        return result.output_text if form is None else form.plain(result.output)

    return Tool(contract, run_agent)
