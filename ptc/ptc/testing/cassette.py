"""Cassettes: what a live endpoint answered, kept without its secrets, and played back offline.

A cassette sits below an `openai` client, as its HTTP transport, so that everything above it is the real
thing. No header of a request is kept, nor the host; what looks like a secret is replaced, by name or by shape as in
the audit record, in requests and answers alike, so that what a client sends back still matches.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import httpx2

from ptc.testing.cleaning import Cleaner, dumped, parsed
from ptc_tools.errors import PtcError

VERSION = 1
_KEPT_HEADERS = ("content-type", "retry-after", "retry-after-ms")

Mode = Literal["record", "replay"]
Redact = Callable[[str], str]


class CassetteError(PtcError):
    """A cassette cannot be read, or is not for this version."""

    code = "cassette_error"


class CassetteMismatch(CassetteError):
    """A request is not the one that was recorded at this place. `path` is where the two differ."""

    code = "cassette_mismatch"

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer, without secrets. `body` is JSON, or text where it is not JSON."""

    method: str
    url: str
    body: object
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    answer: str = ""


class Cassette(httpx2.AsyncBaseTransport):
    """A transport that records to a file, or replays from it.

        async with Cassette.replay("tests/compare.json") as tape:
            client = openai.AsyncOpenAI(api_key="none", http_client=tape.http_client())

    `redact` is given every text before it is kept or compared, after what is replaced anyway. A replay
    expects the same requests in the same order, and raises `CassetteMismatch` for any other.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: Mode,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        redact: Redact | None = None,
    ) -> None:
        self._path = Path(path)
        self._mode = mode
        self._cleaner = Cleaner(redact or (lambda text: text))
        self._live = transport if mode == "replay" else transport or httpx2.AsyncHTTPTransport()
        self._exchanges: list[Exchange] = _load(self._path) if mode == "replay" else []
        self._next = 0

    @classmethod
    def record(
        cls,
        path: str | os.PathLike[str],
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        redact: Redact | None = None,
    ) -> Self:
        """Ask the live endpoint and keep what it answers; the file is written when the cassette is closed."""
        return cls(path, "record", transport=transport, redact=redact)

    @classmethod
    def replay(cls, path: str | os.PathLike[str], *, redact: Redact | None = None) -> Self:
        """Answer from the file alone. Raises `CassetteError` when there is none."""
        return cls(path, "replay", redact=redact)

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """What was recorded so far, or is to be replayed."""
        return tuple(self._exchanges)

    @property
    def left(self) -> int:
        """How many recorded exchanges a replay has not come to."""
        return len(self._exchanges) - self._next if self._mode == "replay" else 0

    def http_client(self) -> httpx2.AsyncClient:
        """What an `openai` client takes as `http_client`."""
        return httpx2.AsyncClient(transport=self)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = self._cleaner.value(parsed((await request.aread()).decode("utf-8", "replace")))
        if self._mode == "replay":
            return self._replay(request, body)
        assert self._live is not None
        response = await self._live.handle_async_request(request)
        answer = (await response.aread()).decode("utf-8", "replace")
        await response.aclose()
        exchange = Exchange(
            method=request.method,
            url=request.url.path,
            body=body,
            status=response.status_code,
            headers={name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers},
            answer=self._clean_answer(answer),
        )
        self._exchanges.append(exchange)
        return _response(exchange, request)

    async def aclose(self) -> None:
        """Nothing: an `openai` client closes its transport, and the cassette goes on to the next client."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        if self._live is not None:
            await self._live.aclose()
        if self._mode == "record":
            self.save()

    def save(self) -> None:
        """Write the file: all of it or nothing, readable by its owner alone. Raises `CassetteError`."""
        data = {"version": VERSION, "exchanges": [asdict(exchange) for exchange in self._exchanges]}
        draft = self._path.with_name(f".{self._path.name}.{secrets.token_hex(6)}")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(dumped(data, indent=1) + "\n")
            draft.replace(self._path)
        except OSError as error:
            raise CassetteError(f"cannot write the cassette {self._path}: {error.strerror}") from error

    def _replay(self, request: httpx2.Request, body: object) -> httpx2.Response:
        if self._next >= len(self._exchanges):
            raise CassetteMismatch(
                f"{self._path} has {len(self._exchanges)} exchanges, and one more request came", path="$"
            )
        exchange = self._exchanges[self._next]
        asked = {"method": request.method, "url": request.url.path, "body": body}
        recorded = {"method": exchange.method, "url": exchange.url, "body": exchange.body}
        where = _difference(asked, recorded, "$")
        if where is not None:
            raise CassetteMismatch(
                f"request {self._next + 1} is not the one in {self._path}: they differ at {where}", path=where
            )
        self._next += 1
        return _response(exchange, request)

    def _clean_answer(self, text: str) -> str:
        """An answer without secrets: one JSON text, or the events of a stream, or whatever else it is."""
        whole = parsed(text)
        if not isinstance(whole, str):
            return dumped(self._cleaner.value(whole))
        return self._cleaner.events(text)


def _load(path: Path) -> list[Exchange]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise CassetteError(f"{path} is of version {data['version']}; record it again")
        return [_checked(Exchange(**entry)) for entry in data["exchanges"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CassetteError(f"cannot read the cassette {path}: {error}") from error


def _checked(exchange: Exchange) -> Exchange:
    """Raises TypeError for fields of other types than a recorded exchange has."""
    texts = (exchange.method, exchange.url, exchange.answer, *exchange.headers, *exchange.headers.values())
    if not isinstance(exchange.status, int) or not all(isinstance(text, str) for text in texts):
        raise TypeError(
            "an exchange has a method, a url, headers and an answer, which are texts, and a status"
        )
    return exchange


def _response(exchange: Exchange, request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(
        exchange.status, headers=exchange.headers, content=exchange.answer.encode(), request=request
    )


def _difference(one: object, other: object, path: str) -> str | None:
    """Where two JSON values differ first, or None."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if key not in one or key not in other:
                return f"{path}.{key}"
            if where := _difference(one[key], other[key], f"{path}.{key}"):
                return where
        return None
    if isinstance(one, list) and isinstance(other, list):
        for index, (left, right) in enumerate(zip(one, other, strict=False)):
            if where := _difference(left, right, f"{path}[{index}]"):
                return where
        return None if len(one) == len(other) else f"{path}[{min(len(one), len(other))}]"
    return None if type(one) is type(other) and one == other else path
