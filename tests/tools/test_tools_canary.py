"""A canary in every value that a model must not see, and a look at everything that is sent anywhere.

Designer values, the host's trusted values and credentials are planted; then tools succeed, fail, time out,
return too much and break their schema, and no output of ours may hold a canary.
"""

import asyncio
import dataclasses
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from ptc_sandbox.codeact import instructions
from ptc_tools import (
    Bounds,
    Catalog,
    Designer,
    Failure,
    Idempotency,
    Invoker,
    Lock,
    Outcome,
    Reconciliation,
    RegistrationError,
    Secret,
    Success,
    ToolContext,
    error_object,
    tool,
)
from ptc_tools.lint import lint
from tests.tools.tool_support import PROGRAM, MemoryRecorder, call, run_with

CANARIES = {
    "designer text": "canary-designer-text",
    "designer nested": "canary-designer-nested",
    "designer secret": "canary-designer-secret",
    "designer pydantic": "canary-designer-pydantic",
    "designer attribute": "canary-designer-attribute",
    "principal": "canary-principal",
    "tenant": "canary-tenant",
    "label": "canary-label",
    "credential": "canary-credential",
}


@dataclasses.dataclass
class Client:
    url: str


class Row(BaseModel):
    n: int
    text: str = Field(max_length=200)


async def work(
    kind: Annotated[str, Field(description="What to do.")],
    index: Annotated[str, Designer],
    options: Annotated[dict[str, Any], Designer],
    key: Annotated[Secret, Designer],
    password: Annotated[SecretStr, Designer],
    client: Annotated[Client, Designer],
    ctx: ToolContext,
) -> list[Row]:
    """Do something with what only the host knows."""
    everything = " ".join(
        [
            index,
            options["deep"][0],
            key.reveal(),
            password.get_secret_value(),
            client.url,
            str(ctx.principal),
            str(ctx.tenant),
            ctx.labels["label"],
            ctx.credentials["api"].reveal(),
        ]
    )
    match kind:
        case "raises":
            raise ValueError(f"cannot use {everything}")
        case "groups":
            raise ExceptionGroup(everything, [ValueError(everything), KeyError(everything)])
        case "breaks":
            raise ConnectionError(everything)
        case "hangs":
            await asyncio.Event().wait()
        case "odd":
            return {everything: everything}  # type: ignore[return-value]
        case "unserialisable":
            return [Row.model_construct(n=everything, text="x")]  # type: ignore[arg-type]
        case "returns credential":
            return [Row(n=1, text=f"token {ctx.credentials['api'].reveal()}")]
        case "many":
            return [Row(n=n, text="x") for n in range(50)]
    return [Row(n=1, text="fine")]


KINDS = ["raises", "groups", "breaks", "hangs", "odd", "unserialisable", "returns credential", "many", "fine"]


def configured(**options: Any) -> Any:
    values = {
        "timeout": 0.02,
        "allowed_callers": ["direct", "programmatic"],
        "bounds": Bounds(items=10),
        **options,
    }
    return tool(work, **values).configure(
        index=CANARIES["designer text"],
        options={"deep": [CANARIES["designer nested"]]},
        key=Secret(CANARIES["designer secret"]),
        password=SecretStr(CANARIES["designer pydantic"]),
        client=Client(CANARIES["designer attribute"]),
    )


RUN = run_with(
    "prog_1",
    principal=CANARIES["principal"],
    tenant=CANARIES["tenant"],
    labels={"label": CANARIES["label"]},
    credentials={"api": Secret(CANARIES["credential"])},
)


def found_in(*shown: object) -> list[str]:
    text = "\n".join(map(str, shown)) + "\n" + "\n".join(map(repr, shown))
    return [name for name, canary in CANARIES.items() if canary in text]


def as_sent(outcome: Outcome) -> object:
    return outcome.value if isinstance(outcome, Success) else error_object(outcome)


@pytest.mark.parametrize("effects", ["read", "write"])
@pytest.mark.parametrize("caller", ["direct", "program"])
@pytest.mark.parametrize("kind", KINDS)
async def test_no_outcome_holds_a_canary(kind: str, caller: str, effects: str) -> None:
    """However a tool ends, what is sent to the model or to a program holds none."""
    entry = configured(effects=effects)
    the_call = (
        call(entry, {"kind": kind}, caller=PROGRAM) if caller == "program" else call(entry, {"kind": kind})
    )
    recorder = MemoryRecorder()
    outcome = await Invoker([entry], recorder=recorder).invoke(the_call, RUN)
    assert found_in(as_sent(outcome)) == []
    assert isinstance(outcome, Success) == (kind in ("many", "fine"))
    assert found_in(recorder.arguments, recorder.calls) == []
    if isinstance(outcome, Failure):
        assert found_in(outcome.message) == []


@pytest.mark.parametrize(
    "arguments", ["{", "[]", '{"kind": 1}', '{"kind": "x", "index": "y"}', '{"index": null}', None]
)
async def test_no_refusal_holds_a_canary(arguments: str | None) -> None:
    """Nor the messages about bad arguments."""
    entry = configured()
    assert found_in(await Invoker([entry]).invoke(call(entry, arguments), RUN)) == []


async def test_a_uncertain_mutations_reconciliation_holds_no_canary() -> None:
    """It is made of the call's own arguments, ids and key."""

    @tool(effects="read")
    async def find(kind: str, key: str) -> str:
        return key

    entry = configured(
        effects="write",
        idempotency=Idempotency("protocol"),
        reconciliation=Reconciliation("find", {"kind": "kind", "key": "$idempotency_key"}),
    )
    outcome = await Invoker([entry, find]).invoke(call(entry, {"kind": "breaks"}), RUN)
    assert "reconciliation" in str(as_sent(outcome))
    assert found_in(as_sent(outcome)) == []


def test_nothing_that_describes_a_tool_holds_a_canary() -> None:
    """Wire definitions, contracts, the stubs of programs, lock files, lint and reprs."""
    entry = configured()
    catalog = Catalog([entry])
    assert (
        found_in(
            catalog.wire(),
            entry,
            entry.contract,
            entry.contract.to_json(),
            entry.contract.fingerprint(),
            dict(catalog.program_names),
            instructions(catalog),
            Lock.of([entry.contract]).dumps(),
            [finding.to_json() for finding in lint([entry.contract])],
            RUN.credentials,
            {k: v for k, v in entry.designed.items() if k in ("key", "password")},
        )
        == []
    )


def test_errors_of_registration_hold_no_canary() -> None:
    """A value of the wrong type, an unknown name, an unset one."""
    base = tool(work)
    for action in (
        lambda: base.configure(index=Secret(CANARIES["designer secret"])),
        lambda: base.configure(key=CANARIES["designer secret"]),
        lambda: base.configure(kind=CANARIES["designer text"]),
        lambda: Catalog([base.configure(index=CANARIES["designer text"])]),
    ):
        with pytest.raises(RegistrationError) as caught:
            action()
        assert found_in(caught.value, caught.value.__cause__, caught.value.__context__) == []


async def test_short_values_do_not_blot_out_words() -> None:
    """A tenant called `a` must not turn a message into redactions."""

    @tool
    async def fails(n: int) -> int:
        raise ValueError("a bad day at a bank")

    outcome = await Invoker([fails]).invoke(call(fails, {"n": 1}), run_with(tenant="a"))
    assert isinstance(outcome, Failure)
    assert outcome.message == "the tool failed: ValueError: a bad day at a bank"
