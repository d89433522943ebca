"""What a program knows of a tool: the name it calls, the parameters in order, one line of help.

Stubs are rendered from contracts and decide nothing; the host looks every call up among the tools that it
granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ptc_sandbox.journal import digest
from ptc_tools import strict_json
from ptc_tools.call import JsonValue
from ptc_tools.catalog import Catalog
from ptc_tools.contract import Contract


@dataclass(frozen=True, slots=True)
class ToolStub:
    """A tool as a program calls it. `program_name` is a Python identifier; `namespace` and `name` are the wire's."""

    program_name: str
    name: str
    namespace: str | None = None
    parameters: tuple[str, ...] = ()
    doc: str = ""

    @classmethod
    def of(cls, program_name: str, contract: Contract) -> ToolStub:
        properties = contract.parameters.get("properties")
        names = tuple(properties) if isinstance(properties, Mapping) else ()
        return cls(program_name, contract.name, contract.namespace, names, contract.description)

    def to_json(self) -> JsonValue:
        return [self.program_name, list(self.parameters), self.doc]


class Stubs:
    """The tools granted to a program, as its child is told of them. Immutable; made once for a set of tools.

    `digest` names the set in a journal's header: the same names, parameters and help give the same one.
    """

    __slots__ = ("_by_name", "digest", "listed", "wire")

    def __init__(self, stubs: Iterable[ToolStub] = ()) -> None:
        self.listed = tuple(stubs)
        self._by_name = {stub.program_name: stub for stub in self.listed}
        self.wire: JsonValue = [stub.to_json() for stub in self.listed]
        parts: list[JsonValue] = [[stub.to_json(), stub.namespace, stub.name] for stub in self.listed]
        self.digest = digest(strict_json.canonical(sorted(parts, key=str)))

    @classmethod
    def of(cls, catalog: Catalog) -> Stubs:
        """A stub for each tool of a catalog, by the names that programs use."""
        return cls(ToolStub.of(name, tool.contract) for name, tool in catalog.program_names.items())

    def get(self, program_name: str) -> ToolStub | None:
        """The granted tool of this name; a plain lookup, whatever the name."""
        return self._by_name.get(program_name)
