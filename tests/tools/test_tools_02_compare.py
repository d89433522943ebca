"""Point 2: contracts are compared by direction, and 'narrower' is never said without proof."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from ptc_tools import (
    Bounds,
    Contract,
    Idempotency,
    Lock,
    LockError,
    Reconciliation,
    SearchRange,
    compare_schemas,
)
from ptc_tools.compare import compare
from ptc_tools.subsume import accepts_all_of

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def closed(_required: tuple[str, ...] | None = None, **properties: object) -> dict[str, object]:
    required = list(properties) if _required is None else list(_required)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        (closed(a=STRING), closed(a=STRING), "identical"),
        (closed(a=STRING, b=INTEGER), closed(b=INTEGER, a=STRING), "identical"),
        ({"enum": ["a", "b"]}, {"enum": ["b", "a"]}, "identical"),
        (closed(a=STRING), closed(a={**STRING, "description": "x"}), "documentation"),
        (closed(a=STRING), closed(a={**STRING, "maxLength": 5}), "narrower"),
        (closed(a={**STRING, "maxLength": 5}), closed(a={**STRING, "maxLength": 6}), "wider"),
        (closed(a={"enum": ["x", "y"]}), closed(a={"enum": ["x"]}), "narrower"),
        (closed(a={"enum": ["x"]}), closed(a={"enum": ["x", "y"]}), "wider"),
        (closed(a={"enum": ["x", "y"]}), closed(a={"enum": ["y", "z"]}), "incompatible"),
        (closed(a={"const": "x"}), closed(a={"enum": ["x", "y"]}), "wider"),
        (closed(a=STRING), closed(a={"enum": ["x"]}), "narrower"),
        (closed(a=INTEGER), closed(a={"type": "number"}), "wider"),
        (closed(a={"type": "number"}), closed(a=INTEGER), "narrower"),
        (closed(a=INTEGER), closed(a=STRING), "incompatible"),
        (closed(a=INTEGER), closed(a={"type": ["integer", "null"]}), "wider"),
        (closed(a={"anyOf": [INTEGER, STRING]}), closed(a=STRING), "narrower"),
        (closed(a={"anyOf": [INTEGER, STRING]}), closed(a={"type": ["string", "integer"]}), "documentation"),
        (closed(a=INTEGER), closed(a={**INTEGER, "minimum": 1}), "narrower"),
        (closed(a={**INTEGER, "minimum": 1}), closed(a={**INTEGER, "exclusiveMinimum": 1}), "narrower"),
        (closed(a={**INTEGER, "maximum": 9}), closed(a={**INTEGER, "maximum": 10}), "wider"),
        (
            closed(a={"type": "number", "multipleOf": 0.1}),
            closed(a={"type": "number", "multipleOf": 0.3}),
            "narrower",
        ),
        (
            closed(a={"type": "number", "multipleOf": 2}),
            closed(a={"type": "number", "multipleOf": 3}),
            "incompatible",
        ),
        (closed(a=STRING), closed(a=STRING, b=STRING), "incompatible"),
        (closed(a=STRING), closed(("a",), a=STRING, b=STRING), "wider"),
        (closed(("a",), a=STRING, b=STRING), closed(a=STRING), "narrower"),
        (closed(("a",), a=STRING, b=STRING), closed(a=STRING, b=STRING), "narrower"),
        (closed(a=STRING), {**closed(a=STRING), "additionalProperties": STRING}, "wider"),
        ({"type": "object"}, closed(a=STRING), "narrower"),
        ({"type": "array", "items": STRING}, {"type": "array", "items": STRING, "maxItems": 3}, "narrower"),
        (
            {"type": "array", "items": STRING},
            {"type": "array", "items": {"type": ["string", "null"]}},
            "wider",
        ),
        ({"type": "array"}, {"type": "array", "uniqueItems": True}, "narrower"),
        (
            {"type": "array", "prefixItems": [STRING]},
            {"type": "array", "prefixItems": [STRING, STRING]},
            "narrower",
        ),
        ({**STRING, "pattern": "^a"}, {**STRING, "pattern": "^b"}, "incompatible"),
        (STRING, {**STRING, "pattern": "^b"}, "narrower"),
        ({}, STRING, "narrower"),
        ({"not": STRING}, {"not": INTEGER}, "incompatible"),
        (True, False, "narrower"),
    ],
)
def test_two_schemas_are_told_apart_by_what_they_accept(old: object, new: object, verdict: str) -> None:
    """Types, enums, bounds, required and additional properties each have a direction."""
    assert compare_schemas(old, new).verdict == verdict  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (
            {"type": "object", "properties": {"ab": STRING}},
            {"patternProperties": {"^a": INTEGER}, "type": "object"},
        ),
        ({"type": "array", "contains": STRING}, {"type": "array", "contains": STRING, "minContains": 0}),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}}, INTEGER),
        (
            {"properties": {"a": {"$ref": "#/$defs/X"}}, "$defs": {"X": STRING}},
            {"properties": {"a": {"$ref": "#/$defs/X"}}, "$defs": {"X": INTEGER}},
        ),
        (
            {"properties": {"a": {}}, "unevaluatedProperties": False},
            {"properties": {"b": {}}, "unevaluatedProperties": False},
        ),
        ({"if": INTEGER, "then": {"minimum": 3}}, {"if": INTEGER, "then": {"minimum": 2}}),
        ({"oneOf": [INTEGER, {"type": "number"}]}, INTEGER),
        ({"not": {"minimum": 3}}, {"not": {"minimum": 4}}),
        ({"type": "array", "prefixItems": [STRING, STRING]}, {"type": "array", "prefixItems": [STRING]}),
        ({"dependentRequired": {"a": ["b"]}}, {"type": "object", "required": ["a"]}),
        ({"minProperties": 2}, {"type": "object", "required": ["a"]}),
    ],
)
def test_no_proof_is_found_where_there_is_none(wide: object, narrow: object) -> None:
    """Places where a careless comparison says yes; each has a counter-example."""
    assert not accepts_all_of(wide, narrow)  # type: ignore[arg-type]


NAMED = {"title": STRING, "description": STRING, "a": STRING}
NOT_REF = {"not": {"$ref": "#/properties/b"}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            {"type": "object", "dependentRequired": {"title": ["a"]}},
            {"type": "object", "dependentRequired": {}},
        ),
        (
            {"type": "object", "properties": NAMED, "dependentRequired": {"description": ["a"]}},
            {"type": "object", "properties": NAMED, "dependentRequired": {"description": ["title"]}},
        ),
        (
            {"type": "object", "dependentSchemas": {"title": {"required": ["a"]}}},
            {"type": "object", "dependentSchemas": {"title": {}}},
        ),
        (
            {"type": "object", "dependentSchemas": {"title": {"required": ["a"]}}},
            {"type": "object", "dependentSchemas": {}},
        ),
        (
            {"type": "object", "dependencies": {"title": ["a"]}},
            {"type": "object", "dependencies": {"title": []}},
        ),
        (
            {"properties": {"a": {"$dynamicRef": "#/$defs/X"}}, "$defs": {"X": INTEGER}},
            {"properties": {"a": {"$dynamicRef": "#/$defs/X"}}, "$defs": {"X": {}}},
        ),
        (
            {"properties": {"a": {"$ref": "#/$defs/title"}}, "$defs": {"title": INTEGER}},
            {"properties": {"a": {"$ref": "#/$defs/title"}}, "$defs": {"title": {}}},
        ),
        (
            {"properties": {"a": {"$ref": "#/x-foo/X"}}, "x-foo": {"X": INTEGER}},
            {"properties": {"a": {"$ref": "#/x-foo/X"}}, "x-foo": {"X": {}}},
        ),
        (
            {"properties": {"a": {"$ref": "#/properties/b/$defs/Q"}, "b": {"$defs": {"Q": INTEGER}}}},
            {"properties": {"a": {"$ref": "#/properties/b/$defs/Q"}, "b": {"$defs": {"Q": STRING}}}},
        ),
        (
            {"properties": {"a": {"$ref": "#/$defs/X/x-y/Z"}}, "$defs": {"X": {"x-y": {"Z": INTEGER}}}},
            {"properties": {"a": {"$ref": "#/$defs/X/x-y/Z"}}, "$defs": {"X": {"x-y": {"Z": {}}}}},
        ),
        (
            {"type": "object", "properties": {"a": NOT_REF, "b": {"type": ["string", "integer"]}}},
            {"type": "object", "properties": {"a": NOT_REF, "b": STRING}},
        ),
        ({"type": "boolean", "enum": [True, False], "const": True}, {"type": "boolean"}),
        ({"type": "string", "enum": ["a", None]}, {"type": "null"}),
        ({**STRING, "format": "date"}, {"const": "tomorrow"}),
        ({**STRING, "format": "date-time"}, {"enum": ["a"], "type": "string"}),
        ({"anyOf": [{**STRING, "format": "date"}, INTEGER]}, {"const": "tomorrow"}),
        ({**STRING, "format": "date"}, {**STRING, "maxLength": 3}),
        ({"type": "integer", "format": "int32"}, {"type": "integer", "minimum": 1}),
        ({**STRING, "x-bound": 3}, {**STRING, "x-bound": 4}),
        ({**STRING, "x-bound": 3}, {"const": "abcd"}),
        ({"const": {"description": 1}}, {"const": {"description": 2}}),
    ],
)
def test_what_is_not_understood_is_never_called_covered(old: object, new: object) -> None:
    """A pin that went on to hold here would let a tool accept what nobody looked at."""
    assert not compare_schemas(old, new).covered  # type: ignore[arg-type]


def test_equal_numbers_are_equal_however_they_are_written() -> None:
    """1 and 1.0 are one number in JSON Schema, and which one a cache kept is chance."""
    one, same = (
        contract(parameters=closed(a={**INTEGER, "minimum": 1}, n=INTEGER)),
        contract(parameters=closed(a={**INTEGER, "minimum": 1.0}, n=INTEGER), timeout=10.0),
    )
    assert one.fingerprint() == same.fingerprint()
    assert compare(one, same).verdict == "identical"


def test_showing_a_schema_that_says_nothing_is_documentation() -> None:
    """Their fingerprints differ, so their verdict is not 'identical'."""
    nothing, anything = contract(output_schema=None), contract(output_schema={})
    assert nothing.fingerprint() != anything.fingerprint()
    assert compare(nothing, anything).verdict == "documentation"


def test_schemas_that_refer_to_themselves_are_compared() -> None:
    """Trees and linked lists are ordinary results."""

    def tree(leaf: object) -> dict[str, object]:
        node = closed(left={"anyOf": [{"$ref": "#/$defs/Node"}, leaf]})
        return {"$ref": "#/$defs/Node", "$defs": {"Node": node}}

    null = {"type": "null"}
    assert compare_schemas(tree(null), tree(null)).verdict == "identical"  # type: ignore[arg-type]
    wider = compare_schemas(tree(null), tree({"type": ["null", "integer"]}))  # type: ignore[arg-type]
    assert wider.verdict == "wider"
    assert compare_schemas(tree({"type": ["null", "integer"]}), tree(null)).verdict == "narrower"  # type: ignore[arg-type]
    assert wider.reasons[0].path == "$.left"


# --- the property -----------------------------------------------------------------------------------------

# Some are named like annotations, which mean nothing where they stand as a keyword.
NAMES = ["a", "b", "ab", "title", "description"]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 5)
    | st.sampled_from([0.5, 1.0, 2.5])
    | st.sampled_from(["", "a", "ab", "b", "2024-01-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=5,
)
SMALL = st.integers(0, 3)


def _with(
    base: dict[str, object], **optional: st.SearchStrategy[object]
) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({}, optional=optional).map(lambda extra: {**base, **extra})


LEAVES = st.one_of(
    st.sampled_from([True, False, {}]),
    st.lists(
        st.sampled_from([None, True, False, 0, 1, 2, "a", "ab"]), min_size=1, max_size=3, unique_by=repr
    ).map(lambda values: {"enum": values}),
    _with(
        {"type": "integer"},
        minimum=SMALL,
        maximum=SMALL,
        exclusiveMinimum=SMALL,
        multipleOf=st.integers(1, 3),
    ),
    _with({"type": "number"}, minimum=SMALL, exclusiveMaximum=SMALL, multipleOf=st.sampled_from([0.5, 1, 2])),
    _with({"type": "string"}, minLength=SMALL, maxLength=SMALL, pattern=st.sampled_from(["^a", "b$"])),
    st.lists(
        st.sampled_from(["null", "boolean", "integer", "number", "string"]),
        min_size=1,
        max_size=3,
        unique=True,
    ).map(lambda kinds: {"type": kinds}),
    _with({}, minimum=SMALL, minLength=SMALL),
    _with(
        {},
        type=st.sampled_from(["null", "boolean", "string", "integer", ["string", "null"]]),
        enum=st.lists(st.sampled_from([None, True, False, 1, "a"]), min_size=1, max_size=3, unique_by=repr),
        const=st.sampled_from([None, True, 1, "a"]),
        format=st.just("date"),
    ),
)
REFERENCES = st.sampled_from(["#/$defs/A", "#/$defs/title", "#/x-more/A"]).map(
    lambda reference: {"$ref": reference}
)


def _composite(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    names = st.sampled_from(["a", "title"])
    return st.one_of(
        _with(
            {"type": "object"},
            properties=st.dictionaries(names, inner, max_size=2),
            required=st.lists(names, max_size=2, unique=True),
            additionalProperties=inner,
            patternProperties=st.dictionaries(st.just("^a"), inner, max_size=1),
            minProperties=SMALL,
            maxProperties=SMALL,
            dependentRequired=st.dictionaries(names, st.lists(names, max_size=1), max_size=2),
            dependentSchemas=st.dictionaries(names, inner, max_size=1),
            propertyNames=st.just({"maxLength": 1}),
        ),
        _with(
            {"type": "array"},
            items=inner,
            prefixItems=st.lists(inner, min_size=1, max_size=2),
            minItems=SMALL,
            maxItems=SMALL,
            uniqueItems=st.booleans(),
            contains=inner,
            minContains=st.integers(0, 2),
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda members: {"anyOf": members}),
        st.lists(inner, min_size=1, max_size=2).map(lambda members: {"oneOf": members}),
        st.tuples(inner, inner).map(lambda pair: {"allOf": list(pair)}),
        inner.map(lambda member: {"not": member}),
        st.tuples(inner, inner, inner).map(
            lambda parts: dict(zip(("if", "then", "else"), parts, strict=True))
        ),
    )


SCHEMAS = st.recursive(LEAVES, _composite, max_leaves=4)
REFERRING = st.recursive(LEAVES | REFERENCES, _composite, max_leaves=4)


# What references lead to, in each of the two schemas. Every one is there, and none leads to another.
TARGETS = st.sampled_from([{"type": "integer"}, {"type": "string"}, {"type": ["string", "integer"]}, {}])
ROOTS: st.SearchStrategy[dict[str, object]] = st.builds(
    lambda a, title, more: {"$defs": {"A": a, "title": title}, "x-more": {"A": more}},
    TARGETS,
    TARGETS,
    st.just({"type": "integer"}) | TARGETS,
)


@st.composite
def schema_pairs(draw: st.DrawFn) -> tuple[object, object]:
    """Two schemas, related more often than not: by a changed keyword, or by one containing the other."""
    old, new = draw(related())
    return _rooted(old, draw(ROOTS)), _rooted(new, draw(ROOTS))


def _rooted(schema: object, root: dict[str, object]) -> object:
    return {**schema, **root} if isinstance(schema, dict) else schema


@st.composite
def related(draw: st.DrawFn) -> tuple[object, object]:
    old = draw(REFERRING)
    match draw(st.integers(0, 3)):
        case 0:
            return old, draw(REFERRING)
        case 1 if isinstance(old, dict) and old:
            changed = dict(old)
            changed.pop(draw(st.sampled_from(sorted(old))))
            return old, changed
        case 2:
            return old, {"anyOf": [old, draw(REFERRING)]}
        case _:
            return (
                (old, {**old, "maxLength": 1, "maximum": 2, "maxItems": 1})
                if isinstance(old, dict)
                else (old, old)
            )


def _contradiction(pair: tuple[object, object], values: list[object]) -> str | None:
    """A value that shows that the verdict on a pair is wrong."""
    old, new = (json.loads(json.dumps(schema)) for schema in pair)
    verdict = compare_schemas(old, new).verdict
    # Raw tools assert formats and others do not: a verdict holds for both.
    for formats, value in itertools.product((None, FormatChecker(["date"])), values):
        before, after = (
            Draft202012Validator(schema, format_checker=formats).is_valid(value) for schema in (old, new)
        )
        if verdict in ("identical", "documentation", "narrower") and after and not before:
            return f"{verdict}, but the new alone accepts {value!r}"
        if verdict in ("identical", "documentation", "wider") and before and not after:
            return f"{verdict}, but the old alone accepts {value!r}"
    return None


MANY_VALUES = st.lists(VALUES, min_size=20, max_size=40)


@settings(max_examples=200, deadline=None)
@given(schema_pairs(), MANY_VALUES)
def test_narrower_means_that_the_old_accepts_whatever_the_new_does(
    pair: tuple[object, object], values: list[object]
) -> None:
    """For random pairs and values no verdict is contradicted; a counter-example would make it 'wider'."""
    assert _contradiction(pair, values) is None


@pytest.mark.soak
@settings(max_examples=3_000, deadline=None)
@given(schema_pairs(), MANY_VALUES)
def test_narrower_holds_for_very_many_pairs(pair: tuple[object, object], values: list[object]) -> None:
    """The same, for longer."""
    assert _contradiction(pair, values) is None


# --- contracts --------------------------------------------------------------------------------------------


def contract(**changes: object) -> Contract:
    values: dict[str, object] = {
        "name": "t",
        "description": "d",
        "parameters": closed(a=STRING, n=INTEGER),
        "output_schema": closed(x=INTEGER),
        "effects": "write",
        "risk_level": "medium",
        "approval": "always",
        "allowed_callers": ("direct",),
        "authority": ("x:write",),
        "bounds": Bounds(items=10, search=SearchRange("a", "n", 10)),
        "timeout": 10,
        "commitment": "c",
    }
    return Contract(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "verdict", "path"),
    [
        ({}, "identical", None),
        ({"description": "other"}, "documentation", "$.description"),
        ({"tags": ("x",)}, "documentation", "$.tags"),
        ({"version": "2"}, "documentation", "$.version"),
        ({"effects": "read", "commitment": None}, "incompatible", "$.effects"),
        ({"effects": "destructive"}, "wider", "$.effects"),
        ({"effects": None}, "wider", "$.effects"),
        ({"risk_level": "low"}, "narrower", "$.risk_level"),
        ({"risk_level": "high"}, "wider", "$.risk_level"),
        ({"approval": "never"}, "wider", "$.approval"),
        ({"allowed_callers": ("direct", "programmatic")}, "wider", "$.allowed_callers"),
        ({"allowed_callers": ("programmatic",)}, "incompatible", "$.allowed_callers"),
        ({"authority": ()}, "narrower", "$.authority"),
        ({"authority": ("x:write", "y:write")}, "wider", "$.authority"),
        ({"bounds": Bounds(items=11, search=SearchRange("a", "n", 10))}, "wider", "$.bounds.items"),
        ({"bounds": Bounds(items=9, search=SearchRange("a", "n", 10))}, "narrower", "$.bounds.items"),
        ({"bounds": Bounds(items=10)}, "wider", "$.bounds.search"),
        ({"bounds": Bounds(items=10, search=SearchRange("a", "n", 11))}, "wider", "$.bounds.search.limit"),
        ({"timeout": 20}, "wider", "$.timeout"),
        ({"timeout": None}, "wider", "$.timeout"),
        ({"commitment": "d"}, "incompatible", "$.commitment"),
        ({"idempotency": Idempotency("service")}, "wider", "$.idempotency"),
        ({"reconciliation": Reconciliation("r")}, "narrower", "$.reconciliation"),
        ({"sensitive_results": ("/x",)}, "narrower", "$.sensitive_results"),
        ({"parameters": closed(a={**STRING, "maxLength": 3}, n=INTEGER)}, "narrower", "$.parameters.a"),
        ({"parameters": closed(a=STRING, n={"type": "number"})}, "wider", "$.parameters.n"),
        ({"output_schema": closed(x={"type": "number"})}, "wider", "$.output_schema.x"),
        ({"output_schema": None}, "wider", "$.output_schema"),
        ({"parameters": closed(a={"type": "null"}, n={"type": "number"})}, "incompatible", "$.parameters.a"),
        ({"name": "u"}, "incompatible", "$.name"),
    ],
)
def test_each_part_of_a_contract_has_a_direction_and_a_reason_by_path(
    changes: dict[str, object], verdict: str, path: str | None
) -> None:
    """Effects, risk, callers, approval, bounds and schemas; the reason names the place."""
    found = compare(contract(), contract(**changes))
    assert found.verdict == verdict
    assert path is None or path in [reason.path for reason in found.reasons]
    assert found.covered == (verdict in ("identical", "documentation", "narrower"))


@pytest.mark.parametrize(
    ("before", "verdict"),
    [("write", "incompatible"), ("destructive", "incompatible"), (None, "documentation")],
)
def test_a_first_commitment_of_a_mutation_is_no_mere_word(before: Any, verdict: str) -> None:
    """Nobody can tell whether it did the same before; of what said nothing at all, anything could be."""
    old = contract(effects=before, commitment=None)
    assert compare(old, contract(effects=before, commitment="deletes the account")).verdict == verdict


def test_narrower_here_and_wider_there_is_incompatible() -> None:
    """Neither contract covers the other then."""
    assert compare(contract(), contract(risk_level="low", timeout=20)).verdict == "incompatible"


class TestLock:
    def test_pins_survive_the_file_and_hold_for_what_got_narrower(self) -> None:
        """The file is the memory of what somebody looked at."""
        lock = Lock.loads(Lock.of([contract()]).dumps())
        assert lock.check([contract()]) == []
        (change,) = lock.check([contract(risk_level="low")])
        assert (change.state, change.breaks) == ("narrower", False)

    def test_the_file_does_not_depend_on_the_order_of_tools(self) -> None:
        """A reordered module makes no diff."""
        one, two = contract(), contract(name="u")
        assert Lock.of([one, two]).dumps() == Lock.of([two, one]).dumps()

    @pytest.mark.parametrize(
        ("changes", "state"), [({"timeout": 20}, "wider"), ({"commitment": "d"}, "incompatible")]
    )
    def test_a_pin_is_never_moved_to_more_without_an_explicit_act(
        self, changes: dict[str, object], state: str
    ) -> None:
        """Writing the lock again is not looking at it."""
        lock = Lock.of([contract()])
        grown = contract(**changes)
        (change,) = lock.check([grown])
        assert (change.state, change.breaks) == (state, True)
        with pytest.raises(LockError, match="accept"):
            lock.renewed([grown])
        with pytest.raises(LockError, match="other"):
            lock.renewed([grown], accept=["t", "other"])
        assert lock.renewed([grown], accept=["t"]).check([grown]) == []

    def test_a_tool_that_is_gone_breaks_the_check_and_a_new_one_is_shown(self) -> None:
        """A removed tool that comes back is a new tool."""
        changes = Lock.of([contract()]).check([contract(name="u")])
        assert [(change.tool, change.state, change.breaks) for change in changes] == [
            ("t", "removed", True),
            ("u", "added", False),
        ]

    @pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 2, "tools": {}}', '{"version": 1}'])
    def test_what_is_no_lock_file_is_refused(self, text: str) -> None:
        """A damaged file must not read as 'nothing is pinned'."""
        with pytest.raises(LockError):
            Lock.loads(text)

    def test_a_pin_that_was_edited_by_hand_is_refused(self) -> None:
        """The fingerprint in the file is of the contract in the file."""
        text = Lock.of([contract()]).dumps()
        with pytest.raises(LockError, match="by hand"):
            Lock.loads(text.replace('"medium"', '"high"'))

    def test_a_pin_that_was_taken_out_or_whose_shape_was_changed_is_refused(self) -> None:
        """An entry that is gone would make the tool a new one, which no check fails for."""
        data = json.loads(Lock.of([contract(), contract(name="u")]).dumps())
        without = {**data, "tools": {"t": data["tools"]["t"]}}
        reshaped = json.loads(json.dumps(data))
        reshaped["tools"]["t"]["schema_fingerprint"] = data["toolset"]
        for edited in (without, {**data, "tools": {}}, {**data, "toolset": "sha256:0"}, reshaped):
            with pytest.raises(LockError, match="by hand"):
                Lock.loads(json.dumps(edited))

    def test_a_pin_is_not_dropped_without_an_explicit_act(self) -> None:
        """Locking some of the tools and then all of them would move the other pins unseen."""
        lock = Lock.of([contract(), contract(name="u")])
        with pytest.raises(LockError, match=r"u \(removed\)"):
            lock.renewed([contract()])
        assert set(lock.renewed([contract()], accept=["u"]).pins) == {"t"}
