"""The errors of the loop: each has a stable `code`, says what to do, and derives from `PtcError`.

PtcError
 ├── LocalProtocolError            the application misused the API            (also a RuntimeError)
 │    ├── UnansweredCalls          a request while calls of the last response have no output
 │    └── InvalidInput             an input that cannot be sent as it is       (also a ValueError)
 ├── ConfigurationError            the runner cannot work as it is set up      (also a ValueError)
 │    └── CredentialsMissing       no endpoint, key or identity to call the service with
 ├── RunError                      a run ended without a result; has .items, .safe_to_retry, .usage
 │    ├── RemoteProtocolError      the service or the model violated the protocol
 │    │    └── ReasoningNotReplayable   store=False, and reasoning without its encrypted content
 │    ├── ResponseFailed           status failed or cancelled
 │    ├── ResponseIncomplete       status incomplete, without a final answer
 │    ├── LimitExceeded            a limit of the run was reached
 │    │    └── RequestLimitExceeded     too many requests
 │    ├── HistoryNotReplayable     the service keeps a definition that changed since
 │    ├── InvalidOutput            the answer does not fit the output type
 │    ├── RunTerminated            middleware failed the run
 │    └── EndpointError            the service could not be asked, or refused the request
 │         ├── EndpointUnreachable      no connection
 │         ├── EndpointTimeout          no answer in time
 │         ├── ResponseCut              the answer broke off
 │         ├── CredentialsRejected      401 or 403
 │         ├── DeploymentNotFound       404
 │         ├── RequestRejected          400 and the other 4xx
 │         │    ├── ProgramsUnsupported   the deployment does not run programs
 │         │    └── ToolSearchUnsupported   the deployment or client has no tool search
 │         ├── RateLimited              429, after the retries
 │         ├── ConversationLocked       409: another request is working in the conversation
 │         └── ServerFailed             5xx
 └── ToolCallError                 `on_tool_error="raise"` (from ptc_tools)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from ptc_tools.errors import PtcError, ToolCallError

if TYPE_CHECKING:
    from ptc.usage import Usage
    from ptc_tools.call import Call, JsonObject
    from ptc_tools.outcome import Outcome

__all__ = [
    "ConfigurationError",
    "ContractChanged",
    "ConversationLocked",
    "CredentialsMissing",
    "CredentialsRejected",
    "DeploymentNotFound",
    "EndpointError",
    "EndpointTimeout",
    "EndpointUnreachable",
    "HistoryNotReplayable",
    "InvalidInput",
    "InvalidOutput",
    "LimitExceeded",
    "LocalProtocolError",
    "ProgramsUnsupported",
    "PtcError",
    "RateLimited",
    "ReasoningNotReplayable",
    "RemoteProtocolError",
    "RequestLimitExceeded",
    "RequestRejected",
    "ResponseCut",
    "ResponseFailed",
    "ResponseIncomplete",
    "RunError",
    "RunTerminated",
    "ServerFailed",
    "StateError",
    "StateForged",
    "StateUnreadable",
    "ToolCallError",
    "ToolCallFailed",
    "ToolSearchUnsupported",
    "UnansweredCalls",
]


RetryKind: TypeAlias = Literal["safe", "ambiguous", "never"]


class LocalProtocolError(PtcError, RuntimeError):
    """The application used the API in an order or a place that it does not allow; nothing was sent."""

    code = "local_protocol_error"


class UnansweredCalls(LocalProtocolError):
    """A request was asked for while calls have no output; `call_ids` names them."""

    code = "unanswered_calls"

    def __init__(self, message: str, *, call_ids: Sequence[str] = (), run_id: str | None = None) -> None:
        super().__init__(message, run_id=run_id, call_id=call_ids[0] if call_ids else None)
        self.call_ids = tuple(call_ids)


class InvalidInput(LocalProtocolError, ValueError):
    """What was given as input cannot be sent: not wire items, a dangling call, a reasoning item cut off."""

    code = "invalid_input"


class ConfigurationError(PtcError, ValueError):
    """The runner cannot work as it is set up: found at construction, before any request."""

    code = "configuration_error"


class CredentialsMissing(ConfigurationError):
    """There is no endpoint, key or identity to call the service with."""

    code = "credentials_missing"


class StateError(PtcError, ValueError):
    """A paused run cannot be resumed from this state."""

    code = "state_error"


class StateForged(StateError):
    """The state is not what was sealed: it was changed, or sealed with another key."""

    code = "state_forged"


class StateUnreadable(StateError):
    """Not a run state, or one of a version that this library does not read."""

    code = "state_unreadable"


class ContractChanged(StateError):
    """A tool that the paused run needs is gone, or its contract is wider or incompatible now."""

    code = "contract_changed"


class RunError(PtcError):
    """A run ended without a result.

    `items`: the transcript so far, raw wire items. `safe_to_retry`: running the same input again repeats
    nothing that may have had an effect (no tool ran, and no hosted program may have started). `usage`: what
    the run had used. Where the service keeps the history, `unsent` is what it has not got of it, to be sent on with the
    next input, after `response_id`. `__cause__` is the client's exception, where there is one.
    """

    code = "run_error"

    def __init__(
        self,
        message: str,
        *,
        run_id: str | None = None,
        call_id: str | None = None,
        items: Sequence[JsonObject] = (),
        safe_to_retry: bool = False,
    ) -> None:
        # Not super(): ToolCallFailed has a second base, whose own fields it sets itself.
        PtcError.__init__(self, message, run_id=run_id, call_id=call_id)
        self.items: tuple[JsonObject, ...] = tuple(items)
        self.safe_to_retry = safe_to_retry
        self.usage: Usage | None = None
        self.unsent: tuple[JsonObject, ...] = ()
        self.response_id: str | None = None


class RemoteProtocolError(RunError):
    """The service or the model violated the protocol; nothing of the offending response was run."""

    code = "remote_protocol_error"


class ReasoningNotReplayable(RemoteProtocolError):
    """With store=False a reasoning item came without `encrypted_content`: no further request can be made."""

    code = "reasoning_not_replayable"


class ResponseFailed(RunError):
    """The service says that the response failed or was cancelled; `error_code` is the service's own word."""

    code = "response_failed"

    def __init__(self, message: str, *, error_code: str | None = None, status: str = "failed") -> None:
        super().__init__(message)
        self.error_code = error_code
        self.status = status


class ResponseIncomplete(RunError):
    """The response was cut short and holds no final answer; none of its calls ran.

    `reason` is the service's (`max_output_tokens`, `content_filter`, …), `partial_text` what had been said.
    """

    code = "response_incomplete"

    def __init__(self, message: str, *, reason: str | None = None, partial_text: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.partial_text = partial_text


class LimitExceeded(RunError):
    """A limit of the run was reached; `limit` names it, every call so far has its output in `items`."""

    code = "limit_exceeded"

    def __init__(self, message: str, *, limit: str, items: Sequence[JsonObject] = ()) -> None:
        super().__init__(message, items=items)
        self.limit = limit


class RequestLimitExceeded(LimitExceeded):
    """The run made `max_requests` requests and the model still wants to go on."""

    code = "request_limit_exceeded"


class HistoryNotReplayable(RunError):
    """The service keeps a history with the definition of a tool that changed under its name since.

    The definition cannot be taken back there, and the history is not silently begun anew. Runs that keep
    their history themselves leave such a definition out of the request.
    """

    code = "history_not_replayable"


class InvalidOutput(RunError):
    """The answer is not JSON or does not fit the output type; `text` is the answer."""

    code = "invalid_output"

    def __init__(self, message: str, *, text: str) -> None:
        super().__init__(message)
        self.text = text


class RunTerminated(RunError):
    """Middleware failed the run: calls of the batch that still ran were cancelled, and answered."""

    code = "run_terminated"


class ToolCallFailed(RunError, ToolCallError):
    """A call of the run did not succeed; its batch was answered, and `outcome` says how it ended."""

    code = "tool_call_error"

    def __init__(self, message: str, *, call: Call, outcome: Outcome) -> None:
        RunError.__init__(self, message, call_id=call.call_id)
        self.call = call
        self.outcome = outcome


class EndpointError(RunError):
    """The service could not be asked, or answered with an error.

    `status` is the HTTP status, if there is one, `error_code` the service's own word, `retry` what a second
    try of the same request would risk (`safe`: nothing, `ambiguous`: the first may have been worked on,
    `never`: it would end the same), `retry_after` the seconds that the service asks to wait.
    """

    code = "endpoint_error"
    retry: RetryKind = "never"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        error_code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code
        self.retry_after = retry_after


class EndpointUnreachable(EndpointError):
    """No connection to the endpoint: the address, the network, or a service that is not running."""

    code = "endpoint_unreachable"
    retry = "safe"


class EndpointTimeout(EndpointError):
    """The endpoint did not answer in time; whether it worked on the request is unknown."""

    code = "endpoint_timeout"
    retry = "ambiguous"


class ResponseCut(EndpointError):
    """The answer broke off before it was whole; whether the service finished it is unknown."""

    code = "response_cut"
    retry = "ambiguous"


class CredentialsRejected(EndpointError):
    """The service refused the credentials (401), they do not allow this (403), or no token was to be had."""

    code = "credentials_rejected"


class DeploymentNotFound(EndpointError):
    """The service knows no such model, deployment or stored response (404)."""

    code = "deployment_not_found"


class RequestRejected(EndpointError):
    """The service refused the request (400, 409, 413, 422 …); the message is its own."""

    code = "request_rejected"


class ProgramsUnsupported(RequestRejected):
    """The model or deployment does not run programs; `programs="local"` works with all that call tools."""

    code = "programs_unsupported"


class ToolSearchUnsupported(RequestRejected):
    """The client, model or deployment has no tool search; all tools are not sent instead."""

    code = "tool_search_unsupported"


class RateLimited(EndpointError):
    """The service still answers 429 after the retries; wait, or ask for more quota."""

    code = "rate_limited"
    retry = "safe"


class ConversationLocked(EndpointError):
    """Another request is still working in the conversation, after the retries; one run at a time belongs there."""

    code = "conversation_locked"
    retry = "safe"


class ServerFailed(EndpointError):
    """The service answered with a 5xx status."""

    code = "server_failed"
    retry = "ambiguous"
