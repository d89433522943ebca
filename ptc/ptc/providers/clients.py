"""Clients for Azure OpenAI and OpenAI, made from the environment or from what is given.

They are the SDK's own clients and belong to the application, which closes them. Nothing here stores,
prints or sends a credential anywhere else; nothing connects before the first request.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ptc.errors import CredentialsMissing, CredentialsRejected, PtcError
from ptc.providers.failures import is_of_azure, no_token
from ptc_tools.safe_text import describe_exception

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_TOKEN = re.compile(r"[!-~]+")
_SCOPE = "https://cognitiveservices.azure.com/.default"

TokenProvider = Callable[[], "str | Awaitable[str]"]


def azure_client(
    endpoint: str | None = None,
    *,
    api_key: str | None = None,
    token_provider: TokenProvider | None = None,
    **options: Any,
) -> AsyncOpenAI:
    """A client for an Azure OpenAI resource, by its v1 API.

    `endpoint` is the resource's address (`https://NAME.openai.azure.com`; default: the environment's
    AZURE_OPENAI_ENDPOINT). Without `api_key` and `token_provider` it signs in with Microsoft Entra ID
    (`DefaultAzureCredential`), which is Azure's advice; a key in the environment is not picked up by itself.
    `options` go to `openai.AsyncOpenAI`. Raises CredentialsMissing.
    """
    address = endpoint or os.environ.get("AZURE_OPENAI_ENDPOINT")
    if not address:
        raise CredentialsMissing(
            "no Azure endpoint: set AZURE_OPENAI_ENDPOINT to your resource's address "
            "(https://NAME.openai.azure.com), or give azure_client(endpoint=…)"
        )
    if api_key is not None and not api_key:
        raise CredentialsMissing("azure_client(api_key=…) is empty; leave it out to sign in with Entra ID")
    if api_key is not None and token_provider is not None:
        raise CredentialsMissing("give azure_client() either api_key or token_provider, not both")
    from openai import AsyncOpenAI

    key: Any = api_key if api_key is not None else _async_provider(token_provider or _entra_provider())
    return AsyncOpenAI(base_url=_v1(address), api_key=key, **options)


def openai_client(api_key: str | None = None, *, base_url: str | None = None, **options: Any) -> AsyncOpenAI:
    """A client for OpenAI, or for a service that speaks its API at `base_url`.

    `api_key` defaults to the environment's OPENAI_API_KEY. `options` go to `openai.AsyncOpenAI`.
    Raises CredentialsMissing.
    """
    key = api_key or os.environ.get("OPENAI_API_KEY")
    if not key:
        raise CredentialsMissing(
            "no OpenAI key: set OPENAI_API_KEY, or give openai_client(api_key=…); Azure: azure_client()"
        )
    from openai import AsyncOpenAI

    return AsyncOpenAI(api_key=key, base_url=base_url, **options)


def _v1(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise CredentialsMissing(
            f"the Azure endpoint {address!r} is not an address; it looks like https://NAME.openai.azure.com"
        )
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise CredentialsMissing("the Azure endpoint must be https: a token would travel in the clear")
    # A portal's "Target URI" names a deployment or an operation after /openai: the client says those itself.
    prefix = re.sub(r"/openai(/.*)?$", "", parts.path.rstrip("/"))
    return f"{parts.scheme}://{parts.netloc}{prefix}/openai/v1/"


def _entra_provider() -> TokenProvider:
    # The async flavour of azure-identity needs aiohttp; the sync one caches its tokens and runs in a thread.
    from azure.identity import DefaultAzureCredential, get_bearer_token_provider

    # Without a handler of the application's, Python prints warnings itself: pages of them, one for each way
    # to sign in that was tried, before the one error that says what to do (`CredentialsRejected`).
    logging.getLogger("azure.identity").addHandler(logging.NullHandler())
    return get_bearer_token_provider(DefaultAzureCredential(), _SCOPE)


def _async_provider(provider: TokenProvider) -> Callable[[], Awaitable[str]]:
    """The provider as the SDK calls it, sync or async, its failures as errors that say what failed."""

    async def given() -> object:
        if inspect.iscoroutinefunction(provider):
            return await provider()
        token: object = await asyncio.to_thread(provider)
        return await token if inspect.isawaitable(token) else token

    async def token() -> str:
        try:
            value = await given()
        except PtcError:
            raise
        except Exception as error:
            if is_of_azure(error):
                raise no_token(error) from error
            raise CredentialsRejected(
                f"the token provider of azure_client() failed: {describe_exception(error)}; nothing was sent"
            ) from error
        if not isinstance(value, str) or not _TOKEN.fullmatch(value):
            told = "text that no header can carry" if isinstance(value, str) else type(value).__name__
            raise CredentialsRejected(f"the token provider of azure_client() gave no token but a {told}")
        return value

    return token
