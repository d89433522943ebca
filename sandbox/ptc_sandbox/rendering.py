"""Typed stubs: what a model reads about the tools that its program may call.

Rendered from the contracts' schemas alone, deterministically: a Python signature for each tool, a TypedDict
for each object, enumerations as literals, optional fields marked. Bounded in size: what does not fit is
named, and said to be left out.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ptc_tools.contract import Contract

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_DOC_CHARS = 600
_GAP = "\n\n"
_NAMES = 2_000
"""Characters that are kept for the names of what does not fit."""


def render_stubs(
    tools: Iterable[tuple[str, Contract]], *, budget: int = 24_000, most: int | None = None
) -> str:
    """Python text for tools by (program name, contract), sorted by name: signatures of at most `budget` characters.

    What does not fit is named. With `most` the whole text is no longer than that, and of names that do not fit
    either it is said how many there are.
    """
    texts = [
        (name, _render_tool(name, contract)) for name, contract in sorted(tools, key=lambda item: item[0])
    ]
    if most is not None:
        whole = sum(len(text) + len(_GAP) for _, text in texts)
        budget = min(budget, most if whole <= most else most - _NAMES)
    parts: list[str] = []
    left_out: list[str] = []
    used = 0
    for name, text in texts:
        if used + len(text) > budget:
            left_out.append(name)
            continue
        parts.append(text)
        used += len(text) + (0 if most is None else len(_GAP))
    if left_out:
        room = None if most is None else most - used
        parts.append(named("# also available, signature left out for size: ", left_out, room))
    return _GAP.join(parts)


def named(words: str, names: Sequence[str], room: int | None) -> str:
    """The words and then the names, as far as `room` characters hold them; then how many more there are."""
    text = words + ", ".join(names)
    if room is None or len(text) <= room:
        return text
    used = len(words) + len(f" and {len(names)} more")
    kept: list[str] = []
    for name in names:
        used += len(name) + 2
        if used > room:
            break
        kept.append(name)
    return (
        f"{words}{', '.join(kept)} and {len(names) - len(kept)} more"
        if kept
        else f"{words}{len(names)} tools"
    )


def _render_tool(name: str, contract: Contract) -> str:
    types = _Types("".join(part.capitalize() for part in name.split("_")))
    properties = _properties(contract.parameters)
    required = set(_list(contract.parameters.get("required")))
    types.definitions = _mapping(contract.parameters.get("$defs"))
    arguments = [_argument(key, schema, key in required, types) for key, schema in properties.items()]
    output = _mapping(contract.output_schema)
    types.definitions = _mapping(output.get("$defs"))
    returns = types.of(output, "Result") if contract.output_schema is not None else "Any"
    signature = f"async def {name}({'*, ' if arguments else ''}{', '.join(arguments)}) -> {returns}:"
    doc = _doc(contract.description, properties)
    return "\n\n".join([*types.classes, f"{signature}\n{doc}"])


def _argument(name: str, schema: Mapping[str, Any], required: bool, types: _Types) -> str:
    text = f"{name}: {types.of(schema, name)}"
    if "default" in schema:
        return f"{text} = {schema['default']!r}"
    return text if required else f"{text} = ..."


def _doc(description: str, properties: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [_one_line(description) or "(no description)"]
    for key, schema in properties.items():
        if schema.get("description"):
            lines.append(f"{key}: {_one_line(str(schema['description']))}")
    text = "\n    ".join(lines)
    return f'    """{text}"""' if len(lines) == 1 else f'    """{text}\n    """'


def _one_line(text: str) -> str:
    """Text that cannot end the docstring it stands in."""
    return re.sub(r"\s+", " ", text).strip().replace("\\", "\\\\").replace('"""', "'''")[:_DOC_CHARS]


class _Types:
    """Turns schemas into type expressions, and collects the classes that these mention."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[str, str] = {}
        self.definitions: Mapping[str, Any] = {}
        self.classes: list[str] = []

    def of(self, schema: Any, hint: str, depth: int = 0) -> str:
        if not isinstance(schema, Mapping) or depth > 8:
            return "Any"
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]), depth)
        if "enum" in schema:
            return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return (
                    " | ".join(dict.fromkeys(self.of(item, hint, depth + 1) for item in schema[key])) or "Any"
                )
        kind = schema.get("type")
        if isinstance(kind, (list, tuple)):
            return " | ".join(_SCALARS.get(item, self._one(item, schema, hint, depth)) for item in kind)
        return self._one(kind, schema, hint, depth)

    def _one(self, kind: Any, schema: Mapping[str, Any], hint: str, depth: int) -> str:
        if kind == "array":
            return f"list[{self.of(schema.get('items'), hint, depth + 1)}]"
        if kind == "object" or "properties" in schema:
            if "properties" in schema:
                return self._object(schema, hint, depth)
            extra = schema.get("additionalProperties")
            return f"dict[str, {self.of(extra, hint, depth + 1) if isinstance(extra, Mapping) else 'Any'}]"
        return _SCALARS.get(str(kind), "Any")

    def _reference(self, reference: str, depth: int) -> str:
        key = reference.rsplit("/", 1)[-1]
        if reference in self._names:
            return self._names[reference]
        self._names[reference] = _class_name(key)
        target = self.definitions.get(key)
        text = self.of(target, key, depth + 1)
        self._names[reference] = text
        return text

    def _object(self, schema: Mapping[str, Any], hint: str, depth: int) -> str:
        name = _class_name(str(schema.get("title") or f"{self._prefix}_{hint}"))
        properties = _properties(schema)
        if not all(key.isidentifier() and not keyword.iskeyword(key) for key in properties):
            fields = ", ".join(
                f"{key!r}: {self.of(item, key, depth + 1)}" for key, item in properties.items()
            )
            text = f'{name} = TypedDict("{name}", {{{fields}}})'
        else:
            required = set(_list(schema.get("required")))
            fields = "\n".join(
                self._field(key, item, key in required, depth) for key, item in properties.items()
            )
            text = f"class {name}(TypedDict):\n{fields or '    pass'}"
        if text not in self.classes:
            self.classes.append(text)
        return name

    def _field(self, key: str, schema: Mapping[str, Any], required: bool, depth: int) -> str:
        kind = self.of(schema, key, depth + 1)
        note = f"  # {_one_line(str(schema['description']))}" if schema.get("description") else ""
        return f"    {key}: {kind if required else f'NotRequired[{kind}]'}{note}"


def _class_name(text: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", text)
    name = "".join(word[:1].upper() + word[1:] for word in words) or "Object"
    return name if name[0].isalpha() else f"T{name}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _properties(schema: Any) -> Mapping[str, Mapping[str, Any]]:
    found = _mapping(_mapping(schema).get("properties"))
    return {key: _mapping(item) for key, item in found.items()}


def _list(value: Any) -> list[str]:
    return list(value) if isinstance(value, (list, tuple)) else []
