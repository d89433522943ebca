"""The first sample, as its user runs it; and the vendors' own loop against the same peer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import pytest

from ptc.testing import Peer
from tests.ptc.process_watch import orphans

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "inventory_demand.py"
SCRIPT = ROOT / "samples" / "inventory_script.py"


@pytest.mark.parametrize("programs", ["hosted", "local"])
def test_the_sample_says_what_is_left_and_what_happened(programs: str, tmp_path: Path) -> None:
    """The answer, the program, both calls with their caller, the audit file; and what the model is."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SAMPLE), "--programs", programs],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "11 units of sku_123 are left over" in done.stdout
    assert "its model is scripted" in done.stdout
    assert "its programs are Python, where the hosted service's are JavaScript" in done.stdout
    assert "inventory, demand = await asyncio.gather(" in done.stdout
    for tool, outcome in (("get_inventory", '"available_units": 73'), ("get_demand", '"expected_units": 62')):
        row = next(line for line in done.stdout.splitlines() if line.lstrip().startswith(tool + " "))
        assert "program call_" in row
        assert "sku_123" in row
        assert outcome in row
    assert "audit-inventory.db" in done.stdout
    assert (tmp_path / "audit-inventory.db").exists()


def test_the_sample_leaves_no_process_behind(tmp_path: Path) -> None:
    """Neither the peer, nor a fork server, nor a confined child."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    for programs in ("hosted", "local"):
        command = [sys.executable, str(SAMPLE), "--programs", programs]
        with orphans() as left:
            subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, timeout=100, check=True
            )
        assert left == []


def test_the_vendors_plain_loop_gets_the_same_answer() -> None:
    """The loop of the guides, with the real SDK and nothing of ours on the client's side.

    The items go back by `to_dict()`; the guides' `model_dump(exclude_none=True)` loses fields.
    """
    shop = {"get_inventory": {"sku": "sku_123", "available_units": 73}, "get_demand": {"expected_units": 62}}
    tools: Any = [
        {
            "type": "function",
            "name": name,
            "description": name,
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"sku": {"type": "string"}},
                "required": ["sku"],
                "additionalProperties": False,
            },
            "output_schema": {"type": "object"},
            "allowed_callers": ["programmatic"],
        }
        for name in shop
    ]
    tools.append({"type": "programmatic_tool_calling"})
    items: Any = [{"role": "user", "content": "Compare inventory with expected demand for sku_123."}]
    ran: list[str] = []
    with Peer(f"{SCRIPT}:model") as peer, openai.OpenAI(base_url=peer.base_url, api_key="any") as client:
        for _ in range(5):
            response = client.responses.create(model="scripted", input=items, tools=tools, store=False)
            items += [item.to_dict() for item in response.output]
            calls = [item for item in response.output if item.type == "function_call"]
            for call in calls:
                ran.append(call.name)
                output = {"type": "function_call_output", "call_id": call.call_id}
                output |= {"caller": call.to_dict()["caller"], "output": json.dumps(shop[call.name])}
                items.append(output)
            if response.output_text and not calls:
                break
    assert response.output_text == "11 units of sku_123 are left over: inventory covers demand."
    assert sorted(ran) == ["get_demand", "get_inventory"]
