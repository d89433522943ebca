"""How a program ended, told by evidence: the frame that says so, or the wait status of its process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping
from typing import Final

from ptc_sandbox.forkserver import Exit
from ptc_sandbox.journal import Journal, JournalHeader
from ptc_sandbox.limits import Limits
from ptc_sandbox.result import ProgramError, ProgramResult, Status
from ptc_sandbox.wire import EndFrame
from ptc_tools.call import JsonObject

BY_HOST: Final[Mapping[str, str]] = {
    "killed:time": "the host's clock",
    "killed:output": "the host's counter of what was printed",
    "killed:calls": "the host's counter of calls and timers",
    "killed:protocol": "the host's table of frames",
}
"""What the host knows it by, where it ended a program itself; of any other end it knows because it was asked to."""


def by_host(status: Status) -> str:
    """The evidence for an end that the host made."""
    return BY_HOST.get(status, "the host")


def of_source(code: str, header: JournalHeader, limits: Limits) -> ProgramResult | None:
    """The end of a program that is not even started, or None for one that may be."""
    size = len(code.encode("utf-8", "surrogatepass"))
    if size > limits.source_bytes:
        message = f"the program takes {size} bytes; at most {limits.source_bytes}"
        error = ProgramError("SourceTooLong", message, code="source_too_long", wall="host")
    elif len(code.encode("utf-8", "replace")) != size:
        message = "the program holds a lone surrogate, which is not text"
        error = ProgramError("SourceNotText", message, code="source_not_text", wall="host")
    else:
        return None
    return ProgramResult(
        "denied", None, "", error, (), Journal(header), 0, 0, None, "the source, before any process"
    )


def of_frame(frame: EndFrame, limits: Limits) -> tuple[Status, ProgramError | None, str]:
    """The program told its own end. A claim, but one that can only hurt itself."""
    match frame.status:
        case "completed":
            return "completed", None, "result frame"
        case "memory":
            return "killed:memory", _out_of_memory(limits), "uncaught MemoryError under the memory limit"
        case "denied":
            error = _error(frame.error or {})
            return "denied", error, f"refused by the {error.wall} wall"
    return "raised", _error(frame.error or {}), "exception frame"


def of_exit(exit: Exit, limits: Limits) -> tuple[Status, ProgramError, str]:
    """The process went without telling: classify by its wait status."""
    match exit.signal:
        case signal.SIGSYS:
            message = "the program made a system call that the kernel wall forbids"
            return (
                "killed:syscall",
                ProgramError("Killed", message, wall="kernel"),
                "SIGSYS from the seccomp filter",
            )
        case signal.SIGXCPU:
            message = f"the program used more than {limits.cpu_seconds} s of CPU time"
            return "killed:cpu", ProgramError("Killed", message, wall="kernel"), "SIGXCPU from RLIMIT_CPU"
        case signal.SIGKILL if exit.cpu_us >= limits.cpu_seconds * 1_000_000:
            message = f"the program used more than {limits.cpu_seconds} s of CPU time"
            return (
                "killed:cpu",
                ProgramError("Killed", message, wall="kernel"),
                "SIGKILL at the hard RLIMIT_CPU",
            )
        case signal.SIGKILL if exit.peak_bytes >= limits.memory_bytes:
            return "killed:memory", _out_of_memory(limits), f"SIGKILL at a peak of {exit.peak_bytes} bytes"
        case None:
            code = os.waitstatus_to_exitcode(exit.status)
            message = "the program's process ended without a result"
            return (
                "crashed",
                ProgramError("Crashed", message, wall="kernel"),
                f"exit status {code}, no result frame",
            )
    name = signal.Signals(exit.signal).name
    message = f"the program's process crashed with {name}; nothing but the program was harmed"
    return "crashed", ProgramError("Crashed", message, wall="kernel"), f"{name}, no result frame"


def out_of_time(limits: Limits, waiting: Iterable[str], *, asleep: bool) -> str:
    """What is said of a program that its wall clock ended: `waiting` names the tools whose calls were pending."""
    names = ", ".join(waiting)
    doing = f"waited for {names}" if names else "slept" if asleep else "computed"
    return f"the program took longer than {limits.wall_seconds:g} s, while it {doing}"


def _out_of_memory(limits: Limits) -> ProgramError:
    message = f"the program needed more than its {limits.memory_bytes // (1024 * 1024)} MiB of memory"
    return ProgramError("MemoryError", message, wall="kernel")


def _error(error: JsonObject) -> ProgramError:
    """The guest's description, with nothing but what it may say and in bounds."""
    line, excerpt, code = error.get("line"), error.get("excerpt"), error.get("code")
    return ProgramError(
        type=str(error.get("type"))[:100],
        message=str(error.get("message"))[:4000],
        line=line if type(line) is int else None,
        excerpt=excerpt[:2000] if isinstance(excerpt, str) else None,
        code=code[:100] if isinstance(code, str) else None,
        wall="kernel"
        if error.get("wall") == "kernel"
        else "language"
        if error.get("wall") == "language"
        else None,
    )
