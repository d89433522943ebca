"""Point 10: Python types become schemas and values with a defined JSON form, or are refused at registration."""

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import functools
import typing
import uuid
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import AfterValidator, AnyUrl, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from ptc_tools import (
    Denied,
    Failure,
    InvalidSchema,
    InvalidSignature,
    RegistrationError,
    Success,
    define_tool,
    tool,
)
from ptc_tools.strict import check_strict
from ptc_tools.strict_json import dumps, loads
from tests.tools.tool_support import invoke

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Model(BaseModel):
    name: str
    count: int = 3


class Box(BaseModel, Generic[T]):
    content: T
    label: str


class Node(BaseModel):
    value: int
    children: "list[Node]"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Row(typing_extensions.TypedDict):
    id: str
    total: float


class StdRow(typing.TypedDict):
    id: str
    point: Point


class Loose(typing.TypedDict, total=False):
    rows: typing.Required[list[StdRow]]
    note: str | None


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
UTC = datetime.UTC
UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")

# (type, JSON form, Python value): both directions.
FORMS: list[tuple[Any, Any, Any]] = [
    (int, 9007199254740993, 9007199254740993),
    (float, 1.5, 1.5),
    (str, "é\u2028", "é\u2028"),
    (bool, True, True),
    (None, None, None),
    (Optional[int], None, None),  # noqa: UP045 - the old spelling is part of what is tested
    (int | None, 3, 3),
    (Union[int, str], "3", "3"),  # noqa: UP007
    (Literal["a", "b"], "a", "a"),
    (Literal[1, "x"], 1, 1),
    (Colour, "red", Colour.RED),
    (Level, 2, Level.HIGH),
    (list[int], [1, 2], [1, 2]),
    (list[list[str]], [["a"], []], [["a"], []]),
    (set[int], [1], {1}),
    (Model, {"name": "a", "count": 1}, Model(name="a", count=1)),
    (Box[int], {"content": 1, "label": "l"}, Box[int](content=1, label="l")),
    (
        Box[list[Model]],
        {"content": [{"name": "a", "count": 1}], "label": "l"},
        Box[list[Model]](content=[Model(name="a", count=1)], label="l"),
    ),
    (
        Node,
        {"value": 1, "children": [{"value": 2, "children": []}]},
        Node(value=1, children=[Node(value=2, children=[])]),
    ),
    (Pet, {"kind": "dog", "tricks": ["sit"]}, Dog(kind="dog", tricks=["sit"])),
    (Point, {"x": 1, "y": 2.5}, Point(1, 2.5)),
    (Row, {"id": "a", "total": 1.5}, {"id": "a", "total": 1.5}),
    (StdRow, {"id": "a", "point": {"x": 1, "y": 2.0}}, {"id": "a", "point": Point(1, 2.0)}),
    (
        list[StdRow | None],
        [None, {"id": "a", "point": {"x": 1, "y": 2.0}}],
        [None, {"id": "a", "point": Point(1, 2.0)}],
    ),
    (datetime.datetime, "2024-02-29T12:30:00Z", datetime.datetime(2024, 2, 29, 12, 30, tzinfo=UTC)),
    (datetime.datetime, "2024-02-29T12:30:00", datetime.datetime(2024, 2, 29, 12, 30)),
    (datetime.date, "2024-02-29", datetime.date(2024, 2, 29)),
    (datetime.time, "12:30:00", datetime.time(12, 30)),
    (datetime.timedelta, "PT1H", datetime.timedelta(hours=1)),
    (uuid.UUID, str(UUID), UUID),
    (decimal.Decimal, "0.10", decimal.Decimal("0.10")),
    (bytes, "_-8=", b"\xff\xef"),
    (Annotated[int, Field(ge=1, le=9)], 5, 5),
    (Annotated[str, Field(pattern="^a+$", max_length=3)], "aa", "aa"),
]
IDS = [f"{getattr(form[0], '__name__', form[0])}-{index}" for index, form in enumerate(FORMS)]


def taking(annotation: Any) -> Any:
    """A tool that takes one value of a type, and a list of what it got."""
    got: list[object] = []

    async def take(value) -> int:  # type: ignore[no-untyped-def]
        got.append(value)
        return len(got)

    take.__annotations__ = {"value": annotation, "return": int}
    return tool(take), got


def giving(annotation: Any, value: Any) -> Any:
    async def give():  # type: ignore[no-untyped-def]
        return value

    give.__annotations__["return"] = annotation
    return tool(give, allowed_callers=["direct", "programmatic"])


@pytest.mark.parametrize(("annotation", "form", "value"), FORMS, ids=IDS)
async def test_an_argument_arrives_as_its_type_and_a_result_leaves_in_its_form(
    annotation: Any, form: Any, value: Any
) -> None:
    """Both directions, through a strict schema that the API takes."""
    take, got = taking(annotation)
    check_strict(take.contract.parameters, "parameters")
    Draft202012Validator(take.contract.parameters).validate({"value": form})
    assert await invoke(take, {"value": form}) == Success(1)
    assert got == [value]
    assert type(got[0]) is type(value)
    give = giving(annotation, value)
    outcome = await invoke(give, {})
    assert outcome == Success(form)
    assert loads(dumps(outcome.value)) == form
    Draft202012Validator(give.contract.wire()["output_schema"]).validate(give.contract.on_wire(form))


@pytest.mark.parametrize(
    ("annotation", "bad"),
    [
        (int, "1"),
        (int, 1.5),
        (int, True),
        (float, "1.5"),
        (str, 1),
        (str, None),
        (bool, 1),
        (bool, "true"),
        (Colour, "green"),
        (Colour, "RED"),
        (Level, "2"),
        (datetime.date, "2024-13-01"),
        (datetime.date, "01.02.2024"),
        (datetime.datetime, 1700000000),
        (uuid.UUID, "not-a-uuid"),
        (decimal.Decimal, 0.1),
        (decimal.Decimal, "NaN"),
        (decimal.Decimal, "1,5"),
        (bytes, "not base64!"),
        (list[int], "[1]"),
        (list[int], {"0": 1}),
        (Model, {"name": "a"}),
        (Model, {"name": "a", "count": 1, "extra": 1}),
        (Model, {"name": "a", "count": "1"}),
        (Point, {"x": 1, "y": 2, "z": 3}),
        (Row, {"id": "a"}),
        (Pet, {"kind": "fish"}),
        (Pet, {"kind": "cat", "tricks": []}),
        (Annotated[int, Field(ge=1)], 0),
        (Annotated[str, Field(max_length=2)], "abc"),
    ],
)
async def test_nothing_is_coerced(annotation: Any, bad: Any) -> None:
    """A value of another JSON type, or of another form, is refused and not interpreted."""
    take, got = taking(annotation)
    outcome = await invoke(take, {"value": bad})
    assert isinstance(outcome, Denied)
    assert outcome.code == "invalid_arguments"
    assert got == []


class TestStrictMode:
    @pytest.mark.parametrize(
        "annotation",
        [
            dict[str, int],
            Any,
            object,
            list,
            list[Any],
            dict,
            tuple[int, str],
            list[dict[str, str]],
            Box[dict[str, int]],
        ],
    )
    def test_what_it_cannot_express_is_refused_unless_the_author_chooses_otherwise(
        self, annotation: Any
    ) -> None:
        """Found at registration, with the way out in the message."""
        with pytest.raises(InvalidSchema, match="strict"):
            taking(annotation)

        async def take(value) -> int:  # type: ignore[no-untyped-def]
            return 1

        take.__annotations__ = {"value": annotation, "return": int}
        assert tool(take, strict=False).contract.wire()["strict"] is False

    def test_every_property_is_required_and_nothing_is_additional(self) -> None:
        """At every level of every schema."""

        @tool
        async def take(
            model: Model, pet: Pet, node: Node, row: StdRow, n: int = 1, o: str | None = None
        ) -> int:
            return 1

        check_strict(take.contract.parameters, "parameters")
        assert take.contract.parameters["required"] == ["model", "pet", "node", "row", "n", "o"]

    async def test_an_optional_parameter_may_be_null_or_left_out(self) -> None:
        """Strict mode says 'may be null'; a program says nothing. Both mean the default."""

        @tool
        async def take(a: int, n: int = 7, o: str | None = None) -> str:
            return f"{a} {n} {o}"

        assert await invoke(take, {"a": 1, "n": None, "o": None}) == Success("1 7 None")
        assert await invoke(take, {"a": 1}) == Success("1 7 None")
        assert await invoke(take, {"a": 1, "n": 2, "o": "x"}) == Success("1 2 x")
        assert isinstance(await invoke(take, {"n": 1}), Denied)
        assert isinstance(await invoke(take, {"a": None}), Denied)

    def test_null_that_would_be_ambiguous_is_refused(self) -> None:
        """Is null the value None, or the default 3?"""

        async def take(n: int | None = 3) -> int:
            return 1

        with pytest.raises(InvalidSignature, match="null"):
            tool(take)

    async def test_without_strict_mode_null_is_null_and_absent_is_absent(self) -> None:
        """Then the schema itself can say so."""

        @tool(strict=False)
        async def take(n: int | None = 3, m: int = 4) -> str:
            return f"{n} {m}"

        assert await invoke(take, {"n": None}) == Success("None 4")
        assert await invoke(take, {}) == Success("3 4")
        assert isinstance(await invoke(take, {"m": None}), Denied)
        assert take.contract.parameters.get("required") == []

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": [],
                "additionalProperties": False,
            },
            {"type": "object", "properties": {}, "required": ["a"], "additionalProperties": False},
            {"anyOf": [{"type": "object"}]},
            {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False},
            {
                "type": "object",
                "properties": {"a": {"type": "array"}},
                "required": ["a"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"a": {"type": "object", "properties": {}}},
                "required": ["a"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"a": {"allOf": [{"type": "string"}]}},
                "required": ["a"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"a": {"type": "string", "format": "uri"}},
                "required": ["a"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/A", "description": "d"}},
                "required": ["a"],
                "additionalProperties": False,
                "$defs": {"A": {"type": "string"}},
            },
            {
                "type": "object",
                "properties": {"a": {"enum": [str(n) for n in range(1001)]}},
                "required": ["a"],
                "additionalProperties": False,
            },
        ],
    )
    def test_a_raw_strict_definition_is_held_to_the_same_rules(self, schema: Any) -> None:
        """The API would answer 400 on the first request."""
        definition = {"name": "raw", "parameters": schema, "strict": True}
        with pytest.raises(InvalidSchema):
            define_tool(definition, lambda a: a)
        if "anyOf" not in schema:
            define_tool({**definition, "strict": False}, lambda a: a)

    def test_nesting_beyond_the_apis_levels_is_refused(self) -> None:
        """Ten levels of objects."""

        def nested(levels: int) -> dict[str, Any]:
            inner: dict[str, Any] = {"type": "string"}
            for _ in range(levels):
                inner = {
                    "type": "object",
                    "properties": {"a": inner},
                    "required": ["a"],
                    "additionalProperties": False,
                }
            return inner

        define_tool({"name": "raw", "parameters": nested(10), "strict": True}, lambda a: a)
        with pytest.raises(InvalidSchema, match="levels"):
            define_tool({"name": "raw", "parameters": nested(11), "strict": True}, lambda a: a)

    def test_what_it_has_no_keyword_for_is_said_in_words(self) -> None:
        """A default, a format and uniqueness go into the description; the decoder enforces them."""

        @tool
        async def take(
            url: AnyUrl, tags: set[int], n: Annotated[int, Field(description="How many.")] = 3
        ) -> int:
            return 1

        properties: Any = take.contract.parameters["properties"]
        assert "uri" in properties["url"]["description"]
        assert "duplicates" in properties["tags"]["description"]
        assert properties["n"]["description"] == "How many. Default: 3."


class TestFunctions:
    async def test_methods_partials_and_callable_objects_are_tools(self) -> None:
        """Whatever can be called by name, sync or async."""

        class Store:
            def __init__(self, name: str) -> None:
                self.name = name

            async def look(self, n: int) -> str:
                """Look."""
                return f"{self.name} {n}"

            def look_sync(self, n: int) -> str:
                return f"{self.name} {n}"

            @classmethod
            async def of_class(cls, n: int) -> str:
                return f"{cls.__name__} {n}"

            @staticmethod
            async def static(n: int) -> str:
                return str(n)

            async def __call__(self, n: int) -> str:
                return f"called {n}"

        store = Store("s")
        assert await invoke(tool(store.look), {"n": 1}) == Success("s 1")
        assert tool(store.look).contract.description == "Look."
        assert await invoke(tool(store.look_sync), {"n": 1}) == Success("s 1")
        assert await invoke(tool(Store.of_class), {"n": 1}) == Success("Store 1")
        assert await invoke(tool(Store.static), {"n": 1}) == Success("1")
        assert await invoke(tool(store, name="store"), {"n": 1}) == Success("called 1")

        async def two(a: int, b: int) -> int:
            return a + b

        assert await invoke(tool(functools.partial(two, b=5)), {"a": 1}) == Success(6)
        assert await invoke(tool(functools.partial(two, 2)), {"b": 1}) == Success(3)

    async def test_a_sync_function_that_returns_an_awaitable_is_awaited(self) -> None:
        """Decorators and lambdas often hide that a function is async."""

        async def inner(n: int) -> int:
            return n

        def outer(n: int) -> collections.abc.Awaitable[int]:
            return inner(n)

        assert await invoke(tool(outer), {"n": 3}) == Success(3)

    async def test_types_that_live_in_a_function_are_found(self) -> None:
        """Tests and applications define models where they use them, under postponed annotations too."""

        class Local(BaseModel):
            n: int

        async def look(value: "Local") -> "Local":
            return value

        assert await invoke(tool(look), {"value": {"n": 1}}) == Success({"n": 1})

        @tool
        async def decorated(value: "Local") -> "Local":
            return value

        assert await invoke(decorated, {"value": {"n": 1}}) == Success({"n": 1})

    def test_a_tool_is_called_like_its_function(self) -> None:
        """The application's own code and its tests need no context."""

        @tool
        def add(a: int, b: int = 2) -> int:
            """Add."""
            return a + b

        assert add(1) == 3
        assert add(a=1, b=1) == 2

    @pytest.mark.parametrize(
        "function",
        [
            lambda x: x,
            lambda *args: 1,
            lambda **kwargs: 1,
            lambda x, /: x,
        ],
    )
    def test_what_has_no_typed_names_is_refused(self, function: Any) -> None:
        """Nothing is guessed: a parameter without a type is anything."""
        with pytest.raises(RegistrationError):
            tool(function, name="t")

    def test_the_message_about_an_undecorated_method_shows_the_way(self) -> None:
        """`self` is no parameter of a tool."""
        with pytest.raises(InvalidSignature, match="bound method"):

            class Store:
                @tool
                async def look(self, n: int) -> int:
                    return n

    def test_other_mistakes_in_a_signature_are_refused(self) -> None:
        """Each with what to do."""

        async def missing(x: "Nowhere") -> int:  # type: ignore[name-defined]  # noqa: F821
            return 1

        async def field_default(x: int = Field(3)) -> int:
            return x

        async def default_in_field(x: Annotated[int, Field(default=3)]) -> int:
            return x

        async def aliased(x: Annotated[int, Field(alias="y")]) -> int:
            return x

        class NoSchema:
            pass

        async def no_schema(x: NoSchema) -> int:
            return 1

        async def callback(x: collections.abc.Callable[[], int]) -> int:
            return 1

        for function in (missing, field_default, default_in_field, aliased, no_schema, callback, 3):
            with pytest.raises(RegistrationError):
                tool(function)  # type: ignore[call-overload]
        with pytest.raises(RegistrationError, match="already"):
            tool(tool(TestFunctions.ok))
        with pytest.raises(TypeError, match="no option"):
            tool(TestFunctions.ok, allowed_caller=["direct"])  # type: ignore[call-overload]

    @staticmethod
    async def ok(n: int) -> int:
        return n

    def test_a_programmatic_tool_needs_to_say_what_it_returns(self) -> None:
        """A program cannot look before it computes."""

        async def look(n: int):  # type: ignore[no-untyped-def]
            return n

        assert tool(look).contract.output_schema is None
        with pytest.raises(InvalidSignature, match="annotate the return type"):
            tool(look, allowed_callers=["programmatic"])
        assert tool(look, allowed_callers=["programmatic"], output_schema={"type": "integer"})


class TestResults:
    async def test_a_typed_dicts_optional_keys_stay_optional(self) -> None:
        """On every Python, from either module."""
        schema: Any = giving(Loose, None).contract.output_schema
        assert schema["required"] == ["rows"]
        assert await invoke(giving(Loose, {"rows": []}), {}) == Success({"rows": []})
        assert await invoke(giving(Loose, {"rows": [], "note": None}), {}) == Success(
            {"rows": [], "note": None}
        )
        assert isinstance(await invoke(giving(Loose, {"note": "x"}), {}), Failure)

    async def test_a_subclass_shows_no_more_than_the_annotation(self) -> None:
        """The declared type is what leaves, whatever the object carries."""

        class Internal(Model):
            password: str = "hunter2"

        outcome = await invoke(giving(Model, Internal(name="a")), {})
        assert outcome == Success({"name": "a", "count": 3})
        raw = await invoke(giving(Model, {"name": "a", "count": 1, "password": "hunter2"}), {})
        assert "hunter2" not in repr(raw)

    async def test_defaults_are_in_the_result_and_the_schema_says_so(self) -> None:
        """A program may read every field of a model."""
        schema: Any = giving(Model, None).contract.output_schema
        assert schema["required"] == ["name", "count"]
        assert await invoke(giving(Model, Model(name="a")), {}) == Success({"name": "a", "count": 3})

    async def test_an_alias_is_the_name_on_the_wire_in_both_directions(self) -> None:
        """Schema, arguments and results agree."""

        class Aliased(BaseModel):
            model_config = ConfigDict(populate_by_name=True)
            unit_count: int = Field(alias="unitCount")

        take, got = taking(Aliased)
        assert await invoke(take, {"value": {"unitCount": 3}}) == Success(1)
        assert got == [Aliased(unit_count=3)]
        assert await invoke(giving(Aliased, Aliased(unit_count=3)), {}) == Success({"unitCount": 3})

    async def test_validators_of_the_application_run_and_refuse(self) -> None:
        """Their ValueErrors are the refusal's words; other exceptions are no way through."""

        def even(n: int) -> int:
            if n % 2:
                raise ValueError("must be even")
            return n

        def broken(n: int) -> int:
            raise KeyError("internal detail")

        class Range(BaseModel):
            low: int
            high: int

            @model_validator(mode="after")
            def ordered(self) -> "Range":
                if self.low > self.high:
                    raise ValueError("low is above high")
                return self

        for annotation, bad, words in (
            (Annotated[int, AfterValidator(even)], 3, "must be even"),
            (Range, {"low": 2, "high": 1}, "low is above high"),
        ):
            outcome = await invoke(taking(annotation)[0], {"value": bad})
            assert isinstance(outcome, Denied)
            assert words in outcome.message
        outcome = await invoke(taking(Annotated[int, AfterValidator(broken)])[0], {"value": 1})
        assert isinstance(outcome, Denied)
        assert "internal" not in outcome.message


SIMPLE = st.sampled_from([int, str, bool, None, Colour, Point, Model, Literal["a", 1]])
ANNOTATIONS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        inner.map(lambda item: list[item]),  # type: ignore[valid-type]
        inner.map(lambda item: Optional[item]),  # type: ignore[valid-type]  # noqa: UP045
        st.tuples(inner, inner).map(lambda pair: Union[pair]),  # noqa: UP007
        inner.map(lambda item: Box[item]),  # type: ignore[valid-type]
    ),
    max_leaves=4,
)


@given(ANNOTATIONS)
def test_every_combination_has_a_strict_schema(annotation: Any) -> None:
    """Nested generics, unions and containers of what is supported are supported."""
    entry, _ = taking(annotation)
    check_strict(entry.contract.parameters, "parameters")
    Draft202012Validator.check_schema(dict(entry.contract.parameters))
    assert TypeAdapter(annotation) is not None
