"""Finds what a `module:attr` on the command line names: the operator's own code, trusted as such.

The current directory is importable, as with `python -m`. Every way to get it wrong has a message that says
what to do.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ptc_tools.errors import PtcError


class NotLoadable(PtcError):
    """A `module:attr` that names nothing usable."""

    code = "not_loadable"


def load(name: str, option: str) -> object:
    """What `module:attr` names; `attr` may be dotted. Raises NotLoadable."""
    module_name, separator, path = name.partition(":")
    if not separator or not module_name or not path:
        raise NotLoadable(f"{option} {name!r}: write module:attr, such as mytools:TOOLS")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        value: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise NotLoadable(
                f"{option} {name!r}: there is no module {module_name!r}, neither installed nor in {here}"
            ) from None
        raise NotLoadable(f"{option} {name!r}: importing {module_name} failed: {error}") from error
    except SystemExit as error:  # with status 0 the command would end well, and would have done nothing
        raise NotLoadable(
            f"{option} {name!r}: importing {module_name} ended by sys.exit({error.code!r}); guard what is for"
            ' running it with if __name__ == "__main__"'
        ) from error
    except Exception as error:
        raise NotLoadable(
            f"{option} {name!r}: importing {module_name} failed: {type(error).__name__}: {error}"
        ) from error
    for step in path.split("."):
        if not hasattr(value, step):
            raise NotLoadable(f"{option} {name!r}: {module_name} has no attribute {step!r}{_near(value)}")
        value = getattr(value, step)
    return value


def load_tools(names: Iterable[str]) -> list[Any]:
    """The tools `--tools` names: a tool, a function, a Catalog, a Toolset, or a list of those. Raises NotLoadable."""
    return [tool for name in names for tool in _tools_of(load(name, "--tools"), name)]


def _tools_of(value: object, name: str) -> Iterator[object]:
    from ptc_tools.catalog import Catalog
    from ptc_tools.tool import Tool
    from ptc_tools.toolset import Toolset, Use

    if isinstance(value, Tool) or _is_function(value):
        yield value
    elif isinstance(value, Use) and isinstance(value.source, Toolset):
        yield from value.tools
    elif isinstance(value, (Catalog, Toolset)):
        yield from value
    elif isinstance(value, (list, tuple)):
        for item in value:
            if not isinstance(item, (Tool, Toolset, Use)) and not _is_function(item):
                raise NotLoadable(
                    f"--tools {name!r}: it holds {type(item).__name__!r}: neither a tool nor a function"
                )
            yield from _tools_of(item, name)
    else:
        raise NotLoadable(
            f"--tools {name!r} is {type(value).__name__!r}: name a tool, a function, a Catalog, a Toolset or a list"
        )


def _is_function(value: object) -> bool:
    return isinstance(value, Callable) and not isinstance(value, type)  # type: ignore[arg-type]


def _near(module: object) -> str:
    names = [name for name in vars(module) if not name.startswith("_")] if hasattr(module, "__dict__") else []
    return f"; it has {', '.join(sorted(names)[:12])}" if names else ""
