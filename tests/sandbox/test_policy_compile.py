"""What `compile_program` gives: code, its kind, the value of a last expression, and refusals with a place."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator

import pytest

from benchmarks.workloads import WORKLOADS
from ptc_sandbox.guest.policy import PolicyViolation, compile_program


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


@pytest.mark.parametrize(
    ("source", "expected"), [("1 + 1", 2), ("x = 5\nx", 5), ("'''text'''", "text"), ("[a := 3][0]", 3)]
)
def test_the_value_of_a_last_expression_is_kept(source: str, expected: object) -> None:
    """It is what the program answers."""
    program = compile_program(source)
    namespace: dict[str, object] = {}
    exec(program.code, namespace)

    assert namespace[program.result_name] == expected
    assert not program.result_name.isidentifier()


@pytest.mark.parametrize("source", ["x = 1", "", "# nothing", "for i in []: i", "if 1: 2"])
def test_a_program_without_a_last_expression_has_no_value(source: str) -> None:
    """A statement's inner expression is not the program's value."""
    program = compile_program(source)
    namespace: dict[str, object] = {}
    exec(program.code, namespace)

    assert program.result_name not in namespace


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("await f()", True),
        ("async with a: pass", True),
        ("[x async for x in y]", True),
        ("async def f(): await g()", False),
    ],
)
def test_a_program_that_awaits_at_top_level_is_a_coroutine(source: str, expected: bool) -> None:
    """The caller has to run it on a loop."""
    assert compile_program(source).is_coroutine is expected


@pytest.mark.parametrize(
    ("source", "code", "line", "column"),
    [
        ("x = 1\nimport os", "forbidden_import", 2, 0),
        ("x = 1\ny = [x.__globals__]", "forbidden_attribute", 2, 5),
        ("def f():\n    return eval('1')", "forbidden_name", 2, 11),
        ("def f(a, __builtins__): pass", "forbidden_name", 1, 9),
        ("match 1:\n    case object(__self__=x): pass", "forbidden_attribute", 2, 9),
    ],
)
def test_a_refusal_says_where(source: str, code: str, line: int, column: int) -> None:
    """A model mends a program by its line."""
    with pytest.raises(PolicyViolation) as caught:
        compile_program(source)

    assert (caught.value.code, caught.value.line, caught.value.column) == (code, line, column)
    assert caught.value.message


@pytest.mark.parametrize(
    ("source", "line"),
    [("x = (", 1), ("x = 1\nreturn x", 2), ("a\nb c", 2), ("x = '\ud800'", None), ("\0", None)],
)
def test_what_is_not_python_is_a_syntax_error(source: str, line: int | None) -> None:
    """It is the program's mistake, not a breach."""
    with pytest.raises(SyntaxError) as caught:
        compile_program(source)

    assert line is None or caught.value.lineno == line


@pytest.mark.parametrize("source", ["-" * 5000 + "1", "a" + ".b" * 5000, "f(" * 80 + ")" * 80 + "+1" * 9000])
def test_nesting_without_end_is_refused_or_a_syntax_error(source: str) -> None:
    """The parser, the policy and the compiler recurse: none of them may take the process down."""
    with pytest.raises((PolicyViolation, SyntaxError, MemoryError)):
        compile_program(source)


@pytest.mark.parametrize(
    "name", ["loop", "group-by", "strings", "sort", "recursion", "comprehension", "unpacking"]
)
def test_code_without_computed_or_private_names_is_plain_bytecode(name: str) -> None:
    """That is why a program runs at CPython's speed behind the wall."""
    source = WORKLOADS[name] + "\npass\n"
    walled = compile_program(source).code
    plain = compile(source, "<program>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)

    assert [code.co_code for code in _codes(walled)] == [code.co_code for code in _codes(plain)]


def test_private_attributes_of_self_cost_one_check_for_each_method() -> None:
    """However often a method says `self._x`, who `self` is was settled at its entry."""
    body = "".join(f"        self._a{i} = self._b{i}\n" for i in range(20))
    code = compile_program(f"class A:\n    def m(self):\n{body}").code
    method = next(inner for inner in _codes(code) if inner.co_name == "m")

    assert method.co_names.count(".own") == 1
    assert {name for name in method.co_names if name.startswith(".")} == {".type", ".id", ".classes", ".own"}
