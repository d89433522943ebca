"""What takes long: ten thousand programs through one pool, and hostile children by the hundred thousand frames."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptc_sandbox import Limits, ProgramResult, Sandbox
from ptc_sandbox.errors import ProtocolViolation
from tests.sandbox.conftest import descendants
from tests.sandbox.granted import TOOLS
from tests.sandbox.test_wire import FRAMES, LIMITS, frame, running

pytestmark = pytest.mark.soak

HOSTILE = """
import os, random, struct
random.seed({seed})
KINDS = ["ready", "call", "cancel", "blocked", "out", "refused", "end", "answer", "tick", "start", "x"]
def value(depth=0):
    kind = random.randrange(9)
    if kind == 0: return random.choice(["null", "true", "NaN", "1e999", "-1", "9" * 400, "0.5", '"\\\\ud800"', '""'])
    if kind == 1: return str(random.randrange(-3, 5))
    if kind == 2: return '"' + "x" * random.randrange(40) + '"'
    if kind == 3 and depth < 4: return "[" + ",".join(value(depth + 1) for _ in range(random.randrange(4))) + "]"
    if kind == 4 and depth < 4: return "{{" + ",".join('"k%d":%s' % (random.randrange(2), value(depth + 1)) for _ in range(random.randrange(3))) + "}}"
    return str(random.randrange(3))
calls = 0
for _ in range(2000):
    kind = random.choice(["call", "out", "blocked", "cancel"]) if random.random() < 0.998 else random.choice(KINDS)
    if kind == "call":
        calls += 1
        body = '["call",%d,"get",{{"i":%s}},null,null]' % (calls, value())
    elif kind == "out": body = '["out","x"]'
    elif kind == "blocked": body = '["blocked",%d,[],null]' % random.randrange(2)
    elif kind == "cancel": body = '["cancel",%d]' % random.randrange(1, max(2, calls + 1)) if random.random() < 0.01 else '["out",""]'
    else: body = '["%s",%s]' % (kind, value())
    data = body.encode()
    if random.random() < 0.001: data = os.urandom(8) if False else bytes(random.randrange(256) for _ in range(8))
    try:
        os.write(3, struct.pack("<I", len(data)) + data)
    except OSError:
        break
"""


def resident_kb() -> int:
    return int(
        next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line).split()[
            1
        ]
    )


async def test_ten_thousand_programs_leave_everything_flat() -> None:
    """Descriptors, memory and processes of the host, and of the fork server, do not grow."""
    async with Sandbox(ahead=2) as box:
        for _ in range(300):
            await box.run("await get(i=1)", tools=TOOLS)
        gc.collect()
        server = min(descendants())
        fds, kb, processes = len(os.listdir("/proc/self/fd")), resident_kb(), len(descendants())
        server_fds = len(os.listdir(f"/proc/{server}/fd"))
        for number in range(10_000):
            result = await box.run(f"await get(i={number})", tools=TOOLS)
            assert result.value == number
        gc.collect()
        assert abs(len(os.listdir("/proc/self/fd")) - fds) <= 4
        assert abs(len(os.listdir(f"/proc/{server}/fd")) - server_fds) <= 4
        assert abs(len(descendants()) - processes) <= 3
        assert resident_kb() - kb < 10_000


async def test_hostile_children_by_the_hundred_thousand_frames() -> None:
    """Whatever a child writes, the host ends it with a documented status and goes on; memory stays bounded."""
    limits = Limits(wall_seconds=10, calls=5000, output_bytes=1 << 20)
    statuses: dict[str, int] = {}
    async with Sandbox(language_wall=False, limits=limits) as box:
        before = resident_kb()
        for seed in range(120):
            result: ProgramResult = await box.run(HOSTILE.format(seed=seed), tools=TOOLS)
            statuses[result.status] = statuses.get(result.status, 0) + 1
        assert (await box.run("result = await get(i=7)", tools=TOOLS)).value == 7
        assert resident_kb() - before < 100_000
    assert set(statuses) <= {"completed", "killed:protocol", "denied", "raised", "killed:calls", "crashed"}
    assert statuses.get("killed:protocol", 0) > 0


@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.tuples(FRAMES, FRAMES, FRAMES, FRAMES, FRAMES))
def test_a_hundred_thousand_frames_raise_nothing_but_violations(chunks: tuple[bytes, ...]) -> None:
    """20,000 connections of five generated frames each."""
    wire = running()
    wire.receive(frame(["call", 1, "get", {}, None, None]))
    for chunk in chunks:
        try:
            wire.receive(chunk)
        except ProtocolViolation:
            wire = running()
        assert len(wire._buffer) <= LIMITS.frame_bytes + 4
