"""`string.Formatter` without the attributes that a format string could name, and `pprint` to the output."""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import pprint
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ptc_sandbox.guest.facades.dataclass import fields
from ptc_sandbox.guest.facades.dataclass_code import GENERATED
from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.guards_format import checked


def string_members(guards: Guards) -> dict[str, Any]:
    """`Formatter`, which formats as `str.format` does."""
    guarded_getattr = guards.getattr

    class Formatter:
        """Formats as `str.format` does; `get_value` and `format_field` may be overridden."""

        def format(self, format_string: str, /, *args: Any, **kwargs: Any) -> str:
            return self.vformat(format_string, args, kwargs)

        def vformat(self, format_string: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
            return _vformat(self, checked(format_string), args, kwargs, [0], 2)

        def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
            return args[key] if isinstance(key, int) else kwargs[key]

        def get_field(
            self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
        ) -> tuple[Any, Any]:
            first, rest = _string.formatter_field_name_split(field_name)
            value = self.get_value(first, args, kwargs)
            for is_attribute, name in rest:
                value = guarded_getattr(value, name) if is_attribute else value[name]
            return value, first

        def format_field(self, value: Any, format_spec: str) -> str:
            return format(value, format_spec)

        def convert_field(self, value: Any, conversion: str | None) -> Any:
            if conversion not in (None, "s", "r", "a"):
                raise ValueError(f"Unknown conversion specifier {conversion!s}")
            if conversion is None:
                return value
            return str(value) if conversion == "s" else repr(value) if conversion == "r" else ascii(value)

        def parse(self, format_string: str) -> Iterable[tuple[str, str | None, str | None, str | None]]:
            return iter(list(_string.formatter_parser(format_string)))

    Formatter.__module__ = "string"
    Formatter.__qualname__ = "Formatter"
    return {"Formatter": Formatter}


def _vformat(
    formatter: Any, template: str, args: Sequence[Any], kwargs: Mapping[str, Any], auto: list[Any], depth: int
) -> str:
    """The text of `template`; `auto` counts fields without a number, or is [False] after a numbered one."""
    if depth < 0:
        raise ValueError("Max string recursion exceeded")
    made: list[str] = []
    for literal, field, spec, conversion in formatter.parse(template):
        if literal:
            made.append(literal)
        if field is None:
            continue
        first = field.partition(".")[0].partition("[")[0]
        if first == "":
            if auto[0] is False:
                raise ValueError("cannot switch from manual field specification to automatic field numbering")
            field = f"{auto[0]}{field}"
            auto[0] += 1
        elif first.isdigit():
            if auto[0]:
                raise ValueError("cannot switch from automatic field numbering to manual field specification")
            auto[0] = False
        value, _ = formatter.get_field(field, args, kwargs)
        value = formatter.convert_field(value, conversion)
        made.append(
            formatter.format_field(value, _vformat(formatter, spec or "", args, kwargs, auto, depth - 1))
        )
    return "".join(made)


class _Printer(pprint.PrettyPrinter):
    """The library's own, which knows dataclasses by what `dataclasses` wrote into them: here they are ours."""

    def __init__(self, read: Callable[[Any, str], Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._read = read
        self._dispatch = dict(self._dispatch)  # type: ignore[has-type]

    def _format(self, object: Any, *args: Any) -> None:
        representation: Any = type(object).__repr__
        if type(representation) is types.FunctionType and GENERATED in representation.__dict__:
            self._dispatch[representation] = _Printer._print_dataclass
        super()._format(object, *args)

    def _print_dataclass(self, object: Any, stream: Any, indent: int, *args: Any) -> None:
        name = type(object).__name__
        items = [(one.name, self._read(object, one.name)) for one in fields(object) if one.repr]
        stream.write(name + "(")
        self._format_namespace_items(items, stream, indent + len(name) + 1, *args)  # type: ignore[attr-defined]
        stream.write(")")


def pprint_members(guards: Guards) -> dict[str, Any]:
    """`pprint` and `pp`, which print where `print` does, and `pformat`."""

    def pformat(object: Any, *args: Any, **kwargs: Any) -> str:
        """Format an object for pretty-printing."""
        return _Printer(guards.getattr, *args, **kwargs).pformat(object)

    def pretty(object: Any, stream: Any = None, *args: Any, **kwargs: Any) -> None:
        text = pformat(object, *args, **kwargs) + "\n"
        if stream is None:
            guards.stdout.write(text)
        else:
            stream.write(text)

    def pp(object: Any, *args: Any, sort_dicts: bool = False, **kwargs: Any) -> None:
        pretty(object, *args, sort_dicts=sort_dicts, **kwargs)

    pretty.__name__ = pretty.__qualname__ = "pprint"
    pformat.__qualname__, pp.__qualname__ = "pformat", "pp"
    return {"pprint": pretty, "pp": pp, "pformat": pformat}
