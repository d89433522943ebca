"""Point 1, what is refused: a contract that could not be kept, written down or looked at later."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from ptc_tools import (
    Bounds,
    Catalog,
    Contract,
    Idempotency,
    InvalidSignature,
    Reconciliation,
    RegistrationError,
    RequireAuthority,
    SearchRange,
    compile_declaration,
    define_tool,
    offers,
    tool,
)
from tests.tools import tool_support

DECLARATION: dict[str, Any] = {
    "name": "pay",
    "description": "Move money.",
    "parameters": {"type": "object", "properties": {}, "additionalProperties": False, "required": []},
    "output_schema": {"type": "integer"},
    "allowed_callers": ["direct"],
    "effects": "write",
    "commitment": "moves money",
    "version": "1",
}


@pytest.mark.parametrize(
    "read", ["", "\n", " ", "find\n", None, 5, ["find"], "no such tool!", "a.b.c", ".find", "x" * 65, "pay"]
)
def test_a_declaration_names_a_tool_that_tells(read: object) -> None:
    """Who is told that a change is uncertain must be able to call it, and must not make the change again."""
    with pytest.raises(RegistrationError, match="reconciliation"):
        compile_declaration({**DECLARATION, "reconciliation": {"tool": read}})


@pytest.mark.parametrize("read", ["find", "records.find", "x" * 64])
def test_a_declaration_may_name_any_tool(read: str) -> None:
    """By its name, or by its qualified name."""
    spec = compile_declaration({**DECLARATION, "reconciliation": {"tool": read}})
    assert spec.contract.reconciliation == Reconciliation(read)


@pytest.mark.parametrize("blank", ["", " ", "\n"])
@pytest.mark.parametrize("name", ["commitment", "version"])
def test_a_declaration_that_says_nothing_lacks_it(name: str, blank: str) -> None:
    """White space is no commitment."""
    with pytest.raises(RegistrationError, match=name):
        compile_declaration({**DECLARATION, "idempotency": {"source": "service"}, name: blank})


@pytest.mark.parametrize("effects", [None, "write"])
def test_a_catalogs_reconciliation_read_only_reads(effects: Any) -> None:
    """One that does not say so may change something each time that somebody looks."""

    @tool(effects="write", reconciliation=Reconciliation("find"))
    async def pay(cents: int) -> int:
        return cents

    async def find(n: int) -> int:
        return n

    with pytest.raises(RegistrationError, match="reconciliation read 'find'"):
        Catalog([pay, tool(find, effects=effects)])
    assert len(Catalog([pay, tool(find, effects="read")])) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"approval": None},
        {"projection": None},
        {"bounds": None},
        {"effects": ["read"]},
        {"timeout": 10**400},
        {"timeout": float("nan")},
        {"timeout": -1},
        {"commitment": " ", "effects": "write"},
        {"version": ""},
    ],
)
def test_what_no_contract_can_say_is_refused_when_it_is_said(options: Any) -> None:
    """Not when a lock is written, or a call made."""

    async def look(n: int) -> int:
        return n

    with pytest.raises(RegistrationError):
        tool(look, **options)
    with pytest.raises(RegistrationError):
        Contract(name="look", parameters={"type": "object"}, strict=False, **options)


@pytest.mark.parametrize(
    ("start", "end", "limit"),
    [("a", "b", float("inf")), ("a", "b", float("nan")), ("a", "b", 10**400), ("a", "a", 3), ("a", "b", 0)],
)
def test_a_search_range_has_two_ends_and_a_limit(start: str, end: str, limit: float) -> None:
    """An infinite one cannot be written down, and one of one parameter bounds nothing."""
    with pytest.raises(RegistrationError, match="search range"):
        SearchRange(start, end, limit)


def test_every_contract_that_is_made_can_be_pinned() -> None:
    """A traceback of `ptc tools lock` helps nobody."""

    @tool(effects="read", bounds=Bounds(search=SearchRange("a", "b", 1e300)), timeout=1e300)
    async def look(a: float, b: float) -> float:
        return b

    assert look.contract.fingerprint().startswith("sha256:")


class Stock:
    """A class, which makes instances."""

    def __init__(self, n: int) -> None:
        self.n = n


def listed(n: int) -> Iterator[int]:
    yield n


async def streamed(n: int) -> AsyncIterator[int]:
    yield n


class Streams:
    def __call__(self, n: int):  # type: ignore[no-untyped-def]
        yield n


@pytest.mark.parametrize("target", [Stock, listed, streamed, Streams()])
def test_what_gives_no_value_is_no_tool(target: Any) -> None:
    """It would be registered, and fail in each call."""
    definition: Any = {"name": "look", "parameters": {"type": "object"}}
    with pytest.raises(InvalidSignature):
        define_tool(definition, target)
    with pytest.raises(InvalidSignature):
        tool(target, name="look")


def test_what_a_principal_holds_is_a_list_of_names() -> None:
    """A text is a collection of letters, and would grant nothing without a word."""
    with pytest.raises(TypeError, match="list of names"):
        RequireAuthority({"ada": "orders:read"})


def test_an_offer_is_no_selection_of_itself() -> None:
    """Whoever selects writes the names."""
    found = offers(tool_support)
    with pytest.raises(TypeError, match="written out"):
        found.select(found)


def test_idempotency_is_still_declared() -> None:
    """What is complete is taken."""
    assert compile_declaration(
        {**DECLARATION, "idempotency": {"source": "service"}}
    ).contract.idempotency == (Idempotency("service"))
