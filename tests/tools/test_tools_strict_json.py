"""Strict JSON: what other readers let pass is refused, and what is JSON survives exactly."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptc_tools import InvalidJson
from ptc_tools.strict_json import canonical, clone, dumps, loads

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": 1, "\\u0061": 2}',
        '[{"x": {"b": 1, "b": 1}}]',
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e999",
        "-1e999",
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '{"\\ud800": 1}',
        '"\ud800"',
        "",
        " ",
        "{",
        "{'a': 1}",
        '{"a": 1,}',
        "[1 2]",
        "01",
        "+1",
        ".5",
        "1.",
        "0x10",
        "tru",
        "undefined",
        '"\x00"',
        '"\t"',
        "\ufeff{}",
        "{} {}",
        "// comment\n{}",
        "[" * 65 + "]" * 65,
        '{"a":' * 65 + "1" + "}" * 65,
        "[" * 200_000,
        "1" * 5_000,
    ],
)
def test_text_that_is_not_strict_json_is_refused(text: str) -> None:
    """A check and a tool must never read two meanings from one text."""
    with pytest.raises(InvalidJson):
        loads(text)


@pytest.mark.parametrize("data", [b"\xff", b'"\xed\xa0\x80"', b"\xef\xbb\xbf{}", '"a"'.encode("utf-16")])
def test_bytes_that_are_not_utf8_json_are_refused(data: bytes) -> None:
    """Guessing an encoding would be another way to two meanings."""
    with pytest.raises(InvalidJson):
        loads(data)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9007199254740993", 9007199254740993),
        ("-123456789012345678901234567890", -123456789012345678901234567890),
        ('"\\ud83d\\ude00"', "😀"),
        ('"\\u0000"', "\0"),
        ("1e2", 100.0),
        ("-0.0", -0.0),
        ('{"a":[],"b":{}}', {"a": [], "b": {}}),
        ("[" * 64 + "]" * 64, json.loads("[" * 64 + "]" * 64)),
    ],
)
def test_what_is_json_is_read_exactly(text: str, value: object) -> None:
    """Integers beyond 2**53 are ids in the wild: a digit lost is another record."""
    assert loads(text) == value
    assert loads(text.encode()) == value


@given(JSON)
def test_a_value_survives_being_written_and_read(value: object) -> None:
    """What one side sends is what the other side has."""
    assert loads(dumps(value)) == value
    assert clone(value) == value
    assert loads(canonical(value)) == value


@given(st.text())
def test_only_our_error_escapes_for_any_text(text: str) -> None:
    """Hostile text must be an InvalidJson, never another exception, and what is read is json's own reading."""
    try:
        value = loads(text)
    except InvalidJson:
        return
    assert value == json.loads(text)


@given(st.binary())
def test_only_our_error_escapes_for_any_bytes(data: bytes) -> None:
    """The same for bytes."""
    try:
        loads(data)
    except InvalidJson:
        return


def test_canonical_bytes_do_not_depend_on_the_order_of_keys() -> None:
    """They are what fingerprints and approvals are bound to."""
    assert canonical({"b": 1, "a": {"d": 2, "c": "é"}}) == '{"a":{"c":"é","d":2},"b":1}'.encode()


@pytest.mark.parametrize(
    "value",
    [
        {1: 2},
        {None: 1},
        float("nan"),
        [float("-inf")],
        {"a": object()},
        b"bytes",
        {"a": {1, 2}},
        "\ud800",
        {"\ud800": 1},
        [1j],
        pytest.param(10**4300, id="too many digits"),
    ],
)
def test_what_json_cannot_carry_is_never_made_a_string(value: object) -> None:
    """`json.dumps` turns the key 1 into "1" and NaN into NaN."""
    with pytest.raises(InvalidJson):
        dumps(value)
    with pytest.raises(InvalidJson):
        clone(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    """A cycle must end in an error, also one that doubles at each level."""
    once: list[object] = []
    once.append(once)
    twice: list[object] = []
    twice.extend([twice, twice])
    for value in (once, twice):
        with pytest.raises(InvalidJson, match="itself"):
            dumps(value)
