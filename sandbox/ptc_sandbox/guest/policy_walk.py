"""The walk over a program's syntax tree, and the rules for names and imports in it.

What a node type takes is in one table, `Walk.handlers`; a node type that is not known is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from RestrictedPython.transformer import RestrictingNodeTransformer

from ptc_sandbox.guest import policy_names as names
from ptc_sandbox.guest.facades import table
from ptc_sandbox.guest.policy_errors import PolicyViolation
from ptc_sandbox.guest.policy_tree import CHILDREN, catches_import_error, suppresses_import_error


class Walk(RestrictingNodeTransformer):
    """Visits each node by the table `handlers`; what comes back stands in its place."""

    handlers: ClassVar[Mapping[type[ast.AST], Callable[[Any, Any], Any]]]

    def visit(self, node: ast.AST) -> Any:
        """Check one node; what comes back stands in its place."""
        kind = node.__class__
        handler = self.handlers.get(kind)
        if handler is not None:
            return handler(self, node)
        fields = CHILDREN.get(kind)
        if fields is None:
            return self.generic_visit(node)
        for field in fields:
            child = getattr(node, field)
            if child.__class__ is list:
                for index, item in enumerate(child):
                    if item is not None:
                        child[index] = self.visit(item)
            elif child is not None:
                setattr(node, field, self.visit(child))
        return node

    def not_allowed(self, node: ast.AST) -> None:
        """RestrictedPython comes here for every node type without a rule of ours."""
        what = type(node).__name__
        raise self._refused("forbidden_syntax", f"Programs may not use this syntax ({what}).", node)

    def _statements(self, body: list[Any]) -> None:
        for index, statement in enumerate(body):
            body[index] = self.visit(statement)

    def _optional(self, node: Any) -> Any:
        return None if node is None else self.visit(node)

    def _refused(self, code: str, message: str, node: ast.AST) -> PolicyViolation:
        return PolicyViolation(
            code, message, getattr(node, "lineno", None), getattr(node, "col_offset", None)
        )

    def _bind(self, name: str | None, node: ast.AST) -> None:
        if name is not None and name.startswith("_") and not names.may_bind(name):
            if name in names.LITERAL_DUNDERS:
                message = f"{name} may only be assigned in a class body, as a tuple of names written out."
            else:
                message = f"The name {name} is reserved. Choose another name."
            raise self._refused("forbidden_name", message, node)


class ImportRules(Walk):
    """Modules and their members by the table of facades; an import that may fail is left to the run."""

    def __init__(self) -> None:
        super().__init__()
        self._imports_may_fail = 0

    def _import(self, node: ast.Import) -> ast.AST:
        self._not_lazy(node)
        for alias in node.names:
            self._module(alias.name, node)
            self._bind(alias.asname or alias.name.partition(".")[0], node)
        return node

    def _import_from(self, node: ast.ImportFrom) -> ast.AST:
        self._not_lazy(node)
        module = node.module or ""
        if node.level:
            raise self._refused(
                "forbidden_import", "Relative imports lead nowhere: there is no package.", node
            )
        self._module(module, node)
        members = table.members(module)
        if members is not None and len(node.names) == 1 and node.names[0].name == "*":
            node.names = [ast.copy_location(ast.alias(name), node) for name in table.star(module)]
            return node
        for alias in node.names:
            self._bind(alias.asname or alias.name, node)
            if members is not None and alias.name not in members and not self._imports_may_fail:
                raise self._refused("forbidden_import", table.missing(module, alias.name), node)
            if alias.name == "*" or alias.name.startswith("_"):
                raise self._refused(
                    "forbidden_import", f"{alias.name} cannot be imported from {module}.", node
                )
        return node

    def _module(self, module: str, node: ast.AST) -> None:
        if not self._imports_may_fail and not table.has_module(module):
            raise self._refused("forbidden_import", table.no_module(module), node)

    def _not_lazy(self, node: ast.AST) -> None:
        if getattr(node, "is_lazy", 0):
            raise self._refused(
                "forbidden_syntax", "Lazy imports are not available: use a plain import.", node
            )

    def _try(self, node: ast.Try | ast.TryStar) -> ast.AST:
        """An import that may fail is left to the run: `try: import numpy` … `except ImportError:`."""
        may_fail = isinstance(node, ast.Try) and any(map(catches_import_error, node.handlers))
        self._imports_may_fail += may_fail
        self._statements(node.body)
        self._imports_may_fail -= may_fail
        for handler in node.handlers:
            handler.type = self._optional(handler.type)
            self._bind(handler.name, handler)
            self._statements(handler.body)
        self._statements(node.orelse)
        self._statements(node.finalbody)
        return node

    def _with(self, node: ast.With) -> ast.AST:
        """The same for `with suppress(ImportError): import numpy`."""
        may_fail = any(map(suppresses_import_error, node.items))
        self._statements(node.items)
        self._imports_may_fail += may_fail
        self._statements(node.body)
        self._imports_may_fail -= may_fail
        return node
