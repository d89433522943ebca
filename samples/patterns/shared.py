"""What the four samples of this folder share: a run on the service at hand, its calls printed, its error in a line.

Without an account the service is the embedded peer, whose model says what `scripts.py` has under the sample's
name. There is nothing of a pattern in here.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from pathlib import Path
from typing import Any

import ptc

SCRIPTS = Path(__file__).with_name("scripts.py")


def show(name: str, question: str, **options: Any) -> None:
    """Ask a runner with these options, and print which calls the model made and what it answers."""
    warnings.simplefilter("ignore", ptc.ExperimentalWarning)
    try:
        result = asyncio.run(ask(name, question, **options))
    except ptc.PtcError as error:
        sys.exit(f"{error.code}: {error.message}")
    for report in result.calls:
        call = report.call
        print(f"request {report.request}: {call.name}({call.arguments}) -> {report.outcome.status}")
    print(result.output_text)


async def ask(name: str, question: str, **options: Any) -> ptc.RunResult[object]:
    async with ptc.connect(script=f"{SCRIPTS}:{name}") as service:
        return await ptc.Runner(client=service.client, model=service.model, **options).run(question)
