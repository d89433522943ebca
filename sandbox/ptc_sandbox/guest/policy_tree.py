"""Pieces of the syntax tree that the policy asks about or writes: names that nodes bind, calls of guards.

The names of guards hold a dot, so that no program can spell, bind or shadow one.
"""

from __future__ import annotations

import ast
from typing import Final

from ptc_sandbox.guest import policy_names as names

ATTRIBUTE: Final = ".attribute"  # guard: (object, name) → the attribute
OWN: Final = ".own"  # guard: (object, name) → the object, if the program defined it
CLASSES: Final = ".classes"  # the classes that the program defined, by address
TYPE: Final = ".type"  # the real `type`
ID: Final = ".id"  # the real `id`


PATTERN_CHILDREN: Final[dict[type[ast.AST], tuple[str, ...]]] = {
    ast.MatchValue: ("value",),
    ast.MatchSingleton: (),
    ast.MatchSequence: ("patterns",),
    ast.MatchMapping: ("keys", "patterns"),
    ast.MatchClass: ("cls", "patterns", "kwd_patterns"),
    ast.MatchStar: (),
    ast.MatchAs: ("pattern",),
    ast.MatchOr: ("patterns",),
}
"""Patterns, and the fields of each that are visited."""

CHILDREN: Final[dict[type[ast.AST], tuple[str, ...]]] = {
    # expressions; operators and contexts are bare marks and are not visited
    ast.BoolOp: ("values",),
    ast.NamedExpr: ("target", "value"),
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
    ast.IfExp: ("test", "body", "orelse"),
    ast.Dict: ("keys", "values"),
    ast.Set: ("elts",),
    ast.ListComp: ("elt", "generators"),
    ast.SetComp: ("elt", "generators"),
    ast.DictComp: ("key", "value", "generators"),
    ast.GeneratorExp: ("elt", "generators"),
    ast.comprehension: ("target", "iter", "ifs"),
    ast.Await: ("value",),
    ast.Yield: ("value",),
    ast.YieldFrom: ("value",),
    ast.Compare: ("left", "comparators"),
    ast.FormattedValue: ("value", "format_spec"),
    ast.JoinedStr: ("values",),
    ast.Constant: (),
    ast.Subscript: ("value", "slice"),
    ast.Starred: ("value",),
    ast.List: ("elts",),
    ast.Tuple: ("elts",),
    ast.Slice: ("lower", "upper", "step"),
    # statements
    ast.Return: ("value",),
    ast.Delete: ("targets",),
    ast.Assign: ("targets", "value"),
    ast.AnnAssign: ("target", "annotation", "value"),
    ast.For: ("target", "iter", "body", "orelse"),
    ast.AsyncFor: ("target", "iter", "body", "orelse"),
    ast.While: ("test", "body", "orelse"),
    ast.If: ("test", "body", "orelse"),
    ast.AsyncWith: ("items", "body"),
    ast.withitem: ("context_expr", "optional_vars"),
    ast.Match: ("subject", "cases"),
    ast.match_case: ("pattern", "guard", "body"),
    ast.Raise: ("exc", "cause"),
    ast.Assert: ("test", "msg"),
    ast.Expr: ("value",),
    ast.Pass: (),
    ast.Break: (),
    ast.Continue: (),
    ast.arguments: ("posonlyargs", "args", "vararg", "kwonlyargs", "kw_defaults", "kwarg", "defaults"),
}
"""Every other node type that may stand in a program, and the fields of each that are visited. Not visited are
operators and contexts, which are bare marks, constants, and the names that the policy checks itself."""


def attribute_message(name: str) -> str:
    if name == "__class__":
        return "Programs may not use __class__ here. Use type(x) or isinstance(x, T)."
    if name == "__dict__":
        return "Programs may not use __dict__ here. Use vars(x) or dataclasses.asdict(x)."
    if names.is_dunder(name):
        return f"Programs may not use the special attribute {name}."
    if name.startswith("_"):
        return (
            f"The attribute {name} is private. Only attributes of the program's own classes may start with _."
        )
    return f"Programs may not use the attribute {name}: it leads to the interpreter's internals."


def guard_call(guard: str, value: ast.expr, name: str, at: ast.AST | None = None) -> ast.Call:
    call = ast.Call(ast.Name(guard, ast.Load()), [value, ast.Constant(name)], [])
    for node in (call, call.func, call.args[1]):
        ast.copy_location(node, at or value)
    return call


def takes_self(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    first = (node.args.posonlyargs + node.args.args)[:1]
    return (
        bool(first)
        and first[0].arg == "self"
        and not any(
            isinstance(d, ast.Name) and d.id in ("staticmethod", "classmethod") for d in node.decorator_list
        )
    )


def insert_entry_check(node: ast.FunctionDef | ast.AsyncFunctionDef, in_plain_class: bool) -> None:
    """`type(self) is __class__ or own(self)`, after the docstring: pays once for all `self._x` of a method.

    `__class__` is the compiler's own cell for the class around; a class with bases may be one whose
    metaclass does not fill it (NamedTuple), so there the set of the program's classes is asked.
    """
    at = node.body[0]
    test = "_id(_type(self)) in _classes or _own(self, '_')"
    if in_plain_class:
        test = f"_type(self) is __class__ or {test}"
    check = ast.parse(test).body[0]
    real = {"_type": TYPE, "_id": ID, "_own": OWN, "_classes": CLASSES}
    for part in ast.walk(check):
        if isinstance(part, ast.Name):
            part.id = real.get(part.id, part.id)
        if isinstance(part, (ast.expr, ast.stmt)):
            ast.copy_location(part, at)
            part.end_lineno, part.end_col_offset = part.lineno, part.col_offset
    has_docstring = (
        isinstance(at, ast.Expr) and isinstance(at.value, ast.Constant) and isinstance(at.value.value, str)
    )
    node.body.insert(int(has_docstring), check)


_IMPORT_ERRORS: Final = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")


def catches_import_error(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or _is_import_error(kind) for kind in kinds)


def suppresses_import_error(item: ast.withitem) -> bool:
    """Whether this is `suppress(ImportError)`, or looks like it: the import is decided when it runs, at any rate."""
    call = item.context_expr
    if not isinstance(call, ast.Call):
        return False
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    return name == "suppress" and any(map(_is_import_error, call.args))


def _is_import_error(kind: ast.expr) -> bool:
    return isinstance(kind, ast.Name) and kind.id in _IMPORT_ERRORS


def bound_by(node: ast.AST) -> tuple[str, ...]:
    """The names that this node, by itself, binds in some scope."""
    match node:
        case ast.Name(ctx=ast.Store() | ast.Del()):
            return (node.id,)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return (node.name,)
        case ast.arg():
            return (node.arg,)
        case ast.alias():
            return (node.asname or node.name.partition(".")[0],)
        case ast.Global() | ast.Nonlocal():
            return tuple(node.names)
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
            return (node.name,) if node.name else ()
        case ast.MatchMapping():
            return (node.rest,) if node.rest else ()
    name = getattr(node, "name", None)
    return (name,) if isinstance(name, str) else ()
