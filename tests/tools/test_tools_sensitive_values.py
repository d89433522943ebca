"""A sensitive value is in no message, no record and no schema, however it comes there."""

from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, field_validator

from ptc_tools import (
    Bounds,
    Denied,
    Failure,
    PartialResult,
    Reconciliation,
    Sensitive,
    Uncertain,
    define_tool,
    tool,
)
from tests.tools.tool_support import MemoryRecorder, invoke


def refuse(value: Any) -> Any:
    raise ValueError(f"{'x' * 380} pin {value!r} is wrong")


async def test_a_validator_of_the_applications_quotes_no_sensitive_value() -> None:
    """Its words go to the model; what it quotes is hidden before they are shortened."""

    @tool
    async def look(pin: Annotated[str, Sensitive, AfterValidator(refuse)]) -> str:
        """Look."""
        return pin

    outcome = await invoke(look, {"pin": "pin-canary-that-is-long"})
    assert isinstance(outcome, Denied)
    assert "pin" in outcome.message
    assert "canary" not in outcome.message
    assert "pin-c" not in outcome.message


class Account(BaseModel):
    pin: Annotated[int, Sensitive] = 12345678


async def test_a_number_is_as_sensitive_as_a_text() -> None:
    """A pin is one."""

    @tool(strict=False)
    async def look(account: Account) -> str:
        """Look."""
        raise ValueError(f"pin {account.pin}")

    outcome = await invoke(look, {"account": {"pin": 987654321}})
    assert isinstance(outcome, Failure)
    assert "987654321" not in outcome.message


class Holder(BaseModel):
    account: Account = Account(pin=55555555)


@pytest.mark.parametrize("strict", [True, False])
def test_a_sensitive_default_is_not_in_the_schema(strict: bool) -> None:
    """A default is a value like any other."""

    async def look(
        pin: Annotated[str, Sensitive] = "default-canary",
        account: Account = Account(pin=87654321),  # noqa: B008
        holder: Holder = Holder(),  # noqa: B008
    ) -> str:
        """Look."""
        return pin

    wire = str(tool(look, strict=strict).contract.wire())
    for hidden in ("canary", "12345678", "87654321", "55555555"):
        assert hidden not in wire


async def test_a_record_shows_no_sensitive_argument_to_go_on_with() -> None:
    """The model gets the continuation; it said the value itself."""

    @tool(strict=False, bounds=Bounds(items=2, offset="skip"))
    async def look(pin: Annotated[str, Sensitive], skip: int = 0) -> list[int] | PartialResult[list[int]]:
        """Look."""
        return PartialResult(value=[1], missing=["2"], continuation={"pin": pin, "skip": 1})

    recorder = MemoryRecorder()
    outcome = await invoke(look, {"pin": "pin-canary"}, recorder=recorder, redacting=True)
    assert "pin-canary" in str(outcome)
    assert "pin-canary" not in str(recorder.records)
    assert "/continuation/pin" in look.contract.sensitive_results


async def test_a_record_shows_no_sensitive_argument_of_the_read_that_tells() -> None:
    """The reconciliation repeats arguments of the mutation."""

    @tool(effects="write", reconciliation=Reconciliation("find", {"pin": "pin", "n": "n"}))
    async def change(pin: Annotated[str, Sensitive], n: int) -> str:
        """Change."""
        raise ConnectionError

    recorder = MemoryRecorder()
    outcome = await invoke(change, {"pin": "pin-canary", "n": 1}, recorder=recorder, redacting=True)
    assert isinstance(outcome, Uncertain)
    assert outcome.reconciliation == {"tool": "find", "arguments": {"pin": "pin-canary", "n": 1}}
    recorded = recorder.last
    assert isinstance(recorded, Uncertain)
    assert recorded.reconciliation == {"tool": "find", "arguments": {"pin": "[redacted]", "n": 1}}


async def test_a_validators_own_words_about_a_sensitive_value_are_left_out() -> None:
    """It may say the value in any form."""

    class Login(BaseModel):
        pin: Annotated[str, Sensitive]

        @field_validator("pin")
        @classmethod
        def weak(cls, value: str) -> str:
            raise ValueError(f"{value} is weak, try {value[::-1]}")

    @tool(effects="read")
    async def look(login: Login) -> int:
        return 1

    outcome = await invoke(look, {"login": {"pin": "pin-canary"}})
    assert isinstance(outcome, Denied)
    assert outcome.message == "invalid arguments: login.pin: a validator refused it"


def test_an_outcome_does_not_show_its_exception() -> None:
    """A run's result is printed and logged whole; the exception has the text that was not scrubbed."""
    assert "raw-canary" not in repr(Failure("tool_error", "it failed", ValueError("raw-canary")))


@pytest.mark.parametrize(
    "arguments",
    [{"pin": "1", "pin2": "pin-canary"}, '{"pin-canary": 1}', '["pin-canary"]', '{"pin": "pin-canary"'],
)
async def test_a_misspelt_sensitive_argument_is_not_recorded_either(arguments: Any) -> None:
    """A refused call is recorded by what the tool declares; nobody knows what else the model meant."""

    @tool
    async def look(pin: Annotated[str, Sensitive]) -> str:
        """Look."""
        return pin

    recorder = MemoryRecorder()
    outcome = await invoke(look, arguments, recorder=recorder, redacting=True)
    assert isinstance(outcome, Denied)
    assert recorder.kinds == ["denied"]
    assert "canary" not in repr(recorder.calls)


PIN: dict[str, Any] = {"type": "object", "properties": {"pin": {"type": "string", "x-sensitive": True}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {**PIN, "required": ["nosuch"]}},
        {"dependentSchemas": {"pin": PIN}},
        {"unevaluatedProperties": {"type": "string", "x-sensitive": True}},
        {"propertyNames": {"type": "string", "x-sensitive": True}},
        {"properties": {"pin": {"$dynamicRef": "#/$defs/Pin"}}, "$defs": {"Pin": {"x-sensitive": True}}},
        {"properties": {"pin": {"contentMediaType": "text/plain", "contentSchema": {"x-sensitive": True}}}},
        {"x-forms": [PIN]},
    ],
    ids=lambda schema: next(iter(schema)),
)
async def test_a_mark_hides_what_it_may_mean_wherever_a_schema_has_it(schema: dict[str, Any]) -> None:
    """Where nobody can tell which value a mark means, all that it may mean are hidden."""
    definition = {"name": "raw", "parameters": {"type": "object", **schema}, "strict": False}
    raw = define_tool(definition, lambda **given: "done")
    recorder = MemoryRecorder()
    outcome = await invoke(raw, {"pin": "pin-canary"}, recorder=recorder, redacting=True)
    assert outcome.status == "success"
    assert recorder.kinds == ["started", "finished"]
    assert "canary" not in repr((recorder.arguments, recorder.calls))
