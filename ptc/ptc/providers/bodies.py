"""Bodies of requests, responses and stream events: bytes to JSON and back, for every endpoint.

What broke off on the way is a ResponseCut; what is whole and still not JSON as the specification has it is
the service's breach of the protocol. Neither is ever read half.
"""

from __future__ import annotations

import json

from ptc import wire_json
from ptc.errors import InvalidInput, RemoteProtocolError, ResponseCut
from ptc_tools.call import JsonObject
from ptc_tools.errors import InvalidJson


def encode_body(body: JsonObject) -> bytes:
    """The body as it is sent. A lone surrogate in replayed text goes back as the escape that it came as."""
    try:
        return wire_json.dumps(body)
    except InvalidJson as error:
        raise InvalidInput(f"the request cannot be sent as JSON: {error}") from None


def decode_body(content: bytes, what: str = "the service's answer") -> JsonObject:
    """A response's body, or a stream event.

    Raises ResponseCut for what is not a JSON object, and RemoteProtocolError for one that is whole and that
    two readers could read differently (NaN, the same key twice, nested without end).
    """
    try:
        value = wire_json.loads(content)
    except InvalidJson as error:
        if _is_lenient_json(content):
            raise RemoteProtocolError(f"{what} is not acceptable JSON: {error}") from None
        raise ResponseCut(f"{what} is not JSON: it broke off, or something else answered") from None
    if not isinstance(value, dict):
        raise ResponseCut(f"{what} is not a JSON object")
    return value


def _is_lenient_json(content: bytes) -> bool:
    """Whether a reader that asks for less would take it: then it did not break off, and is wrong."""
    try:
        json.loads(content)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True
