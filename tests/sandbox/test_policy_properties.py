"""What must hold of the policy for every name, every format string, every program."""

from __future__ import annotations

import random
import string
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ptc_sandbox.guest import policy_names as names
from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.guards_format import safe_format
from ptc_sandbox.guest.policy import PolicyViolation, compile_program
from ptc_sandbox.guest.policy_errors import RefusedAttribute
from ptc_sandbox.guest.policy_names import Rule

WIDE = {chr(ord(c) + 0xFEE0): c for c in string.ascii_letters}
CONTEXTS = [
    "x.{}",
    "x.{} = 1",
    "del x.{}",
    "x.{} += 1",
    "for x.{} in y: pass",
    "with y as x.{}: pass",
    "(x.{}, z) = y",
    "[0 for x.{} in y]",
    "match x:\n    case y(): x.{}",
    "match x:\n    case object({}=z): pass",
    "match x:\n    case z.{}: pass",
    "f'{{x.{}}}'",
    "def f(a=x.{}): pass",
    "lambda: x.{}",
    "@x.{}\ndef f(): pass",
    "class A(x.{}): pass",
    "y: x.{} = 1",
    "async def f(): await x.{}",
    "x.a.{}.b",
    "x[0].{}()",
]
special = st.sampled_from(
    ["__globals__", "__code__", "__subclasses__", "__bases__", "__reduce_ex__", "__closure__", "gi_frame"]
)
dunders = st.from_regex(r"__[a-z]{1,12}__", fullmatch=True)
refused_names = st.one_of(special, dunders).filter(
    lambda name: names.load_rule(name) is Rule.REFUSED and names.store_rule(name) is Rule.REFUSED
)


class World:
    random = random.Random(1)

    def now_us(self) -> int:
        return 0

    monotonic_us = now_us

    def sleep(self, seconds: float) -> None: ...

    def random_bytes(self, n: int) -> bytes:
        return bytes(n)

    def write_output(self, text: str) -> None: ...


@given(name=refused_names, context=st.sampled_from(CONTEXTS))
def test_a_refused_name_is_refused_wherever_it_stands(name: str, context: str) -> None:
    """Whatever syntax reads or binds an attribute, the name is checked."""
    with pytest.raises(PolicyViolation) as caught:
        compile_program(context.format(name))

    assert caught.value.code == "forbidden_attribute"


@given(name=refused_names, data=st.data())
def test_a_name_is_checked_as_python_reads_it(name: str, data: st.DataObject) -> None:
    """Python normalises identifiers: wide letters spell the same name."""
    spelled = "".join(data.draw(st.sampled_from([c, *(w for w, n in WIDE.items() if n == c)])) for c in name)
    assert unicodedata.normalize("NFKC", spelled) == name

    with pytest.raises(PolicyViolation):
        compile_program(f"x.{spelled}")


@given(
    name=st.one_of(refused_names, st.text(max_size=20)),
    value=st.sampled_from([1, len, object, (i for i in ()), "text"]),
)
@example(name="__self__", value=len)
@example(name="gi_frame", value=(i for i in ()))
def test_getattr_never_gives_what_may_not_be_spelled(name: str, value: Any) -> None:
    """A name made at run time has the rights of one that is written out."""
    guards = Guards(World(), {})
    try:
        guards.getattr(value, name, None)
    except RefusedAttribute:
        return
    assert names.load_rule(name) in (Rule.PLAIN, Rule.GUARDED)


FIELDS = st.from_regex(
    r"\{[0-2]?(\.[a-z_]{1,12}|\[[0-9a-z_.]{1,4}\]){0,3}(![rsa])?(:[^{}]{0,3}|:\{1\.[a-z_]{1,9}\})?\}",
    fullmatch=True,
)


@given(
    template=st.lists(st.one_of(FIELDS, st.sampled_from(["{{", "}}", "text", "{", "}"])), max_size=4).map(
        "".join
    )
)
@example(template="{0.__class__}")
@example(template="{0:{1.__class__}}")
@example(template="{0[__class__]}")
def test_a_format_string_formats_as_ever_or_is_refused(template: str) -> None:
    """No template changes its meaning, and none reads a name that may not be read."""
    read: list[str] = []

    class Spy:
        def __getattr__(self, name: str) -> Spy:
            read.append(name)
            return self

        def __getitem__(self, key: object) -> Spy:
            return self

        def __format__(self, spec: str) -> str:
            return f"<{spec}>"

        def __repr__(self) -> str:
            return "spy"

        __str__ = __repr__

    try:
        expected: str | None = template.format(Spy(), Spy(), Spy())
    except (ValueError, IndexError, KeyError, AttributeError) as error:
        expected = type(error).__name__
    read.clear()
    try:
        given: str | None = safe_format(template, Spy(), Spy(), Spy())
    except RefusedAttribute:
        given = None
    except (ValueError, IndexError, KeyError, AttributeError) as error:
        given = type(error).__name__

    assert given in (expected, None)
    assert all(names.load_rule(name) is Rule.PLAIN for name in read)


@given(name=st.from_regex(r"_[a-z][a-z_]{0,10}[a-z]", fullmatch=True))
def test_a_private_attribute_belongs_to_the_programs_own_classes(name: str) -> None:
    """What a library keeps behind an underscore stays there."""
    guards = Guards(World(), {})

    class Mine:
        pass

    mine = Mine()
    with pytest.raises(RefusedAttribute):
        guards.getattr(mine, name, None)
    guards.adopt(Mine)
    setattr(mine, name, 5)

    assert guards.getattr(mine, name) == 5
