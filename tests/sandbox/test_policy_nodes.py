"""The policy knows every node of the syntax tree of this Python, or refuses it."""

from __future__ import annotations

import ast

import pytest

from ptc_sandbox.guest.policy import PolicyViolation, ProgramPolicy
from ptc_sandbox.guest.policy_transformer import _HANDLERS
from ptc_sandbox.guest.policy_tree import CHILDREN, PATTERN_CHILDREN

MARKS = (
    ast.expr_context,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.type_ignore,
    ast.mod,
    ast.slice,
)
NOT_VISITED = {
    "ctx",
    "op",
    "ops",
    "type_comment",
    "conversion",
    "simple",
    "is_async",
    "kind",
    "value",
    "level",
}
"""Fields that hold a mark, text for tools, or the value of a constant."""

OLD_NAMES = {
    "Num",
    "Str",
    "Bytes",
    "NameConstant",
    "Ellipsis",
    "Index",
    "ExtSlice",
    "Suite",
    "AugLoad",
    "AugStore",
    "Param",
}


def _node_types() -> list[type[ast.AST]]:
    found = [value for value in vars(ast).values() if isinstance(value, type) and issubclass(value, ast.AST)]
    abstract = {
        kind for kind in found if any(other is not kind and issubclass(other, kind) for other in found)
    }
    return [
        kind
        for kind in found
        if kind not in abstract and kind.__name__ not in OLD_NAMES and not issubclass(kind, MARKS)
    ]


@pytest.mark.parametrize("kind", _node_types(), ids=lambda kind: kind.__name__)
def test_each_field_of_a_node_is_visited_or_known(kind: type[ast.AST]) -> None:
    """A new field in a new Python must not carry an unchecked name or expression past the policy."""
    if kind in CHILDREN:
        visited = set(CHILDREN[kind])
        allowed = NOT_VISITED if kind is ast.Constant else NOT_VISITED - {"value", "level"}
        assert set(kind._fields) - visited <= allowed
    elif kind in PATTERN_CHILDREN:
        checked = {"kwd_attrs", "name", "rest"}
        inert = {"value"} if kind is ast.MatchSingleton else set()
        assert set(kind._fields) == set(PATTERN_CHILDREN[kind]) | (set(kind._fields) & (checked | inert))
    elif kind in _HANDLERS:
        assert (kind.__name__, kind._fields) in HANDLED_BY_METHODS
    else:
        assert kind.__name__ in REFUSED


HANDLED_BY_METHODS = {
    ("Name", ("id", "ctx")),
    ("Attribute", ("value", "attr", "ctx")),
    ("AugAssign", ("target", "op", "value")),
    ("Call", ("func", "args", "keywords")),
    ("keyword", ("arg", "value")),
    ("Global", ("names",)),
    ("Nonlocal", ("names",)),
    ("arg", ("arg", "annotation", "type_comment")),
    *(
        (name, ("name", "args", "body", "decorator_list", "returns", "type_comment"))
        for name in ("FunctionDef", "AsyncFunctionDef")
    ),
    *(
        (name, ("name", "args", "body", "decorator_list", "returns", "type_comment", "type_params"))
        for name in ("FunctionDef", "AsyncFunctionDef")
    ),
    ("ClassDef", ("name", "bases", "keywords", "body", "decorator_list")),
    ("ClassDef", ("name", "bases", "keywords", "body", "decorator_list", "type_params")),
    ("Lambda", ("args", "body")),
    ("Import", ("names",)),
    ("ImportFrom", ("module", "names", "level")),
    ("Try", ("body", "handlers", "orelse", "finalbody")),
    ("With", ("items", "body", "type_comment")),
    ("TryStar", ("body", "handlers", "orelse", "finalbody")),
    ("TypeVar", ("name", "bound")),
    ("TypeVar", ("name", "bound", "default_value")),
    *((name, ("name",)) for name in ("ParamSpec", "TypeVarTuple")),
    *((name, ("name", "default_value")) for name in ("ParamSpec", "TypeVarTuple")),
    ("TypeAlias", ("name", "type_params", "value")),
}
REFUSED = {
    "TemplateStr",
    "Interpolation",
    "alias",
    "ExceptHandler",
}  # the last two are reached from their statements only


@pytest.mark.parametrize(
    "node", [ast.Interactive([]), ast.Expression(ast.Constant(1)), ast.FunctionType([], ast.Constant(1))]
)
def test_a_node_that_no_program_has_is_refused(node: ast.AST) -> None:
    """RestrictedPython's rule: what nobody reviewed is not admitted."""
    with pytest.raises(PolicyViolation) as caught:
        ProgramPolicy().visit(node)

    assert caught.value.code == "forbidden_syntax"


def test_a_node_type_from_the_future_is_refused() -> None:
    """A new Python brings new syntax, and with it perhaps new ways to read an attribute."""

    class Future(ast.expr):
        _fields = ("value",)

    with pytest.raises(PolicyViolation):
        ProgramPolicy().visit(Future())
