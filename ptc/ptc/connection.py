"""`ptc.connect`: the service that the environment names, or the embedded peer where it names none.

It chooses, makes the client, and closes what it made. It sends nothing, and never falls back from a service
that is named but wrong: that is an error, with what to set.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias

from ptc.errors import CredentialsMissing

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from ptc.testing.peer import Peer

Kind: TypeAlias = Literal["azure", "openai", "embedded"]
OPENAI_MODEL = "gpt-5.6-sol"
EMBEDDED_MODEL = "scripted"


@dataclass(frozen=True, slots=True)
class Service:
    """What a runner needs: the client, the model or deployment, and a line that says what it is."""

    kind: Kind
    client: AsyncOpenAI
    model: str
    about: str


class connect:  # noqa: N801 (used as a function: `async with ptc.connect(...) as service`)
    """Connect to the service of the environment, for as long as the context lasts.

        async with ptc.connect(script="samples/inventory_script.py:model") as service:
            runner = ptc.Runner(client=service.client, model=service.model, tools=[...])

    Azure OpenAI with Entra ID when AZURE_OPENAI_ENDPOINT and PTC_MODEL (the deployment) are set; OpenAI
    when OPENAI_API_KEY is set (PTC_MODEL names another model than the default); else, where a `script` is
    given, the embedded peer in a process of its own, whose model plays that script and needs no account.

    Raises `CredentialsMissing` when there is nothing to connect to, or half of what it takes; `PeerError`
    when the peer does not start. An endpoint that cannot be reached shows in the first request, as
    `EndpointUnreachable`.
    """

    def __init__(
        self,
        script: str | os.PathLike[str] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        state_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self._script = os.fspath(script) if script is not None else None
        self._environ = os.environ if environ is None else environ
        self._state_dir = Path(state_dir) if state_dir is not None else None
        self._peer: Peer | None = None
        self._client: AsyncOpenAI | None = None

    async def __aenter__(self) -> Service:
        try:
            service = await self._service()
        except BaseException:
            await self.aclose()
            raise
        self._client = service.client
        return service

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the client and end the peer, whichever there are."""
        client, self._client = self._client, None
        peer, self._peer = self._peer, None
        try:
            if client is not None:
                await client.close()
        finally:
            if peer is not None:
                await asyncio.to_thread(peer.close)

    async def _service(self) -> Service:
        from ptc.providers.clients import azure_client, openai_client

        endpoint = self._environ.get("AZURE_OPENAI_ENDPOINT")
        model = self._environ.get("PTC_MODEL")
        key = self._environ.get("OPENAI_API_KEY")
        if endpoint:
            if not model:
                raise CredentialsMissing(
                    "AZURE_OPENAI_ENDPOINT is set and PTC_MODEL is not: set PTC_MODEL to the name of your "
                    "deployment, or unset AZURE_OPENAI_ENDPOINT"
                )
            return Service("azure", azure_client(endpoint), model, f"Azure OpenAI, deployment {model}")
        if key:
            name = model or OPENAI_MODEL
            return Service("openai", openai_client(key), name, f"OpenAI, model {name}")
        if self._script is None:
            raise CredentialsMissing(
                "there is no service to connect to: set AZURE_OPENAI_ENDPOINT and PTC_MODEL (sign in with "
                "`az login`), or OPENAI_API_KEY, or give connect(script=…) for the embedded peer"
            )
        return await self._embedded(self._script)

    async def _embedded(self, script: str) -> Service:
        import secrets

        from ptc.providers.clients import openai_client
        from ptc.testing.peer import Peer

        key = secrets.token_urlsafe(32)  # other users of this machine can reach the port, and not the peer
        peer = self._peer = Peer(script, state_dir=self._state_dir, api_key=key)
        await asyncio.to_thread(peer.start)
        about = (
            "an embedded peer: its model is scripted, and its programs are Python, where the hosted "
            "service's are JavaScript"
        )
        return Service("embedded", openai_client(key, base_url=peer.base_url), EMBEDDED_MODEL, about)
