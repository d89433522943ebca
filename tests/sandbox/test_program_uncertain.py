"""A program that made a change which may have happened is told which read tells."""

from ptc_sandbox import Sandbox
from ptc_sandbox.journal import Journal
from ptc_tools import Reconciliation, tool

PROGRAM = """
try:
    await update(operation="op_1")
except ToolUncertain as error:
    found = error.reconciliation
try:
    await plain(operation="op_1")
except ToolUncertain as error:
    other = error.reconciliation
[found, other]
"""


async def test_an_uncertain_call_tells_its_program_which_read_tells() -> None:
    """Its name and arguments; None where the tool declares no read. The journal gives the same."""

    @tool(
        allowed_callers=["programmatic"],
        effects="write",
        reconciliation=Reconciliation("find_operation", {"id": "operation"}),
    )
    async def update(operation: str) -> str:
        """Update."""
        raise ConnectionError

    @tool(allowed_callers=["programmatic"], effects="write")
    async def plain(operation: str) -> str:
        """Update."""
        raise ConnectionError

    expected = [{"tool": "find_operation", "arguments": {"id": "op_1"}}, None]
    async with Sandbox() as sandbox:
        result = await sandbox.run(PROGRAM, tools=[update, plain])
        assert result.value == expected, result.error
        journal = Journal.from_json(result.journal.to_json())
        again = await sandbox.run(PROGRAM, tools=[update, plain], journal=journal)
    assert again.value == expected
