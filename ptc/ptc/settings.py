"""What a runner is set up with, checked once: values that all of its runs share, and no run's state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ptc import wire_json
from ptc.choice import ToolChoice
from ptc.conversation import HistoryMode
from ptc.errors import ConfigurationError
from ptc.limits import Limits
from ptc.providers.endpoint import Endpoint
from ptc.retry import RetryPolicy
from ptc.searching import SearchSettings
from ptc.store.protocol import RunStore
from ptc.structured import OutputFormat
from ptc.toolbox import Entry
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson
from ptc_tools.middleware import Middleware
from ptc_tools.policy import Approver, Policy
from ptc_tools.record import Recorder
from ptc_tools.sources import Sources
from ptc_tools.tool import AnyTool

if TYPE_CHECKING:
    from ptc_sandbox import Sandbox

OnToolError: TypeAlias = Literal["return", "raise"]
Compact: TypeAlias = (
    "Callable[[Sequence[JsonObject]], Sequence[JsonObject] | Awaitable[Sequence[JsonObject]]]"
)
"""Gives a shorter history, or the same; `ptc.trim` cuts whole units."""
Programs: TypeAlias = Literal["hosted", "local", "auto"]

_OURS: Final = frozenset(
    {
        "background",
        "conversation",
        "input",
        "instructions",
        "model",
        "previous_response_id",
        "store",
        "stream",
        "tool_choice",
        "tools",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """See `Runner` for what each means."""

    endpoint: Endpoint
    model: str
    entries: tuple[Entry, ...]
    functions: Mapping[object, Entry]
    programs: Programs | None
    sandbox: Sandbox | None
    instructions: str | None
    namespaces: Mapping[str, str] | None
    errors_in_schema: bool
    recorder: Recorder | None
    policy: Policy
    approver: Approver | None
    middleware: tuple[Middleware, ...]
    on_tool_error: OnToolError
    limits: Limits
    retry: RetryPolicy
    history: HistoryMode
    background: bool
    poll_interval: float
    request_timeout: float | None
    call_timeout: float | None
    tool_choice: ToolChoice
    output: OutputFormat | None
    request: Mapping[str, JsonValue]
    compact: Compact | None
    store: RunStore | None = None
    sources: Sources | None = None
    local_tools: tuple[AnyTool, ...] = ()
    search: SearchSettings | None = None
    max_output_tokens: int | None = None

    @property
    def known(self) -> tuple[Entry, ...]:
        """All that is here, and needs no registry to be found again."""
        return (*self.entries, *self.local_tools)


def check_request_fields(fields: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """More fields of every request, as `reasoning`. Raises ConfigurationError for the loop's own, and for no JSON."""
    if not isinstance(fields, Mapping):
        raise ConfigurationError(f"request= is a {type(fields).__name__}; give a mapping of fields")
    try:
        wire_json.check(dict(fields))
    except InvalidJson as error:
        raise ConfigurationError(f"request= cannot be sent as JSON: {error}") from None
    include = fields.get("include", [])
    if not isinstance(include, list) or not all(isinstance(word, str) for word in include):
        raise ConfigurationError("include, in request=, is a list of texts")
    taken = sorted(_OURS & set(fields))
    if taken:
        raise ConfigurationError(
            f"request= cannot set {', '.join(taken)}: the runner does; see its own arguments"
        )
    return dict(fields)


def includes(fields: Mapping[str, JsonValue]) -> Sequence[str]:
    """The `include` of the application's request fields."""
    value = fields.get("include")
    return [str(word) for word in value] if isinstance(value, list) else ()


def base_body(settings: Settings) -> JsonObject:
    """The part of a request body that is the same in every request of a run."""
    body: JsonObject = {"model": settings.model}
    if settings.instructions is not None:
        body["instructions"] = settings.instructions
    body.update({key: value for key, value in settings.request.items() if key != "include"})
    if settings.background:
        body["background"] = True
    return body
