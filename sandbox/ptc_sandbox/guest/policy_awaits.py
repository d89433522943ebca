"""Finds calls of tools whose result is thrown away or used before it is awaited.

Conservative: a coroutine that is awaited, returned, stored, or passed to anything that might await it is
none of this module's business: what is forgotten all the same is told when the program has ended
(`guest.tools`). A finding is a mistake for certain.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ptc_sandbox.guest.policy_names import words

_NEVER_AWAIT = frozenset(
    words(
        "print len str repr int float bool sorted sum min max abs round any all isinstance range enumerate "
        "format hash ord chr dict set frozenset bytes"
    )
)
"""Builtins for which a coroutine is never a right argument."""

_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.ListComp, ast.SetComp)
_COROUTINE_METHODS = frozenset(("send", "throw", "close"))


@dataclass(frozen=True, slots=True)
class Finding:
    """A call of a tool that is never awaited. `column` counts from 0."""

    line: int
    column: int
    name: str
    message: str


def forgotten_awaits(tree: ast.Module, tool_names: Collection[str]) -> list[Finding]:
    """The calls of tools in `tree` that certainly miss their `await`, in the order of the source.

    `tree` is the program's, before or after the policy rewrote it. A name that the program binds itself is
    not taken for a tool.
    """
    return _Search(tree, frozenset(tool_names)).findings()


class _Search:
    def __init__(self, tree: ast.Module, tools: frozenset[str]) -> None:
        self._tree = tree
        self._parents: dict[ast.AST, ast.AST] = {}
        self._stores: dict[str, list[ast.Name]] = defaultdict(list)
        self._loads: dict[str, list[ast.Name]] = defaultdict(list)
        bound: set[str] = set()
        for parent in ast.walk(tree):
            for child in ast.iter_child_nodes(parent):
                self._parents[child] = parent
            if isinstance(parent, ast.Name):
                if isinstance(parent.ctx, ast.Load):
                    self._loads[parent.id].append(parent)
                else:
                    self._stores[parent.id].append(parent)
            else:
                bound.update(_bound_otherwise(parent))
        self._bound = bound
        self._tools = tools - bound - set(self._stores)

    def findings(self) -> list[Finding]:
        """What is certain, sorted by line."""
        found = [
            Finding(call.lineno, call.col_offset, name, _message(name))
            for name, call in self._tool_calls()
            if self._is_wrong(call) or self._is_lost_in_a_variable(call)
        ]
        return sorted(found, key=lambda finding: (finding.line, finding.column))

    def _tool_calls(self) -> Iterator[tuple[str, ast.Call]]:
        for node in self._parents:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._tools:
                yield node.func.id, node

    def _is_wrong(self, node: ast.expr) -> bool:
        """Whether a coroutine in this place is a mistake for certain."""
        parent = self._parents[node]
        match parent:
            case ast.Expr():
                return True
            case ast.Assign(targets=[ast.Name(id=".value")]):
                return True  # the program's value
            case ast.Attribute():
                return parent.attr not in _COROUTINE_METHODS
            case ast.Subscript():
                return parent.value is node
            case ast.BinOp() | ast.FormattedValue() | ast.UnaryOp():
                return True
            case ast.Compare():
                return not all(
                    isinstance(operator, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for operator in parent.ops
                )
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                return parent.iter is node
            case ast.If() | ast.While():
                return parent.test is node
            case ast.IfExp():
                return parent.test is node or self._is_wrong(parent)
            case ast.BoolOp():
                return parent.values[-1] is not node or self._is_wrong(parent)  # all but the last are tested
            case ast.List() | ast.Tuple() | ast.Set() | ast.ListComp() | ast.SetComp():
                return self._is_thrown_away(parent)
            case ast.Call(func=ast.Name(id=name)):
                if name == ".attribute":
                    return True
                return name in _NEVER_AWAIT and name not in self._bound and not self._stores[name]
        return False

    def _is_thrown_away(self, display: ast.expr) -> bool:
        """A list, tuple or set that is a statement, or the program's value."""
        parent = self._parents[display]
        match parent:
            case ast.Expr() | ast.Assign(targets=[ast.Name(id=".value")]):
                return True
        return isinstance(parent, _DISPLAYS) and self._is_thrown_away(parent)

    def _is_lost_in_a_variable(self, call: ast.Call) -> bool:
        """`x = tool()` where each use of x is wrong, or there is none; `x = [tool()]` where there is none."""
        parent = self._parents[call]
        held = False
        while isinstance(parent, _DISPLAYS):
            parent, held = self._parents[parent], True
        match parent:
            case ast.Assign(targets=[ast.Name() as target]) | ast.AnnAssign(target=ast.Name() as target):
                name = target.id
            case _:
                return False
        if name in self._bound or len(self._stores[name]) != 1 or self._is_in_class_body(call):
            return False
        return not self._loads[name] if held else all(self._is_wrong(use) for use in self._loads[name])

    def _is_in_class_body(self, node: ast.AST) -> bool:
        """There a variable is an attribute, and read by other ways than its name."""
        while not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            node = self._parents[node]
            if isinstance(node, ast.ClassDef):
                return True
        return False


def _bound_otherwise(node: ast.AST) -> list[str]:
    """Names that a node binds as strings: such a name may mean several things, so it is left alone."""
    match node:
        case ast.Global() | ast.Nonlocal():
            return list(node.names)
        case ast.alias():
            return [node.asname or node.name.partition(".")[0]]
        case ast.arg():
            return [node.arg]
        case ast.MatchMapping(rest=str() as name):
            return [name]
    bound = getattr(node, "name", None)
    return [bound] if isinstance(bound, str) else []


def _message(name: str) -> str:
    return (
        f"{name}() is a tool and its call is not awaited, so it would never be made: write `await {name}(…)`."
    )
