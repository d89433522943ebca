"""What the peer answers when it refuses a request: the service's error envelope, as a value that is raised.

The texts and codes are those of the service where they are known (wire.md and public reports); the rest
follow their style. Nothing here knows HTTP beyond the status number.
"""

from __future__ import annotations

from ptc_tools.call import JsonObject


class Rejected(Exception):
    """The request is answered with `status` and `body()`; nothing of it was executed."""

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        status: int = 400,
        type: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.status = status
        self.type = type

    def body(self) -> JsonObject:
        """The envelope: `{"error": {"message", "type", "param", "code"}}`."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


def unknown_parameter(param: str) -> Rejected:
    """A field that the API does not know, `parsed_arguments` of the SDK's parsed models for instance."""
    return Rejected(f"Unknown parameter: '{param}'.", param=param, code="unknown_parameter")


def missing_parameter(param: str) -> Rejected:
    return Rejected(f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")


def invalid_type(param: str, expected: str, value: object) -> Rejected:
    return Rejected(
        f"Invalid type for '{param}': expected {expected}, but got {json_kind(value)} instead.",
        param=param,
        code="invalid_type",
    )


def invalid_value(param: str, value: object, supported: tuple[str, ...]) -> Rejected:
    names = ", ".join(f"'{name}'" for name in supported)
    return Rejected(
        f"Invalid value: {value!r}. Supported values are: {names}.", param=param, code="invalid_value"
    )


def invalid(param: str, message: str, code: str = "invalid_value") -> Rejected:
    return Rejected(message, param=param, code=code)


def json_kind(value: object) -> str:
    """How an error text calls the JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal"
        case str():
            return "a string"
        case list():
            return "an array"
    return "an object"
