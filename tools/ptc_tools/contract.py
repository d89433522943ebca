"""What a tool is, as data: an immutable contract that the model, the policy and the audit record share.

A contract holds no function and no secret. Making one checks it: names, schemas, callers and bounds; what it
does not say is not inferred from names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast, get_args

from ptc_tools.call import CallerKind, JsonObject
from ptc_tools.errors import InvalidSchema, RegistrationError
from ptc_tools.frozen import freeze_object, thaw_object
from ptc_tools.names import check_name, check_namespace
from ptc_tools.schema import check_schema
from ptc_tools.strict import check_strict

Effects: TypeAlias = Literal["read", "write", "destructive"]
RiskLevel: TypeAlias = Literal["low", "medium", "high"]
Approval: TypeAlias = Literal["never", "always"]

CALLERS: tuple[CallerKind, ...] = get_args(CallerKind)
MAX_DESCRIPTION = 16_384

# What stands for a call without a result when a program made it (wire.md, rule 5).
ERROR_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"type": {"type": "string"}, "message": {"type": "string"}},
            "required": ["type", "message"],
        }
    },
    "required": ["error"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """One tool's declaration. Raises `RegistrationError`, or a kind of it, if it does not hold together.

    `parameters` is what the wire shows; `accepted` is what a call is checked against, and differs only where
    strict mode must list an optional parameter as required. `timeout` is in seconds, None for the invoker's.
    `definition` is set for raw definitions: it goes over the wire unchanged.
    """

    name: str
    parameters: JsonObject
    description: str = ""
    namespace: str | None = None
    output_schema: JsonObject | None = None
    allowed_callers: tuple[CallerKind, ...] = ("direct",)
    strict: bool = True
    timeout: float | None = None
    accepted: JsonObject | None = None
    defer_loading: bool = False
    definition: JsonObject | None = None
    effects: Effects | None = None
    risk_level: RiskLevel | None = None
    approval: Approval = "never"
    tags: tuple[str, ...] = ()
    version: str | None = None
    generated: bool = False
    """The schemas were made from types by this package: a cheaper check is enough."""

    def __post_init__(self) -> None:
        check_name(self.name, namespace=self.namespace)
        if self.namespace is not None:
            check_namespace(self.namespace)
        what = f"tool {self.qualified_name!r}"
        if not isinstance(self.description, str) or len(self.description) > MAX_DESCRIPTION:
            raise RegistrationError(
                f"{what}: the description must be text of at most {MAX_DESCRIPTION} characters"
            )
        if not (self.timeout is None or self.timeout > 0):
            raise RegistrationError(
                f"{what}: timeout must be a positive number of seconds, got {self.timeout!r}"
            )
        self._set("allowed_callers", _check_callers(self.allowed_callers, what))
        self._set("tags", tuple(self.tags))
        _check_word(self.effects, Effects, f"{what}: effects")
        _check_word(self.risk_level, RiskLevel, f"{what}: risk_level")
        _check_word(self.approval, Approval, f"{what}: approval")
        parameters = check_schema(self.parameters, f"{what}: parameters", generated=self.generated)
        if parameters.get("type", "object") != "object":
            raise InvalidSchema(f"{what}: parameters must describe an object")
        if self.strict:
            check_strict(parameters, f"{what}: parameters")
        self._set("parameters", freeze_object(parameters))
        if self.accepted is not None:
            accepted = check_schema(self.accepted, f"{what}: parameters", generated=self.generated)
            self._set("accepted", freeze_object(accepted))
        if self.output_schema is not None:
            output = check_schema(self.output_schema, f"{what}: output_schema", generated=self.generated)
            self._set("output_schema", freeze_object(output))
        if self.definition is not None:
            self._set("definition", freeze_object(self.definition))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def qualified_name(self) -> str:
        """`namespace.name`, or the name alone: for messages and logs, never for dispatch."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    @property
    def checked_parameters(self) -> JsonObject:
        """The schema that a call's arguments must fit."""
        return self.parameters if self.accepted is None else self.accepted

    def wire(self, errors_in_schema: bool = True) -> JsonObject:
        """A fresh function-tool definition for the Responses API, without the namespace around it.

        With `errors_in_schema` the output schema of a tool that programs may call says `anyOf` the result or
        an error object, since a program is given one or the other (wire.md, rule 5). A raw definition goes as
        it came.
        """
        if self.definition is not None:
            return thaw_object(self.definition)
        wire: JsonObject = {"type": "function", "name": self.name}
        if self.description:
            wire["description"] = self.description
        wire["parameters"] = thaw_object(self.parameters)
        wire["strict"] = self.strict
        if self.output_schema is not None and "programmatic" in self.allowed_callers:
            output = thaw_object(self.output_schema)
            wire["output_schema"] = with_errors(output) if errors_in_schema else output
        if self.allowed_callers != ("direct",):
            wire["allowed_callers"] = list(self.allowed_callers)
        if self.defer_loading:
            wire["defer_loading"] = True
        return wire


def with_errors(output: JsonObject) -> JsonObject:
    """The schema of a result or of the error object that stands for one. Definitions move to the root."""
    output = dict(output)
    schema: JsonObject = {"anyOf": [output, thaw_object(ERROR_SCHEMA)]}
    for keyword in ("$schema", "$defs", "definitions"):
        if keyword in output:
            schema[keyword] = output.pop(keyword)
    return schema


def renamed(contract: Contract, *, name: str | None = None, namespace: str | None = None) -> Contract:
    """The same contract under another name. Raises `InvalidName`."""
    return replace(contract, name=name or contract.name, namespace=namespace or contract.namespace)


def _check_callers(callers: object, what: str) -> tuple[CallerKind, ...]:
    if isinstance(callers, str) or not isinstance(callers, list | tuple | set | frozenset):
        raise RegistrationError(f"{what}: allowed_callers must be a list of {' and '.join(CALLERS)}")
    given = list(callers)
    for caller in given:
        if caller not in CALLERS:
            hint = "; the word here is 'programmatic'" if caller == "program" else ""
            raise RegistrationError(f"{what}: unknown caller {caller!r}{hint}; known: {', '.join(CALLERS)}")
    if not given:
        raise RegistrationError(f"{what}: allowed_callers is empty: nobody could call the tool")
    return tuple(caller for caller in CALLERS if caller in given)


def _check_word(value: object, words: object, what: str) -> None:
    if value is not None and value not in get_args(words):
        raise RegistrationError(
            f"{what} must be one of {', '.join(cast('tuple[str, ...]', get_args(words)))}"
        )
