"""OpenTelemetry's GenAI names, pinned in this one place: the conventions are still in development.

From semantic-conventions 1.38 (gen-ai, attributes and spans); names of ours begin with `ptc.`.
"""

from __future__ import annotations

from typing import Final

EXECUTE_TOOL: Final = "execute_tool"
OPERATION: Final = "gen_ai.operation.name"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
ERROR_TYPE: Final = "error.type"

EXECUTE_PROGRAM: Final = "execute_program"
PROGRAM_ID: Final = "ptc.program.id"
PROGRAM_LANGUAGE: Final = "ptc.program.language"
PROGRAM_WHERE: Final = "ptc.program.where"
PROGRAM_STATUS: Final = "ptc.program.status"
PROGRAM_CODE: Final = "ptc.program.code"
CALLER: Final = "ptc.caller"
LINE: Final = "ptc.program.line"
