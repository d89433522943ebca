"""A runner as a tool of another runner: the inner run is a call of the outer one.

It has its own history, limits and tools. It takes the outer run's principal, labels and cancellation, and
names the outer run and call in its labels, so that the audit record shows whose it is. What it may do is
what it was set up with: nothing that the outer model says widens it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.context import ToolContext
from ptc_tools.tool import AnyTool, define_tool

if TYPE_CHECKING:
    from ptc.runner import Runner


def agent_tool(
    runner: Runner,
    name: str,
    description: str,
    output_schema: Mapping[str, JsonValue] | None = None,
    **options: Any,
) -> AnyTool:
    """The tool `name(input: str)` that runs `runner` and gives its answer.

    With `output_schema` the inner run is asked for such data and the tool gives it; else it gives the text.
    `options` are those of `define_tool`, and `allowed_callers`. A refusal or an error of the inner run is a
    failure of the call.
    """
    definition: JsonObject = {
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": {"input": {"type": "string", "description": "The task, with all that it needs."}},
            "required": ["input"],
            "additionalProperties": False,
        },
        "strict": True,
    }
    if output_schema is not None:
        definition["output_schema"] = dict(output_schema)
    callers = options.pop("allowed_callers", None)
    if callers is not None:
        definition["allowed_callers"] = list(callers)
    text_for_programs = output_schema is None and callers is not None and "programmatic" in callers
    if text_for_programs:
        definition["output_schema"] = {"type": "string"}
    options.setdefault("timeout", 600.0)

    async def run_agent(input: str, context: ToolContext) -> JsonValue:
        result = await runner.run(
            input,
            output_type=output_schema,
            principal=context.run.principal,
            labels={
                **context.run.labels,
                "parent_run_id": context.run.run_id,
                "parent_call_id": context.call.call_id,
            },
        )
        if result.refusal is not None:
            raise RuntimeError(f"{name} refused: {result.refusal}")
        if output_schema is None:
            return result.output_text
        return strict_json.loads(strict_json.dumps(result.output))

    return define_tool(definition, run_agent, **options)
