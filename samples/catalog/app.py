"""Tools that are replaced while a run is under way: a registry over HTTP, its provider, and a run that reads it.

    python samples/catalog/app.py                 needs no account: see inventory_demand.py

The run uses a registry by name and reads it before each request. While it goes on, the provider publishes its
toolset anew, twice:

1. during a call: the call was admitted, so it keeps its contract and its result; the next request has the new tools;
2. between the model's choice and its call: the call is not admitted, nothing runs, and the model is told.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import ptc
from ptc.registry import HttpRegistry, Keys, Provider, new_key

SCRIPT = Path(__file__).with_name("script.py")
QUESTION = "How many units of sku_123 are in the north?"


class Shop:
    """The provider's side: the toolset as it is now, and who serves it. `publish` replaces it."""

    def __init__(self, registry: HttpRegistry) -> None:
        self._registry = registry
        self._serving: list[Provider] = []

    async def publish(self, toolset: ptc.Toolset, version: str) -> None:
        provider = Provider(self._registry, toolset.export(version=version))
        await provider.__aenter__()  # the provider of a replaced registration ends the calls that it has
        self._serving.append(provider)
        print(f"published {toolset.name} {version}")

    async def close(self) -> None:
        for provider in self._serving:
            await provider.__aexit__(None, None, None)


def first(shop: Shop) -> ptc.Toolset:
    @ptc.tool(effects="read")
    async def count(sku: str) -> int:
        """Count the units of a SKU."""
        await shop.publish(second(), "2.0.0")  # replaced while this very call runs
        return 73

    return ptc.Toolset("stock", [count], description="The shop's stock.")


def second() -> ptc.Toolset:
    @ptc.tool(effects="read")
    async def count(sku: str, site: str) -> int:
        """Count the units of a SKU at a site."""
        return {"north": 40, "south": 33}[site]

    return ptc.Toolset("stock", [count], description="The shop's stock, by site.")


class ReplaceOnce:
    """A middleware of the run, here to replace the tools between a choice and its call."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._done = False

    async def __call__(self, invocation: ptc.Invocation, next: ptc.Next, /) -> ptc.Outcome:
        if "site" in invocation.arguments and not self._done:
            self._done = True
            await self._shop.publish(second(), "2.0.0")  # the very same tools, registered anew
        return await next(invocation)


async def serve(folder: Path) -> tuple[asyncio.subprocess.Process, str, str, str]:
    """`ptc registry serve` in a process of its own: its address, a publisher's key and a consumer's."""
    publisher, publishers_line = new_key("publisher", "shop", ["stock"])
    consumer, consumers_line = new_key("consumer", "assistant", ["stock"])
    keys = folder / "keys.txt"
    keys.write_text(f"{publishers_line.line()}\n{consumers_line.line()}\n")
    Keys.read(keys)  # a slip in the file shows here
    command = [sys.executable, "-m", "ptc", "registry", "serve", "--port", "0"]
    process = await asyncio.create_subprocess_exec(
        *command, "--db", str(folder / "registry.db"), "--keys", str(keys), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    if not url:
        raise SystemExit("the registry did not start")
    return process, url, publisher, consumer


async def ask(shop: Shop, consumer: HttpRegistry) -> None:
    ptc.register_registry("company", consumer)
    async with ptc.connect(script=f"{SCRIPT}:model") as service:
        runner = ptc.Runner(
            client=service.client,
            model=service.model,
            tools=[ptc.Toolset.from_registry(ptc.Registry("company"), "stock")],
            middleware=[ReplaceOnce(shop)],
        )
        result = await runner.run(QUESTION)
    for report in result.calls:
        call, outcome = report.call, report.outcome
        ended = outcome.status if isinstance(outcome, ptc.Success) else outcome.code
        print(f"request {report.request}: {call.qualified_name}({call.arguments}) -> {ended}")
    print(result.output_text)


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        process, url, publishers_key, consumers_key = await serve(Path(name))
        try:
            async with (
                HttpRegistry(url, key=publishers_key) as provider,
                HttpRegistry(url, key=consumers_key) as consumer,
            ):
                shop = Shop(provider)
                try:
                    await shop.publish(first(shop), "1.0.0")
                    await ask(shop, consumer)
                finally:
                    await shop.close()
        finally:
            process.terminate()
            await process.wait()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ptc.PtcError as error:
        sys.exit(f"{error.code}: {error.message}")
    except KeyboardInterrupt:
        sys.exit(130)
