"""What the peer's model says in the fault tests of the runner: a call, a program, an answer."""

from __future__ import annotations

from ptc.testing import ScriptedModel, call, program, say

script = ScriptedModel(
    [call("echo", x=2)],
    [program("a = await echo(x=4)\nawait side_touch()\na['x']")],
    lambda request: say(f"It is {request.program_result}."),
)
