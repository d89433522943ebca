"""Point 10, mappings: no two keys of a JSON object become one on the way in, or on the way out."""

import datetime
import json
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, SecretStr

from ptc_tools import Denied, Failure, InvalidSchema, InvalidSignature, Sensitive, Success, tool
from tests.tools.tool_support import invoke


class Colour(Enum):
    RED = "red"


def taking(keys: Any) -> Any:
    async def look(m) -> str:  # type: ignore[no-untyped-def]
        """Look."""
        return repr(sorted(m))

    look.__annotations__["m"] = dict[keys, int]  # type: ignore[valid-type]
    return tool(look, effects="read", strict=False)


@pytest.mark.parametrize(
    "keys",
    [
        float,
        bool,
        Decimal,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        bytes,
        int | float,
        float | None,
    ],
)
def test_keys_of_many_forms_are_refused_when_the_tool_is_registered(keys: Any) -> None:
    """`1`, `1.0` and `1e0` are three keys in JSON, and one number."""
    with pytest.raises(InvalidSchema, match="more than one form"):
        taking(keys)


@pytest.mark.parametrize("key", [" 1", "01", "+1", "1_0", "1.0", "-0", "1e0", "", "１"])
@pytest.mark.parametrize("keys", [int, Annotated[int, Field(ge=0)]])
async def test_an_integer_key_has_one_form(keys: Any, key: str) -> None:
    """Each of these would replace another entry, and nobody would be told."""
    refused = await invoke(taking(keys), json.dumps({"m": {"1": 1, key: 2}}))
    assert isinstance(refused, Denied)
    assert refused.code == "invalid_arguments"


@pytest.mark.parametrize(
    ("keys", "given", "shown"),
    [
        (int, ["1", "10", "9007199254740993"], "[1, 10, 9007199254740993]"),
        (str, ["1", "01", "1.0"], "['01', '1', '1.0']"),
        (int | str, ["1", "01"], None),
        (datetime.date, ["2024-01-01"], "[datetime.date(2024, 1, 1)]"),
        (Literal["a", "b"], ["a"], "['a']"),
        (UUID, ["12345678-1234-5678-1234-56781234567f"], "[UUID('12345678-1234-5678-1234-56781234567f')]"),
    ],
)
async def test_keys_of_one_form_reach_the_tool(keys: Any, given: list[str], shown: str | None) -> None:
    """With every digit."""
    outcome = await invoke(taking(keys), json.dumps({"m": dict.fromkeys(given, 1)}))
    assert isinstance(outcome, Success)
    assert shown is None or outcome.value == shown


async def test_an_identifiers_key_is_written_in_small_letters() -> None:
    """The same identifier in capitals would be the same key."""
    key = "12345678-1234-5678-1234-56781234567f"
    assert isinstance(await invoke(taking(UUID), json.dumps({"m": {key: 1, key.upper(): 2}})), Denied)


@pytest.mark.parametrize("annotation", [dict[str, int], dict[str, Any], Any, dict[int, int]])
async def test_a_result_whose_keys_become_one_is_not_released(annotation: Any) -> None:
    """An entry would be lost in silence."""

    async def look(n: int):  # type: ignore[no-untyped-def]
        return {1: n, "1": 2}

    look.__annotations__["return"] = annotation
    outcome = await invoke(tool(look, effects="read", strict=False), {"n": 1})
    assert isinstance(outcome, Failure)
    assert outcome.message == "the tool's result cannot be sent: duplicate key '1'"


class Login(BaseModel):
    password: SecretStr


class Shown(BaseModel):
    password: Annotated[str, Sensitive]


@pytest.mark.parametrize("annotation", [SecretStr, Login, list[Login], Login | None, dict[str, SecretStr]])
def test_a_result_does_not_promise_a_text_and_give_asterisks(annotation: Any) -> None:
    """The caller would use them."""

    async def look(n: int):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    look.__annotations__["return"] = annotation
    with pytest.raises(InvalidSignature, match="Sensitive"):
        tool(look)
    look.__annotations__["return"] = Shown
    assert tool(look).contract.sensitive_results == ("/password",)


async def test_a_secret_parameter_reaches_the_tool() -> None:
    """It is what comes in."""

    @tool(effects="read")
    async def look(login: Login) -> int:
        return len(login.password.get_secret_value())

    assert await invoke(look, {"login": {"password": "abcdef"}}) == Success(6)
