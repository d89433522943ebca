"""Which names a tool may have: on the wire, in a namespace, and in a program.

Names are the first thing a model is told and the last thing dispatch looks at, so a name that the API
refuses, or that means something of its own there, is refused when the tool is registered (wire.md, rule 19).
"""

from __future__ import annotations

import builtins
import keyword
import re

from ptc_tools.errors import InvalidName

PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,64}")

# The `type` of every tool and tool choice of openai/types/responses (3.57): the API calls its own tools by
# these names, and a function of the same name is rejected (`tool_search`) or confused with the hosted one.
_TOOL_TYPES = frozenset(
    {
        "apply_patch",
        "code_interpreter",
        "computer",
        "computer_use",
        "computer_use_preview",
        "custom",
        "file_search",
        "function",
        "image_generation",
        "local_shell",
        "mcp",
        "namespace",
        "programmatic_tool_calling",
        "shell",
        "tool_search",
        "web_search",
        "web_search_preview",
    }
)
# Names that the models' own prompt format gives to what hosts tools there: the Python tool, the wrapper for
# parallel calls and the namespace of all functions.
_PROMPT_NAMES = frozenset({"functions", "multi_tool_use", "python"})
# A program must not be able to change its tools; these raise in every program (DESIGN.md).
_PROGRAM_NAMES = frozenset({"add_tools", "remove_tools"})

RESERVED = _TOOL_TYPES | _PROMPT_NAMES | _PROGRAM_NAMES
# Inside a namespace a name is qualified, so only those stay reserved that dispatch by name alone.
RESERVED_IN_NAMESPACE = _PROGRAM_NAMES | {"tool_search", "programmatic_tool_calling", "multi_tool_use"}
# What a program finds ready beside Python's builtins: a tool of that name would stand in its place.
_READY = frozenset(
    {"asyncio", "exit", "help", "quit", "ToolError", "ToolDenied", "ToolTimeout", "ToolUncertain"}
)
_BUILTINS = _READY | (frozenset(dir(builtins)) - {"copyright", "credits", "license", "_"})
# The core's own prefix (extensions use their own).
RESERVED_NAMESPACES = RESERVED | {"ptc"}


def check_name(name: object, *, namespace: str | None = None) -> str:
    """Return `name` if a tool may have it; raise `InvalidName` that says why not."""
    checked = _check_pattern(name, "tool name")
    reserved = RESERVED if namespace is None else RESERVED_IN_NAMESPACE
    if checked.lower() in reserved:
        raise InvalidName(f"tool name {checked!r} is reserved by the API; choose another name")
    return checked


def check_namespace(namespace: object) -> str:
    """Return `namespace` if tools may be in it; raise `InvalidName` that says why not."""
    checked = _check_pattern(namespace, "namespace")
    if checked.lower() in RESERVED_NAMESPACES:
        raise InvalidName(f"namespace {checked!r} is reserved; choose another name")
    return checked


def check_program_name(namespace: str | None, name: str) -> None:
    """Raise `InvalidName` if a Python program could not call a tool of this name, or would miss what it hides."""
    identifier = _joined(namespace, name)
    if keyword.iskeyword(identifier) or keyword.issoftkeyword(identifier):
        what = f"{identifier!r} is a word of the Python language"
    elif identifier in _BUILTINS:
        what = f"{identifier!r} is what Python itself calls something that programs use"
    elif identifier.startswith("_") and identifier.endswith("_"):
        what = f"{identifier!r} is a name of the kind that Python and the sandbox keep for themselves"
    else:
        return
    raise InvalidName(
        f"tool {name!r} cannot be called by programs: {what}; rename it (say {_other(identifier)!r}), put it into a"
        " namespace, or leave 'programmatic' out of allowed_callers"
    )


def _other(identifier: str) -> str:
    return f"{identifier.strip('_') or 'my'}_tool"


def _joined(namespace: str | None, name: str) -> str:
    return (f"{namespace}_{name}" if namespace else name).replace("-", "_")


def program_name(namespace: str | None, name: str) -> str:
    """The Python identifier by which a local program calls the tool: `records.search` is `records_search`.

    Hyphens become underscores, a leading digit gets the prefix `tool_`, a Python keyword a trailing `_`.
    Two tools may come to the same identifier; `Catalog` refuses that.
    """
    identifier = _joined(namespace, name)
    if identifier[:1].isdigit():
        identifier = f"tool_{identifier}"
    if keyword.iskeyword(identifier) or keyword.issoftkeyword(identifier):
        identifier += "_"
    return identifier


def _check_pattern(name: object, what: str) -> str:
    if not isinstance(name, str):
        raise InvalidName(f"{what} must be a string, not {type(name).__name__}")
    if what == "tool name" and name.count(".") == 1:
        namespace, _, bare = name.partition(".")
        raise InvalidName(f"tool name {name[:100]!r}: write name={bare!r}, namespace={namespace!r}")
    if not PATTERN.fullmatch(name):
        raise InvalidName(
            f"{what} {name[:100]!r} is refused by the API: 1 to 64 letters, digits, underscores and hyphens"
        )
    return name


def is_qualified_name(text: str) -> bool:
    """Whether it has the form of a tool's qualified name: `name`, or `namespace.name`."""
    return _QUALIFIED.fullmatch(text) is not None


_QUALIFIED = re.compile(r"(?:[a-zA-Z0-9_-]{1,64}\.)?[a-zA-Z0-9_-]{1,64}")
