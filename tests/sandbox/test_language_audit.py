"""Kinds of holes, not inputs: every expression is checked, and no library function serves a program's names."""

from __future__ import annotations

import ast
import copy
import json
import random
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
import RestrictedPython
from hypothesis import given
from hypothesis import strategies as st

import ptc_sandbox
from ptc_sandbox.guest import policy_names as names
from ptc_sandbox.guest.policy import PolicyViolation, ProgramPolicy
from ptc_sandbox.guest.policy_errors import RefusedAttribute
from ptc_sandbox.guest.policy_names import Rule
from tests.sandbox.language_programs import PROGRAMS

SAMPLE = 12
BODIES = """
class A:
    __slots__ = ("a", "b")
class B:
    __slots__: tuple = {"a": make(1)}
    __match_args__: list = ("a",)
    def m(self, x: int = 1, *y: str, z: float = 2, **k: bool) -> None: return self._x
try: import numpy
except (ImportError, KeyError) as e: print(e)
match x:
    case A(b, c=d) if e: pass
    case {"k": [1, *rest], **more}: pass
    case A.b | None: pass
async def f():
    async with a as b, c: pass
    async for i in j: yield k
    return [x async for x in y if z]
@a.b
class C(A, key=B): pass
lambda x=1, *, y=2: x
x: int = 5
del x[0], y.a
assert a, b
raise A from b
while a: break
else: continue_ = 1
f"{a!r:{b}}" + "{}".format(c)
x[a:b:c] = y if z else w
(a := b)
global_ = {**a, b: c}
"""


def _slots(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """The places in a tree where an expression is read: parent, field, index."""
    for parent in ast.walk(tree):
        if isinstance(parent, (ast.JoinedStr, ast.MatchValue, ast.MatchMapping, ast.MatchClass)):
            continue  # only some expressions may stand there
        for field, value in ast.iter_fields(parent):
            if field == "format_spec":
                continue
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.expr) and isinstance(getattr(child, "ctx", ast.Load()), ast.Load):
                    yield parent, field, index


@pytest.mark.parametrize("source", [*PROGRAMS.values(), BODIES], ids=[*PROGRAMS, "bodies"])
def test_an_expression_is_checked_wherever_it_stands(source: str) -> None:
    """Put `x.__globals__` in the place of any expression of an ordinary program, and the program is refused."""
    tree = ast.parse(source)
    count = len(list(_slots(tree)))
    chosen = (
        range(count) if source is BODIES else random.Random(source).sample(range(count), min(count, SAMPLE))
    )
    for number in chosen:
        changed = copy.deepcopy(tree)
        parent, field, index = list(_slots(changed))[number]
        evil = ast.parse("x.__globals__", mode="eval").body
        if index is None:
            setattr(parent, field, evil)
        else:
            getattr(parent, field)[index] = evil
        with pytest.raises(PolicyViolation):
            ProgramPolicy().check(ast.fix_missing_locations(changed))


@given(name=st.from_regex(r"__[a-z]{2,9}__|gi_frame|tb_frame|f_back", fullmatch=True), data=st.data())
def test_a_name_given_as_text_is_checked_as_the_compiler_reads_it(name: str, data: st.DataObject) -> None:
    """What makes fields of names hands them to the compiler, which folds wide letters."""
    wide = {chr(ord(c) + 0xFEE0): c for c in set(name)}
    spelled = "".join(data.draw(st.sampled_from([c, *(w for w, n in wide.items() if n == c)])) for c in name)
    assert unicodedata.normalize("NFKC", spelled) == name

    with pytest.raises(RefusedAttribute):
        names.checked_name(spelled)


@given(name=st.text(max_size=12))
def test_a_checked_name_is_harmless_or_private(name: str) -> None:
    """Whatever the text, what passes leads to nothing of the interpreter's."""
    try:
        checked = names.checked_name(name)
    except RefusedAttribute:
        return
    assert checked == unicodedata.normalize("NFKC", checked)
    assert names.load_rule(checked) is not Rule.REFUSED
    assert all(names.load_rule(one) is Rule.PLAIN for one in names.match_args([checked, "a"]))


def test_no_member_serves_an_attribute_by_a_name_that_is_given() -> None:
    """Every member of every module is called with a name that only the caller knows."""
    places = [str(Path(module.__file__ or "").parents[1]) for module in (ptc_sandbox, RestrictedPython)]
    script = Path(__file__).with_name("language_names.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-s", "-S", "-P", str(script), *places],
        capture_output=True,
        text=True,
        env={"PYTHONHASHSEED": "0"},
        timeout=100,
        check=True,
    )
    told = json.loads(done.stdout)

    assert told["tried"] > 50_000
    assert [line.partition(":")[0] for line in told["found"]] == [
        "control.getattr",
        "control.setattr",
        "control.cached_property",
    ]
