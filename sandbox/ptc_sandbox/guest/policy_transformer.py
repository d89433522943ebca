"""The policy: a walk over the syntax tree that refuses, by one table of node types, and writes the guards in.

Names are checked here, once, so that attribute access, items, iteration and calls stay plain bytecode. Only
where a name is harmless on some objects and not on others is a call of a guard written into the tree. What
is not known here is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ptc_sandbox.guest import policy_names as names
from ptc_sandbox.guest.guards_format import unsafe_field
from ptc_sandbox.guest.policy_names import Rule
from ptc_sandbox.guest.policy_tree import (
    ATTRIBUTE,
    OWN,
    PATTERN_CHILDREN,
    attribute_message,
    bound_by,
    guard_call,
    insert_entry_check,
    takes_self,
)
from ptc_sandbox.guest.policy_walk import ImportRules

RESULT: Final = ".value"
_SAID_OF_A_CLASS: Final = frozenset(("__name__", "__qualname__", "__doc__", "__module__"))


class _Method:
    """A method of a class, while its body is checked: its `self`, and whether a check at its entry is needed."""

    __slots__ = ("checked", "in_plain_class", "node", "stable")

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef, in_plain_class: bool) -> None:
        self.node = node
        self.in_plain_class = in_plain_class
        self.checked = False
        self.stable: bool | None = None

    def self_is_stable(self) -> bool:
        """Whether `self` means the first argument throughout the method, nested functions included."""
        if self.stable is None:
            first = (self.node.args.posonlyargs + self.node.args.args)[0]
            self.stable = not any(
                "self" in bound_by(node) and node is not first for node in ast.walk(self.node)
            )
        return self.stable


class ProgramPolicy(ImportRules):
    """The transformer with our policy: one table of node types, and a method for each that needs a look."""

    def __init__(self) -> None:
        super().__init__()
        self._in_pattern = 0
        self._class_depth: list[bool] = []  # innermost scope is a class body
        self._methods: list[_Method] = []
        self._bound: frozenset[str] | None = None
        self._class_said_of: ast.Attribute | None = None
        self._tree: ast.Module

    def check(self, tree: ast.Module) -> None:
        """Check `tree` and rewrite it in place. Raises PolicyViolation at the first thing refused."""
        self._tree = tree
        self._statements(tree.body)
        if tree.body and isinstance(last := tree.body[-1], ast.Expr):
            target = ast.copy_location(ast.Name(RESULT, ast.Store()), last)
            tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)

    # -- names ---------------------------------------------------------------------------------------

    def _name(self, node: ast.Name) -> ast.AST:
        name = node.id
        if node.ctx.__class__ is not ast.Load:
            self._bind(name, node)
        elif name.startswith("_"):
            if not names.may_read(name):
                hint = names.REFUSED_BUILTINS.get(name, "Choose another name.")
                raise self._refused("forbidden_name", f"Programs may not use the name {name}. {hint}", node)
        elif name in names.REFUSED_BUILTINS and name not in self._bound_anywhere():
            hint = names.REFUSED_BUILTINS[name]
            raise self._refused("forbidden_name", f"Programs may not use {name}(). {hint}", node)
        return node

    def _bound_anywhere(self) -> frozenset[str]:
        if self._bound is None:
            self._bound = frozenset(name for node in ast.walk(self._tree) for name in bound_by(node))
        return self._bound

    def _names(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        for name in node.names:
            self._bind(name, node)
        return node

    def _arg(self, node: ast.arg) -> ast.AST:
        self._bind(node.arg, node)
        node.annotation = self._optional(node.annotation)
        return node

    def _keyword(self, node: ast.keyword) -> ast.AST:
        name = node.arg
        if name is not None and name.startswith("__") and names.is_dunder(name):
            raise self._refused("forbidden_name", f"An argument may not be called {name}.", node)
        node.value = self.visit(node.value)
        return node

    def _type_parameter(self, node: Any) -> ast.AST:
        self._bind(node.name, node)
        for field in ("bound", "default_value"):
            if getattr(node, field, None) is not None:
                setattr(node, field, self.visit(getattr(node, field)))
        return node  # type: ignore[no-any-return]

    # -- attributes ----------------------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute) -> ast.AST:
        name = node.attr
        loads = node.ctx.__class__ is ast.Load
        rule = names.load_rule(name) if loads else names.store_rule(name)
        if rule is Rule.REFUSED or (self._in_pattern and rule is not Rule.PLAIN):
            raise self._refused("forbidden_attribute", attribute_message(name), node)
        if rule is Rule.PRIVATE and self._is_checked_self(node.value):
            return node
        if name == "__class__" and not self._may_read_class(node):
            raise self._refused("forbidden_attribute", attribute_message(name), node)
        if name in _SAID_OF_A_CLASS and isinstance(node.value, ast.Attribute):
            self._class_said_of = node.value
        node.value = self.visit(node.value)
        if rule is Rule.PLAIN:
            if name == "split" and not loads and self._uses_except_star():
                raise self._refused(
                    "forbidden_attribute", "split may not be set where except* is used.", node
                )
            return node
        if rule is Rule.PRIVATE:
            node.value = guard_call(OWN, node.value, name)
            return node
        if name == "__init__" and self._is_super(node.value):
            return node
        return guard_call(ATTRIBUTE, node.value, name, node)

    def _may_read_class(self, node: ast.Attribute) -> bool:
        """`x.__class__.__name__` anywhere, `self.__class__` in a method; elsewhere `type(x)` says the same."""
        return node is self._class_said_of or (bool(self._methods) and isinstance(node.value, ast.Name))

    def _augmented(self, node: ast.AugAssign) -> ast.AST:
        """`x.name += y` reads the attribute too, and hands it to y's `__radd__`."""
        target = node.target
        if isinstance(target, ast.Attribute) and names.load_rule(target.attr) in (Rule.GUARDED, Rule.REFUSED):
            raise self._refused("forbidden_attribute", attribute_message(target.attr), target)
        node.target = self.visit(target)
        node.value = self.visit(node.value)
        return node

    def _is_checked_self(self, value: ast.expr) -> bool:
        """`self` of a method whose entry checks, once, that it is an instance of the program's own classes."""
        if value.__class__ is not ast.Name or value.id != "self" or not self._methods:
            return False
        method = self._methods[-1]
        if not method.self_is_stable():
            return False
        method.checked = True
        return True

    def _is_super(self, value: ast.expr) -> bool:
        return (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id == "super"
            and not (value.args or value.keywords)  # super(A) is a super object that may be made anew
            and "super" not in self._bound_anywhere()
        )

    def _uses_except_star(self) -> bool:
        return any(isinstance(node, ast.TryStar) for node in ast.walk(self._tree))

    def _call(self, node: ast.Call) -> ast.AST:
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr == "format" and isinstance(func.value, ast.Constant):
            self._literal_format(func)
        else:
            node.func = self.visit(func)
        arguments = node.args
        for index, argument in enumerate(arguments):
            arguments[index] = self.visit(argument)
        for keyword in node.keywords:
            self._keyword(keyword)
        return node

    def _literal_format(self, func: ast.Attribute) -> None:
        """`"…".format(…)` stays plain: its text is known, so the attributes that it reads are too."""
        assert isinstance(func.value, ast.Constant)
        if isinstance(func.value.value, str) and (field := unsafe_field(func.value.value)):
            message = f"A format string may not read the attribute {field}. Format the value itself."
            raise self._refused("forbidden_attribute", message, func)

    # -- functions and classes -----------------------------------------------------------------------

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        in_class = bool(self._class_depth) and self._class_depth[-1]
        if names.is_dunder(node.name) and node.name not in names.METHODS:
            message = f"Programs may not define {node.name}. Give the method an ordinary name."
            raise self._refused("forbidden_name", message, node)
        self._bind(node.name, node)
        self._statements(node.decorator_list)
        self._type_parameters(node)
        node.returns = self._optional(node.returns)
        self.visit(node.args)
        method = _Method(node, self._plain_class) if in_class and takes_self(node) else None
        self._class_depth.append(False)
        if method is not None:
            self._methods.append(method)
        self._statements(node.body)
        if method is not None:
            self._methods.pop()
            if method.checked:
                insert_entry_check(node, method.in_plain_class)
        self._class_depth.pop()
        return node

    _plain_class = False

    def _class(self, node: ast.ClassDef) -> ast.AST:
        self._bind(node.name, node)
        self._statements(node.decorator_list)
        self._type_parameters(node)
        self._statements(node.bases)
        for keyword in node.keywords:
            self._keyword(keyword)
        outer, self._plain_class = self._plain_class, not node.bases and not node.keywords
        self._class_depth.append(True)
        for index, statement in enumerate(node.body):
            node.body[index] = self._class_statement(statement)
        self._class_depth.pop()
        self._plain_class = outer
        return node

    def _class_statement(self, statement: ast.stmt) -> Any:
        """`__slots__` and `__match_args__` name attributes by text: only text written out here is taken."""
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, statement.value
        else:
            return self.visit(statement)
        if not (isinstance(target, ast.Name) and target.id in names.LITERAL_DUNDERS):
            return self.visit(statement)
        items = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
        if isinstance(value, ast.Dict) and target.id == "__slots__":
            items = value.keys  # type: ignore[assignment]
        for item in items:
            if not (isinstance(item, ast.Constant) and isinstance(item.value, str)):
                message = f"{target.id} must be a tuple of names written out as strings."
                raise self._refused("forbidden_name", message, item or value)
            if names.is_dunder(item.value) or names.store_rule(item.value) is Rule.REFUSED:
                raise self._refused("forbidden_attribute", attribute_message(item.value), item)
            if target.id == "__match_args__" and names.load_rule(item.value) is not Rule.PLAIN:
                raise self._refused("forbidden_attribute", attribute_message(item.value), item)
        statement.value = self.visit(value)
        if isinstance(statement, ast.AnnAssign):
            statement.annotation = self.visit(statement.annotation)
        return statement

    def _type_parameters(self, node: Any) -> None:
        for parameter in getattr(node, "type_params", ()):
            self._type_parameter(parameter)

    def _lambda(self, node: ast.Lambda) -> ast.AST:
        self.visit(node.args)
        self._class_depth.append(False)
        node.body = self.visit(node.body)
        self._class_depth.pop()
        return node

    # -- patterns ------------------------------------------------------------------------------------

    def _pattern(self, node: Any) -> ast.AST:
        """A pattern reads attributes and binds names that are strings in the tree."""
        for name in getattr(node, "kwd_attrs", ()):
            if names.load_rule(name) is not Rule.PLAIN or names.is_dunder(name):
                raise self._refused("forbidden_attribute", attribute_message(name), node)
        self._bind(getattr(node, "name", None), node)
        self._bind(getattr(node, "rest", None), node)
        self._in_pattern += 1
        for field in PATTERN_CHILDREN[type(node)]:
            child = getattr(node, field)
            if isinstance(child, list):
                self._statements(child)
            else:
                setattr(node, field, self._optional(child))
        self._in_pattern -= 1
        return node  # type: ignore[no-any-return]


_HANDLERS: Final[dict[type[ast.AST], Callable[[ProgramPolicy, Any], Any]]] = {
    ast.Name: ProgramPolicy._name,
    ast.Attribute: ProgramPolicy._attribute,
    ast.AugAssign: ProgramPolicy._augmented,
    ast.Call: ProgramPolicy._call,
    ast.keyword: ProgramPolicy._keyword,
    ast.Global: ProgramPolicy._names,
    ast.Nonlocal: ProgramPolicy._names,
    ast.arg: ProgramPolicy._arg,
    ast.FunctionDef: ProgramPolicy._function,
    ast.AsyncFunctionDef: ProgramPolicy._function,
    ast.ClassDef: ProgramPolicy._class,
    ast.Lambda: ProgramPolicy._lambda,
    ast.Import: ProgramPolicy._import,
    ast.ImportFrom: ProgramPolicy._import_from,
    ast.Try: ProgramPolicy._try,
    ast.TryStar: ProgramPolicy._try,
    ast.With: ProgramPolicy._with,
    **dict.fromkeys(PATTERN_CHILDREN, ProgramPolicy._pattern),
}
for _new in ("TypeVar", "ParamSpec", "TypeVarTuple"):  # Python 3.12
    if hasattr(ast, _new):
        _HANDLERS[getattr(ast, _new)] = ProgramPolicy._type_parameter
if hasattr(ast, "TypeAlias"):

    def _type_alias(policy: ProgramPolicy, node: Any) -> ast.AST:
        policy._type_parameters(node)
        node.name = policy.visit(node.name)
        node.value = policy.visit(node.value)
        return node  # type: ignore[no-any-return]

    _HANDLERS[ast.TypeAlias] = _type_alias
ProgramPolicy.handlers = _HANDLERS
