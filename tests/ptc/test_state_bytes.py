"""A sealed state is a text: no other text is taken for it, not even one that says the same."""

from __future__ import annotations

import asyncio
import json
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, function_call

KEY = b"a key of at least 16 bytes"


@ptc.tool(approval="always")
def drop(x: float, why: str) -> float:
    """Drop something."""
    return x


@lru_cache(maxsize=1)
def sealed() -> str:
    """With what JSON can write in more than one way: escapes, numbers, letters outside ASCII."""
    call = function_call("drop", arguments={"x": 1e30, "why": "caf\u00e9 / \u2028"})
    runner = ptc.Runner(
        client=FakeEndpoint([call]), model="m", tools=[drop], approver=ptc.PauseForApproval(), retry=AT_ONCE
    )
    state = asyncio.run(runner.run("caf\u00e9 \ud800 1e30")).state
    assert state is not None
    assert ptc.RunState.unseal(state.seal(KEY), KEY) == state
    return state.seal(KEY)


@settings(deadline=None)
@given(st.data())
def test_no_other_text_is_a_state(data: st.DataObject) -> None:
    """Bytes put in, left out or changed, wherever."""
    whole = sealed().encode()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 3)))
    changed = whole[:start] + data.draw(st.binary(max_size=3)) + whole[end:]
    if changed != whole:
        with pytest.raises(ptc.StateError):
            ptc.RunState.unseal(changed, KEY)


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: "\ufeff" + text,
        lambda text: json.dumps(json.loads(text)),
        lambda text: json.dumps(dict(reversed(json.loads(text).items())), separators=(",", ":")),
        lambda text: text.replace("\\u00e9", "\\u00E9").replace("\u00e9", "\\u00e9"),
        lambda text: text.replace("e+30", "E+30").replace("1e30}", "1E30}"),
        lambda text: text[:-4] + 'é"}',
        lambda text: text[:-8] + r'\ud800"}',
        lambda text: text.replace("e+30", "e+999").replace("1e30}", "1e999}"),
        lambda text: text.replace('"history":', '"history":' + "[" * 5000, 1),
        lambda text: text.encode("utf-16"),
        lambda text: text.replace("ptc-run-state", "ptc\\u002drun-state"),
    ],
)
def test_a_text_that_says_the_same_is_refused(rewrite: Any) -> None:
    """Whoever only keeps a state has no reason to write it anew; so it may be told by its bytes."""
    changed = rewrite(sealed())
    assert changed != sealed()
    with pytest.raises(ptc.StateError):
        ptc.RunState.unseal(changed, KEY)
