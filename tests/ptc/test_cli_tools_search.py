"""`ptc tools search` shows what a model would be given for a question."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ptc.cli_support import Cli

SHOP = '''
import ptc

def refund(order_id: str) -> bool:
    """Pay an order back. Partly or in full."""

def find(text: str) -> list[str]:
    """Look for orders by what their lines say.\\x1b[31m"""

ORDERS = ptc.Toolset("orders", [refund, find])
SOURCES = [ptc.use(ORDERS).defer("refund")]
TOOLS = [refund, find]
CATALOG = ptc.Catalog([refund])
READ = ptc.Sources([ORDERS])
DESCRIBED = ptc.Toolset("orders", [refund, find], description="What customers of the bakery bought.")
NUMBER = 7
'''


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "searched_shop.py").write_text(SHOP)
    yield Cli(monkeypatch, capsys)
    sys.modules.pop("searched_shop", None)


def test_the_best_tool_stands_first_and_deferred_ones_are_marked(cli: Cli) -> None:
    """Whoever writes descriptions sees whether they are found by the words that people use."""
    ran = cli("tools", "search", "refund an order", "--catalog", "searched_shop:SOURCES")
    assert ran.status == 0
    first, second = ran.out.splitlines()
    assert "orders.refund (deferred)  Pay an order back." in first
    assert "orders.find  Look for orders" in second
    assert "\x1b" not in ran.out


@pytest.mark.parametrize("name", ["ORDERS", "TOOLS", "CATALOG", "READ", "refund"])
def test_whatever_holds_tools_can_be_named(cli: Cli, name: str) -> None:
    """An application keeps its tools in one of these."""
    ran = cli("tools", "search", "pay back", "--catalog", f"searched_shop:{name}", "--limit", "1")
    assert ran.status == 0
    assert "refund" in ran.out


def test_json_has_scores_and_descriptions(cli: Cli) -> None:
    """Another program reads this, in CI for example."""
    ran = cli("tools", "search", "refunded", "--catalog", "searched_shop:SOURCES", "--json")
    shown = json.loads(ran.out)
    assert shown["searched"] == 2
    (tool,) = shown["tools"]
    assert (tool["tool"], tool["deferred"]) == ("orders.refund", True)
    assert tool["score"] > 0
    assert tool["description"].startswith("Pay an order back")


def test_tools_are_found_by_what_their_namespace_is_described_by(cli: Cli) -> None:
    """A run finds them by it, so what is tried here must be the same search."""
    ran = cli("tools", "search", "bakery", "--catalog", "searched_shop:DESCRIBED")
    assert ran.status == 0
    assert "orders.refund" in ran.out
    assert cli("tools", "search", "bakery", "--catalog", "searched_shop:ORDERS").status == 1


def test_nothing_found_is_status_one(cli: Cli) -> None:
    """A script can ask whether a tool is found, as with grep."""
    ran = cli("tools", "search", "weather", "--catalog", "searched_shop:TOOLS")
    assert (ran.status, ran.out) == (1, "none of 2 tools\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--catalog", "searched_shop:NUMBER"], "int"),
        (["--catalog", "searched_shop"], "write module:attr"),
        (["--catalog", "searched_shop:READ", "--catalog", "searched_shop:TOOLS"], "name it alone"),
        (["--catalog", "searched_shop:TOOLS", "--catalog", "searched_shop:CATALOG"], "refund"),
        (["--catalog", "searched_shop:TOOLS", "--search", "magic"], "say lexical or hybrid"),
    ],
)
def test_what_cannot_be_asked_is_status_two_and_says_why(cli: Cli, arguments: list[str], says: str) -> None:
    """A mistake in the command is no empty result."""
    ran = cli("tools", "search", "x", *arguments)
    assert ran.status == 2
    assert says in ran.err
