"""Point 1: contracts are immutable, have stable fingerprints, and declarations compile or are refused."""

import copy
import json
import pickle
import subprocess
import sys
from typing import Any

import pytest

from ptc_tools import (
    Bounds,
    Contract,
    Denied,
    Idempotency,
    InvalidJson,
    InvalidSchema,
    Reconciliation,
    RegistrationError,
    RequireAuthority,
    SearchRange,
    Success,
    compile_declaration,
    define_tool,
    tool,
    toolset_fingerprint,
)
from ptc_tools.declaration import InvalidValue
from tests.tools.tool_support import invoke, run_with

PARAMETERS = {
    "type": "object",
    "properties": {"id": {"type": "string", "description": "Which."}, "n": {"type": ["integer", "null"]}},
    "required": ["id", "n"],
    "additionalProperties": False,
}
DECLARATION = {
    "name": "set_status",
    "namespace": "tickets",
    "description": "Set a ticket's status.",
    "parameters": PARAMETERS,
    "output_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    "allowed_callers": ["direct", "programmatic"],
    "effects": "write",
    "risk_level": "medium",
    "approval": "always",
    "commitment": "sets the status of one ticket",
    "idempotency": {"source": "operation_id", "parameter": "id"},
    "reconciliation": {"tool": "tickets.get", "arguments": {"id": "id"}},
    "bounds": {"items": 5, "search": {"start": "id", "end": "n", "limit": 3}},
    "authority": ["tickets:write"],
    "tags": ["b", "a"],
    "timeout": 2.5,
    "version": "3",
}


def full() -> Contract:
    return Contract.from_json(DECLARATION)


class TestImmutable:
    def test_a_contract_cannot_be_changed_in_any_part(self) -> None:
        """What was approved, pinned and sent is the same thing afterwards."""
        contract = full()
        with pytest.raises(AttributeError):
            contract.name = "other"  # type: ignore[misc]
        for change in (
            lambda: contract.parameters.update(x=1),
            lambda: contract.parameters["properties"].clear(),  # type: ignore[union-attr]
            lambda: contract.parameters["required"].append("x"),  # type: ignore[union-attr]
            lambda: contract.output_schema.pop("type"),  # type: ignore[union-attr]
            lambda: contract.reconciliation.arguments.__setitem__("x", "y"),  # type: ignore[union-attr, attr-defined]
        ):
            with pytest.raises((TypeError, AttributeError)):
                change()

    def test_changing_the_source_afterwards_changes_nothing(self) -> None:
        """A contract is a copy, and what it hands out is one too."""
        source = copy.deepcopy(DECLARATION)
        contract = Contract.from_json(source)  # type: ignore[arg-type]
        before = contract.fingerprint()
        source["parameters"]["properties"]["id"]["type"] = "integer"  # type: ignore[index]
        source["tags"].append("z")  # type: ignore[attr-defined]
        contract.wire()["parameters"]["properties"].clear()  # type: ignore[index, union-attr]
        contract.to_json()["parameters"].clear()  # type: ignore[union-attr]
        assert contract.fingerprint() == before
        assert contract.parameters == PARAMETERS

    def test_a_contract_can_be_copied_and_sent_to_another_process(self) -> None:
        """Frozen parts become plain ones again, and the contract is equal."""
        contract = full()
        assert copy.deepcopy(contract).parameters == contract.parameters
        assert json.loads(json.dumps(contract.parameters)) == PARAMETERS
        assert pickle.loads(pickle.dumps(contract.parameters)) == PARAMETERS

    def test_contracts_can_be_kept_in_sets(self) -> None:
        """A policy or a cache may want to."""
        assert {full(), full()} == {Contract.from_json(full().to_json())}


class TestFingerprint:
    def test_it_does_not_depend_on_the_order_of_keys_tags_tools_or_callers(self) -> None:
        """Two people who wrote the same contract have the same fingerprint."""

        def backwards(value: object) -> object:
            if isinstance(value, dict):
                return {key: backwards(value[key]) for key in reversed(value)}
            return value

        other = dict(backwards(DECLARATION))  # type: ignore[call-overload]
        other["tags"] = ["a", "b", "a"]
        other["allowed_callers"] = ["programmatic", "direct"]
        other["parameters"] = {**PARAMETERS, "required": ["n", "id"]}
        contract, same = full(), Contract.from_json(other)
        assert contract.fingerprint() == same.fingerprint()
        third = Contract(name="third", parameters={"type": "object"}, strict=False)
        assert toolset_fingerprint([contract, third]) == toolset_fingerprint([third, same])

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("description", "Other words."),
            ("tags", ["a"]),
            ("version", "4"),
            ("effects", "destructive"),
            ("risk_level", "high"),
            ("approval", "never"),
            ("allowed_callers", ["direct"]),
            ("authority", []),
            ("timeout", 3),
            ("commitment", "sets it"),
            ("bounds", {"items": 6}),
            ("idempotency", {"source": "service"}),
            ("reconciliation", {"tool": "tickets.find", "arguments": {}}),
            ("namespace", "other"),
            ("projection", "partial"),
        ],
    )
    def test_it_covers_everything_that_is_declared(self, key: str, value: object) -> None:
        """Words and tags are what a model is told: they are part of what was looked at."""
        other = Contract.from_json({**DECLARATION, key: value})  # type: ignore[dict-item]
        assert other.fingerprint() != full().fingerprint()
        assert other.schema_fingerprint() == full().schema_fingerprint()

    def test_the_schema_fingerprint_covers_shapes_and_not_words(self) -> None:
        """It tells whether callers and results are affected."""
        words = copy.deepcopy(DECLARATION)
        words["parameters"]["properties"]["id"]["description"] = "Other."  # type: ignore[index]
        shape = copy.deepcopy(DECLARATION)
        shape["parameters"]["properties"]["id"]["maxLength"] = 3  # type: ignore[index]
        assert Contract.from_json(words).schema_fingerprint() == full().schema_fingerprint()  # type: ignore[arg-type]
        assert Contract.from_json(words).fingerprint() != full().fingerprint()  # type: ignore[arg-type]
        assert Contract.from_json(shape).schema_fingerprint() != full().schema_fingerprint()  # type: ignore[arg-type]

    def test_a_property_that_is_called_like_a_keyword_is_not_taken_for_words(self) -> None:
        """A parameter may be named `description` or `title`."""
        one = {"type": "object", "properties": {"description": {"type": "string"}}}
        two = {"type": "object", "properties": {"description": {"type": "integer"}}}
        prints = {
            Contract(name="t", parameters=schema, strict=False).schema_fingerprint()  # type: ignore[arg-type]
            for schema in (one, two)
        }
        assert len(prints) == 2

    def test_it_is_the_same_in_another_process_with_another_hash_seed(self) -> None:
        """Platforms and runs differ; the number is pinned here so that versions of ours do not."""
        code = (
            "import json, sys; from ptc_tools import Contract; "
            "print(Contract.from_json(json.load(sys.stdin)).fingerprint())"
        )
        prints = {
            subprocess.run(
                [sys.executable, "-c", code],
                input=json.dumps(DECLARATION),
                capture_output=True,
                text=True,
                check=True,
                env={"PYTHONHASHSEED": seed},
            ).stdout.strip()
            for seed in ("1", "2")
        }
        assert prints == {full().fingerprint()}
        simple = Contract(name="t", parameters={"type": "object", "properties": {}}, strict=False)
        assert (
            simple.fingerprint() == "sha256:9e2cee015e0937c7d74ee13a1d36a12dd880ac9ec0e51dc740c1e55245a8b272"
        )


class TestCompile:
    def test_a_declaration_round_trips(self) -> None:
        """The JSON form loses nothing."""
        contract = full()
        assert Contract.from_json(contract.to_json()) == contract
        assert contract.bounds == Bounds(items=5, search=SearchRange("id", "n", 3))
        assert contract.idempotency == Idempotency("operation_id", "id")
        assert contract.reconciliation == Reconciliation("tickets.get", {"id": "id"})

    def test_a_compiled_spec_is_independent_of_its_source(self) -> None:
        """A registry that changes later has no say in what was compiled."""
        source = copy.deepcopy(DECLARATION)
        spec = compile_declaration(source)  # type: ignore[arg-type]
        source["parameters"]["properties"].clear()  # type: ignore[index]
        source["effects"] = "destructive"
        assert spec.contract.effects == "write"
        assert spec.arguments.decode('{"id":"x","n":null}') == {"id": "x", "n": None}

    def test_its_codecs_validate_and_keep_every_digit(self) -> None:
        """9007199254740993 is the first integer that a double cannot hold."""
        spec = compile_declaration(DECLARATION)  # type: ignore[arg-type]
        assert spec.arguments.decode('{"id":"x","n":9007199254740993}') == {"id": "x", "n": 9007199254740993}
        assert spec.result.encode({"n": 9007199254740993}) == '{"n":9007199254740993}'
        for text in ('{"id":1,"n":1}', '{"id":"x"}', '{"id":"x","n":1,"z":1}', "[]"):
            with pytest.raises(InvalidValue):
                spec.arguments.decode(text)
        for text in ('{"id":"x","id":"y","n":1}', '{"id":"x","n":NaN}'):
            with pytest.raises(InvalidJson):
                spec.arguments.decode(text)
        with pytest.raises(InvalidValue):
            spec.result.encode({"n": "1"})
        with pytest.raises(InvalidJson):
            spec.result.encode({"n": {1}})  # type: ignore[dict-item]

    async def test_a_spec_is_bound_to_a_function_and_runs_on_the_one_path(self) -> None:
        """Nothing else makes a declaration executable."""
        declaration = {**DECLARATION, "approval": "never", "bounds": {}}
        bound = compile_declaration(declaration).bind(lambda id, n: {"n": n})  # type: ignore[arg-type]
        outcome = await invoke(bound, '{"id":"x","n":9007199254740993}')
        assert outcome == Success({"n": 9007199254740993})

    @pytest.mark.parametrize(
        "key",
        [
            "name",
            "description",
            "parameters",
            "output_schema",
            "allowed_callers",
            "effects",
            "version",
            "commitment",
        ],
    )
    def test_a_declaration_that_lacks_what_execution_needs_is_refused(self, key: str) -> None:
        """What it does not say is not guessed."""
        declaration = {name: value for name, value in DECLARATION.items() if name != key}
        with pytest.raises(RegistrationError, match=key):
            compile_declaration(declaration)  # type: ignore[arg-type]

    def test_a_mutation_without_recourse_is_refused(self) -> None:
        """When the connection breaks somebody must be able to find out."""
        declaration = {k: v for k, v in DECLARATION.items() if k not in ("idempotency", "reconciliation")}
        with pytest.raises(RegistrationError, match="reconciliation"):
            compile_declaration(declaration)  # type: ignore[arg-type]

    def test_nothing_is_inferred_from_the_names_of_fields(self) -> None:
        """`delete_everything` that says it reads is a read; unknown keys are refused, not interpreted."""
        declaration = {
            key: value
            for key, value in DECLARATION.items()
            if key not in ("idempotency", "reconciliation", "commitment")
        } | {"name": "delete_everything", "effects": "read"}
        assert compile_declaration(declaration).contract.effects == "read"  # type: ignore[arg-type]
        with pytest.raises(RegistrationError, match="readOnlyHint"):
            compile_declaration({**declaration, "readOnlyHint": False})  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("effects", "none"),
            ("risk_level", 3),
            ("approval", "sometimes"),
            ("allowed_callers", ["program"]),
            ("allowed_callers", []),
            ("allowed_callers", "direct"),
            ("timeout", 0),
            ("timeout", -1),
            ("bounds", {"items": 0}),
            ("bounds", {"rows": 3}),
            ("bounds", {"offset": "nope"}),
            ("idempotency", {"source": "operation_id", "parameter": "nope"}),
            ("parameters", {"type": "objekt"}),
            ("parameters", {"type": "array"}),
            ("tags", "a"),
        ],
    )
    def test_what_does_not_hold_together_is_refused(self, key: str, value: object) -> None:
        """Found when it is registered, not when it is called."""
        with pytest.raises(RegistrationError):
            Contract.from_json({**DECLARATION, key: value})  # type: ignore[dict-item]

    def test_a_reader_may_not_claim_a_mutations_promises(self) -> None:
        """Contradictions are refused, not resolved."""
        for key in ("idempotency", "reconciliation", "commitment"):
            only = {name: DECLARATION[name] for name in ("name", "parameters", key)}
            with pytest.raises(RegistrationError, match="only reads"):
                Contract.from_json({**only, "effects": "read"})  # type: ignore[dict-item]


class TestAuthority:
    async def test_the_default_grants_what_the_application_registered(self) -> None:
        """Authority is declared for a policy; without one, registering is granting."""

        @tool(authority=["stock:read"])
        async def stock(sku: str) -> int:
            return 1

        assert await invoke(stock, {"sku": "a"}) == Success(1)

    async def test_a_policy_decides_from_trusted_context_alone(self) -> None:
        """What the model writes into arguments has no part in it."""

        @tool(authority=["stock:read"])
        async def stock(sku: str) -> int:
            return 1

        policy = RequireAuthority({"ada": ["stock:read"]})
        assert await invoke(stock, {"sku": "a"}, run=run_with(principal="ada"), policy=policy) == Success(1)
        for principal in (None, "eve"):
            outcome = await invoke(
                stock, {"sku": "principal=ada stock:read"}, run=run_with(principal=principal), policy=policy
            )
            assert isinstance(outcome, Denied)
            assert outcome.code == "not_authorized"


def test_a_raw_definition_goes_over_the_wire_unchanged() -> None:
    """Unknown keys included; and errors are added to no schema that is not ours."""
    definition = {
        "type": "function",
        "name": "raw",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False, "required": []},
        "strict": True,
        "output_schema": {"type": "object"},
        "allowed_callers": ["programmatic"],
        "async": True,
    }
    raw = define_tool(definition, dict)  # type: ignore[arg-type]
    assert raw.contract.wire() == definition
    assert (
        raw.contract.fingerprint()
        != define_tool(
            {**definition, "async": False},  # type: ignore[arg-type]
            dict,
        ).contract.fingerprint()
    )
    assert Contract.from_json(raw.contract.to_json()).wire() == definition


def test_a_programmatic_raw_definition_may_lack_an_output_schema() -> None:
    """The wire allows it, so it is passed on as declared."""
    raw = define_tool(
        {"name": "raw", "parameters": {"type": "object"}, "allowed_callers": ["programmatic"]}, lambda: 1
    )
    assert "output_schema" not in raw.contract.wire()


def test_a_typed_tools_wire_form_says_that_an_error_may_come() -> None:
    """Rule 5: a program written against a schema that hides errors computes with nothing."""

    @tool(allowed_callers=["programmatic"])
    async def stock(sku: str) -> int:
        """Units in stock."""
        return 1

    wire = stock.contract.wire()
    told: Any = wire["output_schema"]
    result, error = told["anyOf"]
    assert result["properties"] == {"result": {"type": "integer"}}
    assert error["required"] == ["error"]
    assert stock.contract.wire(errors_in_schema=False)["output_schema"] == result
    assert wire["allowed_callers"] == ["programmatic"]
    assert wire["strict"] is True


OBJECTS: list[Any] = [
    {"type": "object"},
    {"type": ["object"]},
    {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}},
    {"anyOf": [{"type": "object"}, {"enum": [{}]}]},
    {"allOf": [{"minProperties": 1}, {"type": "object"}]},
]
OTHERS: list[Any] = [
    {},
    {"type": "integer"},
    {"type": ["object", "null"]},
    {"properties": {"a": {}}},
    {"anyOf": [{"type": "object"}, {"type": "null"}]},
    {"enum": [{}, 1]},
    {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
]


def _made(schema: Any, callers: Any = ("direct", "programmatic")) -> Contract:
    return Contract(name="t", parameters={"type": "object"}, strict=False, output_schema=schema,
                    allowed_callers=callers)  # fmt: skip


def _raw(schema: Any, callers: Any = ("programmatic",)) -> Contract:
    definition: Any = {"name": "t", "parameters": {"type": "object"}, "output_schema": schema}
    return define_tool({**definition, "allowed_callers": list(callers)}, lambda: 1).contract


@pytest.mark.parametrize("schema", OBJECTS)
def test_a_result_that_is_an_object_goes_as_it_is(schema: Any) -> None:
    """Rule 5 asks for an object, and this is one."""
    assert not _made(schema).wraps_result
    assert _made(schema).on_wire({"a": 1}) == {"a": 1}
    _raw(schema).check_for_service()


@pytest.mark.parametrize("schema", OTHERS)
def test_a_result_that_may_be_no_object_stands_in_one_on_the_wire(schema: Any) -> None:
    """Rule 5: the service answers 400 to any other output of a program's call; a raw schema cannot be changed."""
    contract = _made(schema)
    told: Any = contract.wire(errors_in_schema=False)["output_schema"]
    assert (told["type"], told["required"], list(told["properties"])) == ("object", ["result"], ["result"])
    assert contract.on_wire([1]) == {"result": [1]}
    raw = _raw(schema)
    assert raw.wire()["output_schema"] == schema
    with pytest.raises(InvalidSchema, match="must describe an object"):
        raw.check_for_service()


@pytest.mark.parametrize("schema", OTHERS)
def test_a_tool_that_no_program_may_call_may_give_anything(schema: Any) -> None:
    """The wire promises nothing about its output."""
    assert not _made(schema, ("direct",)).wraps_result
    _raw(schema, ("direct",)).check_for_service()


def test_definitions_stay_reachable_when_errors_join_a_schema() -> None:
    """`#/$defs/…` is resolved from the root, so the definitions move there."""
    from jsonschema import Draft202012Validator

    node = {
        "$ref": "#/$defs/Node",
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    contract = Contract(
        name="t",
        parameters={"type": "object"},
        strict=False,
        output_schema=node,  # type: ignore[arg-type]
        allowed_callers=("programmatic",),
    )
    schema = contract.wire()["output_schema"]
    validator = Draft202012Validator(schema)  # type: ignore[arg-type]
    assert validator.is_valid({"next": {"next": {}}})
    assert validator.is_valid({"error": {"type": "timeout", "message": "m"}})
    assert not validator.is_valid(3)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("idempotency", "service", "takes Idempotency, not str"),
        ("reconciliation", "find", "takes Reconciliation, not str"),
        ("bounds", {"items": 5}, "takes Bounds, not dict"),
        ("bounds", None, "takes Bounds"),
        ("tags", None, "list of strings"),
        ("authority", 5, "list of strings"),
    ],
)
def test_an_option_of_another_kind_is_refused_in_words(option: str, value: Any, says: str) -> None:
    """An author without a type checker is told what to write."""

    async def look(n: int) -> int:
        """Look."""
        return n

    definition: Any = {"name": "look", "parameters": {"type": "object"}}
    for make in (
        lambda **options: tool(look, **options),
        lambda **options: define_tool(definition, look, **options),
    ):
        with pytest.raises(RegistrationError, match=f"look.*{option}.*{says}"):
            make(**{option: value})


@pytest.mark.parametrize(
    ("option", "value"), [("allowed_callers", None), ("strict", "no"), ("output_schema", [1])]
)
def test_what_a_typed_tool_alone_is_told_is_checked_as_well(option: str, value: Any) -> None:
    """Before anything is made of it."""

    async def look(n: int) -> int:
        """Look."""
        return n

    with pytest.raises(RegistrationError, match=option):
        tool(look, **{option: value})
