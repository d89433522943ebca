"""No text that a model or a record gets holds what the host and the designer keep from it, in whatever form."""

import base64
import datetime
import functools
import ipaddress
import itertools
import logging
import re
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, quote_plus

import pytest
from pydantic import BaseModel, PostgresDsn, SecretStr

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
    Tool,
    ToolContext,
    ToolError,
    Traced,
    Uncertain,
    error_object,
    tool,
)
from tests.tools.tool_support import MemoryRecorder, invoke, run_with


def holding(credential: str) -> Any:
    return run_with(credentials={"api": Secret(credential)}, tenant="acme-tenant")


@tool
async def failing(before: str, ctx: ToolContext) -> str:
    """Fail."""
    raise ToolError(before + ctx.credentials["api"].reveal())


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
    assert outcome.message.startswith("a middleware failed: RuntimeError (details are withheld")
    assert outcome.details == "a middleware failed: RuntimeError: no cache for [redacted] of [redacted]"
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
        raise (ToolError if n else ValueError)(f"bad {text(given)}")

    look.__annotations__["given"] = Annotated[annotation, Designer]
    for entry, n in itertools.product((tool(look).configure(given=value), tool(look)), (0, 1)):
        outcome = await invoke(entry, {"n": n})
        assert isinstance(outcome, Failure)
        assert "[redacted]" in (outcome.message if n else outcome.details or "")
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
        name = ctx.credentials["api"].reveal().upper()
        raise type(name, (LookupError,), {"__module__": __name__})("gone")

    outcome = await invoke(look, {"n": 1}, run=holding("credential_canary"))
    assert isinstance(outcome, Failure)
    assert outcome.message.startswith("the tool failed: LookupError (details are withheld")
    assert outcome.details == "the tool failed: [redacted]: gone"


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


KEY = "sk+live/9f8e7d=="
HOST = "db.internal"
DSN = f"postgres://app:hunter2pw@{HOST}:5432/x"


class Settings(BaseModel):
    url: PostgresDsn


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "percent-encoded": lambda key: quote(key, safe=""),
    "with plus for spaces": quote_plus,
    "in base64": lambda key: base64.b64encode(key.encode()).decode(),
    "in an authorization": lambda key: base64.b64encode(f"u:{key}".encode()).decode(),
    "in base64 for addresses": lambda key: base64.urlsafe_b64encode(f"ab{key}z".encode()).decode(),
    "in hex": lambda key: key.encode().hex(),
    "in upper case": str.upper,
    "quoted": repr,
    "as bytes": lambda key: repr(key.encode()),
}
BEYOND_A_SEARCH: dict[str, Callable[[str], str]] = {
    "cut": lambda key: key[:12] + "...",
    "reversed": lambda key: key[::-1],
    "with spaces": " ".join,
    "quoted twice": lambda key: repr(repr(key + "'\"")),
    "each character's number": lambda key: str(list(key.encode())),
}


def fails_with(
    error: type[Exception], write: Callable[[str], str], effects: Any = "read"
) -> Tool[..., object]:
    @tool(effects=effects, allowed_callers=["direct", "programmatic"])
    async def look(n: int, ctx: ToolContext) -> int:
        """Look."""
        raise error(f"no answer to {write(ctx.credentials['api'].reveal())} today")

    return look


@pytest.mark.parametrize("effects", ["read", "write"])
@pytest.mark.parametrize("error", [ValueError, ConnectionError])
@pytest.mark.parametrize(
    "write", [*FORMS.values(), *BEYOND_A_SEARCH.values()], ids=[*FORMS, *BEYOND_A_SEARCH]
)
async def test_no_exceptions_words_are_shown_by_a_tool_that_has_credentials(
    write: Callable[[str], str], error: type[Exception], effects: Any
) -> None:
    """No search finds each form of a value, so nothing of the text is shown, and the host has the exception."""
    outcome = await invoke(fails_with(error, write, effects), {"n": 1}, run=holding(KEY))
    assert isinstance(outcome, Failure)
    assert f"{error.__name__} (details are withheld" in outcome.message
    assert "no answer" not in outcome.message
    assert isinstance(outcome.exception, error)
    assert "no answer" in (outcome.details or "")
    assert "no answer" not in str(error_object(outcome))


@pytest.mark.parametrize("write", FORMS.values(), ids=FORMS)
async def test_what_is_written_for_the_model_loses_a_credential_in_its_common_forms(
    write: Callable[[str], str],
) -> None:
    """Its author may have quoted an address without thinking."""
    outcome = await invoke(fails_with(ToolError, write), {"n": 1}, run=holding(KEY))
    assert isinstance(outcome, Failure)
    assert outcome.message.startswith("the tool failed: no answer to ")
    assert outcome.message.endswith(" today")
    assert "[redacted]" in outcome.message
    assert write(KEY) not in outcome.message


@pytest.mark.parametrize("write", FORMS.values(), ids=FORMS)
async def test_no_result_holds_a_credential_in_its_common_forms(write: Callable[[str], str]) -> None:
    """An echo of a request has the credential as the request had it."""

    @tool
    async def look(n: int, ctx: ToolContext) -> str:
        """Look."""
        return f"sent {write(ctx.credentials['api'].reveal())} today"

    outcome = await invoke(look, {"n": 1}, run=holding(KEY))
    assert isinstance(outcome, Failure)
    assert outcome.message == "the tool's result holds a credential and is withheld"


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (PostgresDsn, PostgresDsn(DSN), str),
        (PostgresDsn, PostgresDsn(DSN), lambda value: f"{value.hosts()[0]['password']} was refused"),
        (Settings, Settings(url=PostgresDsn(DSN)), lambda value: str(value.url)),
        (Any, Decimal("98765.4321"), str),
        (Any, datetime.date(2031, 2, 3), str),
        (Any, datetime.datetime(2031, 2, 3, 4, 5, 6), str),
        (Any, ipaddress.ip_address("10.77.88.99"), str),
        (Any, re.compile("regex-canary"), lambda value: value.pattern),
        (Any, deque(["deque-canary"]), lambda value: value[0]),
        (Any, functools.partial(str, "partial-canary"), lambda value: value()),
        (Any, {"key-canary": 1}, lambda value: next(iter(value))),
        (Any, [[[[[[["deep-canary"]]]]]]], str),
        (Any, [*map(str, range(100_000, 102_500)), "late-canary"], lambda value: value[-1]),
        (Any, 12345678, lambda value: f"{value:,}"),
        (Any, memoryview(b"view-canary"), lambda value: value.tobytes().decode()),
    ],
)
async def test_a_designers_value_is_found_in_what_is_written_for_the_model(
    annotation: Any, value: Any, text: Any
) -> None:
    """And is not looked for in what others wrote: that is not shown at all."""

    async def look(n: int, given) -> str:  # type: ignore[no-untyped-def]
        raise (ToolError if n else RuntimeError)(f"cannot use {text(given)}")

    look.__annotations__["given"] = Annotated[annotation, Designer]
    entry = tool(look).configure(given=value)
    outcome = await invoke(entry, {"n": 1})
    assert isinstance(outcome, Failure)
    assert "cannot use" in outcome.message
    assert "[redacted]" in outcome.message
    assert text(value) not in outcome.message
    outcome = await invoke(entry, {"n": 0})
    assert isinstance(outcome, Failure)
    assert outcome.message.startswith("the tool failed: RuntimeError (details are withheld")


@pytest.mark.parametrize(
    "given",
    [{"tenant": "t"}, {"principal": "p"}, {"labels": {"team": "x"}}, {"credentials": {"a": Secret("b")}}],
)
async def test_every_trusted_value_withholds(given: Any) -> None:
    """Also a short one, which no search could tell from words."""

    @tool
    async def look(n: int, ctx: ToolContext) -> int:
        """Look."""
        raise ValueError(f"no {ctx.run!r}")

    @tool
    async def knows_nothing(n: int) -> int:
        """Look."""
        raise ValueError(f"no {n}")

    outcome = await invoke(look, {"n": 1}, run=run_with(**given))
    assert isinstance(outcome, Failure)
    assert outcome.message.startswith("the tool failed: ValueError (details")
    outcome = await invoke(knows_nothing, {"n": 1}, run=run_with(**given))
    assert isinstance(outcome, Failure)
    assert outcome.message == "the tool failed: ValueError: no 1"


async def test_a_result_that_breaks_says_nothing_of_what_is_in_it() -> None:
    """Its keys may be anything that the tool had at hand, and a serialiser quotes what it met."""

    async def look(n: int, given: Annotated[str, Designer] = "abc") -> dict[str, int]:
        return {given[::-1]: given} if n else {given: object()}  # type: ignore[dict-item]

    entry = tool(look, strict=False)
    for n in (0, 1):
        outcome = await invoke(entry, {"n": n})
        assert isinstance(outcome, Failure)
        assert outcome.code == "invalid_result"
        assert "details are withheld" in outcome.message
        assert "abc" not in outcome.message
        assert "cba" not in outcome.message


async def test_the_host_can_see_what_failed(caplog: pytest.LogCaptureFixture) -> None:
    """In its debug log, which is off by default, with where it was raised."""
    with caplog.at_level(logging.DEBUG, logger="ptc.tools"):
        await invoke(fails_with(ValueError, str), {"n": 1}, run=holding("a-key"))
    (record,) = caplog.records
    assert record.getMessage() == "call of look failed"
    assert record.exc_info is not None
    assert "no answer to a-key" in str(record.exc_info[1])
