"""The language wall before a program runs: source in, checked code out.

The policy itself is `policy_transformer`, its names are in `policy_names`. Nothing here runs a program.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from dataclasses import dataclass
from types import CodeType
from typing import Final

from ptc_sandbox.guest.policy_awaits import Finding, forgotten_awaits
from ptc_sandbox.guest.policy_errors import PolicyViolation
from ptc_sandbox.guest.policy_transformer import RESULT, ProgramPolicy

__all__ = [
    "CompiledProgram",
    "Finding",
    "PolicyViolation",
    "ProgramPolicy",
    "compile_program",
    "forgotten_awaits",
]

FILENAME: Final = "<program>"


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program that may run: `code` is a coroutine's where it awaits at top level.

    `result_name` is the global under which the value of a last expression is left; absent without one.
    """

    code: CodeType
    is_coroutine: bool
    result_name: str
    tree: ast.Module


def compile_program(source: str) -> CompiledProgram:
    """Check and compile a program.

    Raises PolicyViolation where it does what programs may not do, SyntaxError where it is not Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = _parse(source)
            ProgramPolicy().check(tree)
            code = compile(
                tree, FILENAME, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True, optimize=0
            )  # the transformer's own compile drops the flag, hence apart
        except RecursionError:
            raise PolicyViolation(
                "too_complex", "The program is nested too deeply. Use loops and intermediate variables."
            ) from None
    return CompiledProgram(code, bool(code.co_flags & inspect.CO_COROUTINE), RESULT, tree)


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source, FILENAME)
    except (ValueError, UnicodeError) as error:
        if isinstance(error, SyntaxError):
            raise
        raise SyntaxError(f"the source is not text that Python can read: {error}") from None
