"""No text that a model or a record gets holds what the host and the designer keep from it, in whatever form."""

import uuid
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import SecretStr

from ptc_tools import (
    Bounds,
    Call,
    Cancelled,
    Contract,
    Denied,
    Designer,
    Failure,
    Invocation,
    Next,
    Outcome,
    ProviderConfig,
    RunContext,
    Secret,
    Sensitive,
    Source,
    Success,
    ToolContext,
    Traced,
    Uncertain,
    tool,
)
from tests.tools.tool_support import MemoryRecorder, invoke, run_with


def holding(credential: str) -> Any:
    return run_with(credentials={"api": Secret(credential)}, tenant="acme-tenant")


@tool
async def failing(before: str, ctx: ToolContext) -> str:
    """Fail."""
    raise ValueError(before + ctx.credentials["api"].reveal())


async def test_a_middleware_that_fails_says_nothing_that_a_tool_may_not_say() -> None:
    """Neither to the model nor to the record."""

    @tool
    async def look(n: int) -> int:
        """Look."""
        return n

    async def layer(invocation: Invocation, next: Next) -> Outcome:
        raise RuntimeError(
            f"no cache for {invocation.run.credentials['api'].reveal()} of {invocation.run.tenant}"
        )

    recorder = MemoryRecorder()
    outcome = await invoke(
        look, {"n": 1}, middleware=[layer], recorder=recorder, run=holding("credential-canary")
    )
    assert isinstance(outcome, Failure)
    assert "no cache for [redacted] of [redacted]" in outcome.message
    assert recorder.last is outcome


@pytest.mark.parametrize(
    ("before", "credential"),
    [
        ("x" * 370, "canary-abcdefghijklmnopqrstuvwxyz"),
        ("key ", "canary-one\ncanary-two"),
        ("key ", "abc def/ghi /x/y/canary secretcanary"),
        ("\n\nkey ", "  canary canary  "),
    ],
)
async def test_a_text_is_scrubbed_before_it_is_shortened(before: str, credential: str) -> None:
    """The half that a cut leaves would not be recognised."""
    outcome = await invoke(failing, {"before": before}, run=holding(credential))
    assert isinstance(outcome, Failure)
    assert "[redacted]" in outcome.message
    for part in ("canary", "abc def", "ghi"):
        assert part not in outcome.message


async def test_a_result_that_is_cut_is_looked_at_whole() -> None:
    """The first characters of a credential are a part of it."""

    @tool(bounds=Bounds(text=12))
    async def look(n: int, ctx: ToolContext) -> str:
        """Look."""
        return ctx.credentials["api"].reveal()

    outcome = await invoke(look, {"n": 1}, run=holding("credential-canary-1234"))
    assert isinstance(outcome, Failure)
    assert "credential-c" not in outcome.message


class Kind(Enum):
    LIVE = "enum-canary"


@dataclass(slots=True)
class Slotted(ProviderConfig):
    endpoint: str
    token: Secret


@dataclass
class Nested(ProviderConfig):
    inner: Slotted
    options: dict[str, list[str]]


SLOTTED = Slotted("http://canary-host", Secret("slot-canary-secret"))


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (str, "can'ary\"x\\canary", repr),
        (int, 1234567890, str),
        (uuid.UUID, uuid.UUID(int=0xABCDEF1234567), str),
        (Path, Path("canary.db"), str),
        (bytes, b"bytes-canary", repr),
        (Kind, Kind.LIVE, lambda value: value.value),
        (Slotted, SLOTTED, lambda value: f"{value.endpoint} {value.token.reveal()}"),
        (Nested, Nested(SLOTTED, {"a": ["deep-canary"]}), lambda value: value.inner.token.reveal()),
        (Nested, Nested(SLOTTED, {"a": ["deep-canary"]}), lambda value: value.options["a"][0]),
        (dict[str, str], {"dsn": "dict-canary"}, lambda value: value["dsn"]),
    ],
)
async def test_a_designers_value_is_in_no_message_whatever_its_type(
    annotation: Any, value: Any, text: Any
) -> None:
    """Set by `configure`, or the function's default."""

    async def look(n: int, given=value) -> str:  # type: ignore[no-untyped-def]
        raise ValueError(f"bad {text(given)}")

    look.__annotations__["given"] = Annotated[annotation, Designer]
    for entry in (tool(look).configure(given=value), tool(look)):
        outcome = await invoke(entry, {"n": 1})
        assert isinstance(outcome, Failure)
        assert "[redacted]" in outcome.message
        assert text(value) not in outcome.message
        assert "canary" not in outcome.message


@pytest.mark.parametrize("effects", ["read", "write"])
async def test_a_designers_secret_is_in_no_result(effects: Any) -> None:
    """It is a credential as the run's are."""

    async def look(n: int, config: Annotated[Slotted, Designer] = SLOTTED) -> dict[str, str]:
        return {"token": f"Bearer {config.token.reveal()}"}

    outcome = await invoke(tool(look, effects=effects, strict=False), {"n": 1})
    assert isinstance(outcome, Uncertain if effects == "write" else Failure)
    assert "slot-canary" not in outcome.message


async def test_a_credential_in_an_origin_is_not_recorded() -> None:
    """Origins go to the record at every level of detail."""

    @tool
    async def look(n: int, ctx: ToolContext) -> Traced[str]:
        """Look."""
        return Traced.of("found", Source("db", f"https://u:{ctx.credentials['api'].reveal()}@db/1"))

    outcome = await invoke(look, {"n": 1}, run=holding("credential-canary"))
    assert isinstance(outcome, Success)
    assert outcome.provenance is not None
    assert outcome.provenance.sources == (Source("db", "https://u:[redacted]@db/1"),)


async def test_the_name_of_an_exception_is_looked_at_as_well() -> None:
    """A library may make its exceptions while it runs."""

    @tool
    async def look(n: int, ctx: ToolContext) -> int:
        """Look."""
        raise type(f"No_{ctx.credentials['api'].reveal()}", (Exception,), {})("gone")

    outcome = await invoke(look, {"n": 1}, run=holding("credential-canary"))
    assert isinstance(outcome, Failure)
    assert outcome.message == "the tool failed: No_[redacted]: gone"


class Talkative:
    """A policy, an approver and a middleware whose refusals quote what they were asked about."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def authorize(self, principal: str | None, *asked: Any) -> Denied | None:
        return Denied("not_authorized", f"{principal} may not: {asked}")

    async def approve(self, call: Call, contract: Contract, arguments: Any, run: RunContext) -> Denied | None:
        return Denied("not_approved", f"{run.principal} may not: {arguments}")

    async def __call__(self, invocation: Invocation, next: Next) -> Outcome:
        run = invocation.run
        said = f"{run.principal} {run.credentials['api'].reveal()} {invocation.arguments}"
        outcome: Outcome = self.answer(said)
        return outcome


@pytest.mark.parametrize("who", ["policy", "approver", "middleware"])
@pytest.mark.parametrize(
    "answer",
    [
        lambda said: Denied("not_authorized", said),
        lambda said: Failure("tool_error", said),
        lambda said: Cancelled(said),
    ],
)
async def test_who_refuses_in_the_applications_name_says_nothing_hidden(who: str, answer: Any) -> None:
    """Their words go to the model as a tool's do."""

    @tool(approval="always" if who == "approver" else "never")
    async def look(pin: Annotated[str, Sensitive]) -> str:
        """Look."""
        return pin

    speaker = Talkative(answer)
    recorder = MemoryRecorder()
    run = run_with(principal="principal-canary", credentials={"api": Secret("credential-canary")})
    outcome = await invoke(
        look,
        {"pin": "sensitive-canary"},
        run=run,
        recorder=recorder,
        **{who: [speaker] if who == "middleware" else speaker},
    )
    assert isinstance(outcome, Denied | Failure | Cancelled)
    assert "[redacted]" in outcome.message
    assert "canary" not in outcome.message
    assert recorder.last == outcome


async def test_a_secret_of_pydantics_is_a_sensitive_parameter() -> None:
    """Its author said so by its type."""

    @tool
    async def sign_in(password: SecretStr, n: int) -> int:
        """Sign in."""
        raise ValueError(password.get_secret_value())

    recorder = MemoryRecorder()
    outcome = await invoke(
        sign_in, {"password": "password-canary", "n": 1}, recorder=recorder, redacting=True
    )
    assert sign_in.contract.sensitive_parameters == ("/password",)
    assert "canary" not in repr(outcome)
    assert recorder.arguments == [{"password": "[redacted]", "n": 1}]
