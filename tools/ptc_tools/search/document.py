"""What search knows of a tool: its names and its words, as the model may be told them.

A document is made from a contract, or by whoever publishes one. It holds no result schema, no tag and no policy:
what the model would not be shown cannot be searched for either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ptc_tools.call import JsonObject, JsonValue

if TYPE_CHECKING:
    from ptc_tools.contract import Contract

MAX_TEXT = 16_384
"""Characters of a field that are read."""
_MAX_SCHEMAS = 400
_MAX_DEPTH = 3
_SENTENCE = re.compile(r"(?<=[.!?。])\s|\n")


@dataclass(frozen=True, slots=True)
class Document:
    """One tool to be found. `key` is its qualified name and unique; the other fields are what is searched.

    `parameters` is the JSON schema of its arguments, `terms` what its publisher says people may call it, and
    `about` what its namespace is described by, which is searched with the namespace.
    """

    key: str
    namespace: str = ""
    name: str = ""
    title: str = ""
    description: str = ""
    parameters: JsonObject = field(default_factory=dict)
    terms: tuple[str, ...] = ()
    about: str = ""

    @classmethod
    def of(
        cls, contract: Contract, *, title: str = "", terms: tuple[str, ...] = (), about: str = ""
    ) -> Document:
        """The document of a contract: what `contract.wire()` tells the model, and how its publisher says that it
        is called: a published title and search terms, unless others are given."""
        published = contract.publication
        if published is not None:
            title = title or published.title or ""
            terms = terms or tuple(published.search_terms)
        return cls(
            key=contract.qualified_name,
            namespace=contract.namespace or "",
            name=contract.name,
            title=title,
            description=contract.description,
            parameters=contract.parameters,
            terms=terms,
            about=about,
        )

    def __hash__(self) -> int:
        return hash((self.key, self.description))

    @property
    def headline(self) -> str:
        """Its title, or the first sentence of its description, and what its publisher says people call it."""
        title = self.title or _SENTENCE.split(self.description.lstrip()[:MAX_TEXT], maxsplit=1)[0]
        return "\n".join((title, *self.terms))[:MAX_TEXT]

    @property
    def arguments(self) -> str:
        """The names, titles and descriptions of its parameters, nested ones too as far as they go three deep."""
        return "\n".join(_words(self.parameters))[:MAX_TEXT]


def _words(schema: JsonObject) -> Iterator[str]:
    """Breadth first, so that what is cut is what lies deepest."""
    level: list[JsonValue] = [schema]
    left = _MAX_SCHEMAS
    for depth in range(_MAX_DEPTH):
        below: list[JsonValue] = []
        for each in level:
            if not isinstance(each, Mapping) or left <= 0:
                continue
            left -= 1
            if depth:
                yield from (
                    text for key in ("title", "description") if isinstance(text := each.get(key), str)
                )
            properties = each.get("properties")
            if isinstance(properties, Mapping):
                for name, inner in properties.items():
                    yield name
                    below.append(inner)
            for key in ("items", "additionalProperties"):
                below.append(each.get(key))
            for key in ("anyOf", "oneOf", "allOf"):
                if isinstance(members := each.get(key), list):
                    below.extend(members)
        level = below
