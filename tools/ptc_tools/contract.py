"""What a tool is, as data: an immutable contract that the model, the policy and the audit record share.

A contract holds no function and no secret. Making one checks it: names, schemas, callers and bounds; what it
does not say is not inferred from names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from typing import Literal, TypeAlias, cast, get_args

from ptc_tools.bounds import Bounds, is_finite
from ptc_tools.call import CallerKind, JsonObject, JsonValue
from ptc_tools.contract_json import contract_arguments, contract_to_json
from ptc_tools.definition import check_definition
from ptc_tools.errors import InvalidName, InvalidSchema, RegistrationError
from ptc_tools.fingerprint import contract_fingerprint, schema_fingerprint
from ptc_tools.frozen import freeze_object, thaw_object
from ptc_tools.limits import without_limits
from ptc_tools.markers import sensitive_paths
from ptc_tools.mutation import MUTATING, Idempotency, Reconciliation
from ptc_tools.names import check_name, check_namespace, check_program_name
from ptc_tools.publication import Publication
from ptc_tools.schema import check_schema, resolve, shorten
from ptc_tools.strict import check_strict
from ptc_tools.strict_json import is_sendable

Effects: TypeAlias = Literal["read", "write", "destructive"]
RiskLevel: TypeAlias = Literal["low", "medium", "high"]
Approval: TypeAlias = Literal["never", "always"]

CALLERS: tuple[CallerKind, ...] = get_args(CallerKind)
MAX_DESCRIPTION = 16_384

UNBOUNDED = Bounds()
BY_GENERATOR = object()

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

    What a model is told: `namespace`, `name`, `description`, `parameters` (what the wire shows), and
    `output_schema`. Who may call: `allowed_callers`; `authority` names what the tool needs, for the policy;
    `approval`. What it does: `effects` (None: undeclared, and treated as the worst where it matters),
    `risk_level`, `commitment` (the one thing that a mutation commits to, in a few words), `idempotency`,
    `reconciliation`. How much: `bounds`, `timeout` in seconds (None: the invoker's). `projection` says that
    results show only part of what they are about.
    """

    name: str
    parameters: JsonObject
    description: str = ""
    namespace: str | None = None
    output_schema: JsonObject | None = None
    allowed_callers: tuple[CallerKind, ...] = ("direct",)
    strict: bool = True
    timeout: float | None = None
    defer_loading: bool = False
    effects: Effects | None = None
    risk_level: RiskLevel | None = None
    approval: Approval = "never"
    authority: tuple[str, ...] = ()
    commitment: str | None = None
    idempotency: Idempotency | None = None
    reconciliation: Reconciliation | None = None
    bounds: Bounds = UNBOUNDED
    projection: Literal["full", "partial"] = "full"
    tags: tuple[str, ...] = ()
    version: str | None = None
    accepted: JsonObject | None = None
    """What a call is checked against, where it differs: strict mode lists optional parameters as required."""
    sensitive_parameters: tuple[str, ...] = ()
    sensitive_results: tuple[str, ...] = ()
    """Places of `Sensitive` values, as patterns for `ptc_tools.markers.redact`."""
    publication: Publication | None = None
    """What consumers are told beyond the schemas; needed to publish the tool. A confirmation in it makes
    `approval` "always"."""
    definition: JsonObject | None = None
    """A raw definition, which goes over the wire unchanged. It must say what the other fields say."""
    checked: InitVar[object] = None
    """Only for this package: it made the schemas from types, and checked their parts when it did."""

    def __post_init__(self, checked: object) -> None:
        check_name(self.name, namespace=self.namespace)
        if self.namespace is not None:
            check_namespace(self.namespace)
        what = f"tool {self.qualified_name!r}"
        self._check_words(what)
        self._check_schemas(what, checked is BY_GENERATOR)
        self._check_effects(what)
        if self.publication is not None:
            self.publication.check(self.checked_parameters, self.output_schema, what)
            if self.publication.confirmation is not None:
                self._set("approval", "always")
        if self.projection == "partial" and (self.namespace or "").casefold() == "platform":
            raise InvalidName(f"{what}: a partial projection may not be named platform.*; name what it shows")

    def _check_words(self, what: str) -> None:
        if not is_sendable(self.description) or len(self.description) > MAX_DESCRIPTION:
            raise RegistrationError(
                f"{what}: the description must be text of at most {MAX_DESCRIPTION} characters, without lone surrogates"
            )
        if self.timeout is not None and not (is_finite(self.timeout) and self.timeout > 0):
            raise RegistrationError(
                f"{what}: timeout must be a positive number of seconds, got {shorten(repr(self.timeout), 60)}"
            )
        self._set("allowed_callers", _check_callers(self.allowed_callers, what))
        if "programmatic" in self.allowed_callers:
            check_program_name(self.namespace, self.name)
        for name in ("tags", "authority", "sensitive_parameters", "sensitive_results"):
            words = getattr(self, name)
            if isinstance(words, str) or not all(isinstance(word, str) for word in words):
                raise RegistrationError(f"{what}: {name} must be a list of strings")
            self._set(name, tuple(sorted(set(words))))
        for name in ("strict", "defer_loading"):
            if not isinstance(getattr(self, name), bool):
                raise RegistrationError(f"{what}: {name} must be true or false, got {getattr(self, name)!r}")
        for name in ("version", "commitment"):
            value = getattr(self, name)
            if not isinstance(value, str | None) or (value is not None and not value.strip()):
                raise RegistrationError(f"{what}: {name} must be text that says something, got {value!r}")
        _check_word(self.effects, Effects, f"{what}: effects")
        _check_word(self.risk_level, RiskLevel, f"{what}: risk_level")
        _check_word(self.approval, Approval, f"{what}: approval", needed=True)
        _check_word(self.projection, Literal["full", "partial"], f"{what}: projection", needed=True)
        if not isinstance(self.bounds, Bounds):
            raise RegistrationError(f"{what}: bounds takes Bounds, not {type(self.bounds).__name__}")

    def _check_schemas(self, what: str, generated: bool) -> None:
        check = _as_it_is if generated else check_schema
        parameters = check(self.parameters, f"{what}: parameters")
        if parameters.get("type", "object") != "object":
            raise InvalidSchema(f"{what}: parameters must describe an object")
        if self.strict:
            check_strict(parameters, f"{what}: parameters")
        self._set("parameters", freeze_object(parameters))
        for name in ("accepted", "output_schema"):
            schema = getattr(self, name)
            if schema is not None:
                self._set(name, freeze_object(check(schema, f"{what}: {name}")))
        if self.definition is not None:
            self._set("definition", freeze_object(check_definition(self, what)))
        if not generated:
            self._add_marks("sensitive_parameters", self.parameters)
            self._add_marks("sensitive_results", self.output_schema)
        if self.bounds.offset is not None and self.sensitive_parameters:
            # A cut result says with which arguments to go on: all of the call's.
            kept = {f"/continuation{path}" for path in self.sensitive_parameters}
            self._set("sensitive_results", tuple(sorted({*self.sensitive_results, *kept})))

    def _add_marks(self, name: str, schema: JsonObject | None) -> None:
        """A raw schema may mark values itself."""
        if schema is not None and (found := sensitive_paths(schema)):
            self._set(name, tuple(sorted({*getattr(self, name), *found})))

    def _check_effects(self, what: str) -> None:
        declared = self.parameters.get("properties", {})
        named = {
            "idempotency": self.idempotency.parameter if self.idempotency else None,
            "bounds.offset": self.bounds.offset,
            "bounds.search.start": self.bounds.search.start if self.bounds.search else None,
            "bounds.search.end": self.bounds.search.end if self.bounds.search else None,
        }
        for place, name in named.items():
            if name is not None and not (isinstance(declared, dict) and name in declared):
                raise RegistrationError(f"{what}: {place} names {name!r}, which is no parameter of it")
        if self.reconciliation is not None and self.reconciliation.tool == self.qualified_name:
            raise RegistrationError(
                f"{what}: it cannot be its own reconciliation read: that would change it again"
            )
        if self.effects == "read":
            for name in ("commitment", "idempotency", "reconciliation"):
                if getattr(self, name) is not None:
                    raise RegistrationError(
                        f"{what}: {name} is declared, but effects says that it only reads"
                    )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        """Of its name: schemas are objects, which have no hash. Equal contracts have equal names."""
        return hash((self.namespace, self.name, self.version))

    @property
    def qualified_name(self) -> str:
        """`namespace.name`, or the name alone: for messages and logs, never for dispatch."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    @property
    def mutates(self) -> bool:
        """Whether it is declared to change something."""
        return self.effects in MUTATING

    def fingerprint(self) -> str:
        """`sha256:…` of all that the contract says; see `ptc_tools.fingerprint`."""
        return contract_fingerprint(self)

    def schema_fingerprint(self) -> str:
        """`sha256:…` of the shapes alone, without words."""
        return schema_fingerprint(self)

    def to_json(self) -> JsonObject:
        """The declaration as plain JSON, defaults left out. `from_json` is the inverse."""
        return contract_to_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> Contract:
        """A contract from its JSON form. Raises `RegistrationError`, also for a key that it does not know."""
        return cls(**contract_arguments(data))  # type: ignore[arg-type]

    @property
    def checked_parameters(self) -> JsonObject:
        """The schema that a call's arguments must fit."""
        return self.parameters if self.accepted is None else self.accepted

    @property
    def wraps_result(self) -> bool:
        """Whether a result goes over the wire as `{"result": …}`: `wire()` sends a schema, and what it
        describes is not an object, as every answer to a program's call has to be (wire.md, rule 5)."""
        schema = self.output_schema
        if schema is None or self.definition is not None or "programmatic" not in self.allowed_callers:
            return False
        return not describes_object(schema)

    def check_for_service(self) -> None:
        """Raises `InvalidSchema` for a raw definition that a service with programs would take and then choke on.

        What it promises programs is no object, every answer to one has to be, and it goes unchanged. Local
        programs may call it all the same. A runner asks when the tool is registered with it.
        """
        schema = self.output_schema
        if self.definition is None or schema is None or "programmatic" not in self.allowed_callers:
            return
        if not describes_object(schema):
            raise InvalidSchema(
                f"tool {self.qualified_name!r}: output_schema must describe an object: a hosted program's call is "
                'answered by one, and a raw definition goes unchanged. Say "type": "object" (with the result as a '
                "property) and return that, or make the tool from a typed function, whose result is wrapped"
            )

    def on_wire(self, value: JsonValue) -> JsonValue:
        """A result as it goes over the wire where `wire()` was sent: see `wraps_result`."""
        return {"result": value} if self.wraps_result else value

    def wire(self, errors_in_schema: bool = True) -> JsonObject:
        """A fresh function-tool definition for the Responses API, without the namespace around it.

        With `errors_in_schema` the output schema of a tool that programs may call says `anyOf` the result or
        an error object, since a program is given one or the other (wire.md, rule 5). A result that is not an
        object stands in one, see `wraps_result`. A raw definition goes as it came.
        """
        if self.definition is not None:
            return thaw_object(self.definition)
        wire: JsonObject = {"type": "function", "name": self.name}
        if self.description:
            wire["description"] = self.description
        wire["parameters"] = without_limits(thaw_object(self.parameters))
        wire["strict"] = self.strict
        if self.output_schema is not None and "programmatic" in self.allowed_callers:
            output = without_limits(thaw_object(self.output_schema))
            if self.wraps_result:
                output = in_result(output)
            wire["output_schema"] = with_errors(output) if errors_in_schema else output
        if self.allowed_callers != ("direct",):
            wire["allowed_callers"] = list(self.allowed_callers)
        if self.defer_loading:
            wire["defer_loading"] = True
        return wire


def with_errors(output: JsonObject) -> JsonObject:
    """The schema of a result or of the error object that stands for one. Definitions move to the root."""
    output = dict(output)
    return _rooted({"anyOf": [output, thaw_object(ERROR_SCHEMA)]}, output)


def in_result(output: JsonObject) -> JsonObject:
    """The schema of `{"result": …}` with such a result in it. Definitions move to the root."""
    output = dict(output)
    properties: JsonObject = {"result": output}
    return _rooted(
        {
            "type": "object",
            "properties": properties,
            "required": ["result"],
            "additionalProperties": False,
        },
        output,
    )


def _rooted(schema: JsonObject, inner: JsonObject) -> JsonObject:
    for keyword in ("$schema", "$defs", "definitions"):
        if keyword in inner:
            schema[keyword] = inner.pop(keyword)
    return schema


def describes_object(schema: JsonObject) -> bool:
    """Whether all that fits the schema is sure to be a JSON object."""
    return _only_objects(schema, schema, ())


def _only_objects(schema: JsonValue, root: JsonObject, seen: tuple[str, ...]) -> bool:
    if not isinstance(schema, Mapping):
        return False
    kind, reference = schema.get("type"), schema.get("$ref")
    if kind == "object" or (isinstance(kind, list | tuple) and set(kind) == {"object"}):
        return True
    if isinstance(reference, str) and reference not in seen:
        try:
            target = resolve(root, reference)
        except InvalidSchema:  # by an anchor, say
            target = None
        if _only_objects(target, root, (*seen, reference)):
            return True
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        return isinstance(values, list | tuple) and all(isinstance(value, Mapping) for value in values)
    for keyword, enough in (("anyOf", all), ("oneOf", all), ("allOf", any)):
        members = schema.get(keyword)
        if (
            isinstance(members, list | tuple)
            and members
            and enough(_only_objects(each, root, seen) for each in members)
        ):
            return True
    return False


def _as_it_is(schema: JsonObject, what: str) -> JsonObject:
    return schema


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


def _check_word(value: object, words: object, what: str, *, needed: bool = False) -> None:
    known = cast("tuple[object, ...]", get_args(words))
    if not (value is None and not needed) and not any(value == word for word in known):
        raise RegistrationError(
            f"{what} must be one of {', '.join(cast('tuple[str, ...]', get_args(words)))}"
        )
