"""`ptc registry` as operators use it: processes of their own, keys by file and environment, and the sample."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ptc
from ptc.registry import HttpRegistry

ROOT = Path(__file__).parents[2]
TOOLS = """
import ptc

@ptc.tool(effects="read")
def lookup(key: str) -> str:
    "Look one record up."
    return f"record {key}"

RECORDS = ptc.Toolset("records", [lookup])
OTHER = [lookup]
"""


class Shell:
    """Runs `ptc` in a folder with an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "COLUMNS": "160"}
        self.started: list[subprocess.Popen[str]] = []

    def run(self, *arguments: str, key: str | None = None, status: int = 0) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "ptc", "registry", *arguments],
            cwd=self.folder,
            env=self._with(key),
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == status, done.stderr
        return done.stdout.strip(), done.stderr.strip()

    def start(self, *arguments: str, key: str | None = None) -> tuple[subprocess.Popen[str], str]:
        """A process that goes on, and the first line that it prints."""
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "ptc", "registry", *arguments],
            cwd=self.folder,
            env=self._with(key),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline().strip()
        assert line, process.stderr.read()
        return process, line

    def _with(self, key: str | None) -> dict[str, str]:
        return self.environment if key is None else {**self.environment, "PTC_REGISTRY_KEY": key}

    def stop(self, process: subprocess.Popen[str]) -> str:
        """End it as an operator does; gives what it complained of."""
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=60)[1]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "mytools.py").write_text(TOOLS)
    (tmp_path / "good.txt").write_text("# a file of keys without any\n")
    made = Shell(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.communicate()


def test_a_registry_is_set_up_served_provided_for_and_listed(shell: Shell) -> None:
    """The whole of its help, in order."""
    publisher, _ = shell.run(
        "key", "publisher", "records-team", "--toolsets", "records", "--add-to", "keys.txt"
    )
    consumer, _ = shell.run("key", "consumer", "assistant", "--add-to", "keys.txt")
    assert publisher.startswith("ptcreg_")
    assert publisher not in (shell.folder / "keys.txt").read_text()
    assert (shell.folder / "keys.txt").stat().st_mode & 0o777 == 0o600
    server, url = shell.start("serve", "--keys", "keys.txt", "--port", "0", "--db", "registry.db")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
    assert shell.run("list", "--url", url, key=consumer)[0] == ""
    provider, line = shell.start(
        "provide", "mytools:RECORDS", "--url", url, "--version", "1.0.0", key=publisher
    )
    assert re.fullmatch(r"records 1\.0\.0 reg_[0-9a-f]{48}", line)
    assert shell.run("list", "--url", url, key=consumer)[0] == line
    assert shell.stop(provider) == ""
    assert shell.stop(server) == ""


def test_a_provider_goes_on_when_its_registry_was_killed_and_started_again(shell: Shell) -> None:
    """The registration stands in the file, and broken connections are tried again; so is a consumer's call."""
    publisher, _ = shell.run("key", "publisher", "team", "--add-to", "keys.txt")
    consumer, _ = shell.run("key", "consumer", "assistant", "--add-to", "keys.txt")
    server, url = shell.start("serve", "--keys", "keys.txt", "--port", "0")
    provider, line = shell.start(
        "provide", "mytools:RECORDS", "--url", url, "--version", "1.0.0", key=publisher
    )

    def ask(call_id: str) -> object:
        async def run() -> object:
            registries = ptc.Registries({"company": HttpRegistry(url, key=consumer)})
            step = await ptc.Sources([ptc.Registry("company")], registries=registries).read()
            call = ptc.Call(call_id, "lookup", {"key": call_id}, namespace="records")
            return await ptc.Invoker(step.catalog).invoke(call, ptc.RunContext("run_1"))

        return asyncio.run(run())

    assert ask("one") == ptc.Success("record one")
    server.kill()
    server.communicate(timeout=60)
    again, same = shell.start("serve", "--keys", "keys.txt", "--port", url.rpartition(":")[2])
    assert same == url
    assert ask("two") == ptc.Success("record two")
    assert shell.run("list", "--url", url, key=consumer)[0] == line
    shell.stop(provider)
    assert shell.stop(again) == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("serve", "--keys", "nowhere.txt"), "nowhere.txt"),
        (("serve", "--keys", "good.txt", "--db", "."), "cannot be kept"),
        (("serve", "--keys", "good.txt", "--port", "99999"), "port 99999"),
        (("list", "--url", "http://127.0.0.1:9"), "PTC_REGISTRY_KEY"),
        (("key", "publisher", "a/b"), "letters"),
        (("key", "admin", "x"), "publisher"),
        (("provide", "mytools:OTHER", "--url", "http://127.0.0.1:9", "--version", "1"), "ptc.Toolset"),
        (("provide", "mytools:NONE", "--url", "http://127.0.0.1:9", "--version", "1"), "NONE"),
    ],
)
def test_what_is_wrong_is_one_line_that_says_what_to_do(
    shell: Shell, arguments: tuple[str, ...], complaint: str
) -> None:
    """And exit status 2."""
    _, said = shell.run(*arguments, status=2)
    assert complaint in said
    assert "Traceback" not in said


def test_a_registry_that_is_not_there_is_said_so(shell: Shell) -> None:
    """Port 9 of the loopback interface: nothing listens there."""
    _, said = shell.run("list", "--url", "http://127.0.0.1:9", key="ptcreg_x", status=2)
    assert "did not answer" in said
    assert "ptcreg_x" not in said


def test_a_key_without_a_file_prints_its_line_apart(shell: Shell) -> None:
    """Standard output has the key alone, to be read by a script."""
    out, said = shell.run("key", "consumer", "assistant", "--toolsets", "records,billing-*")
    assert re.fullmatch(r"ptcreg_[\w-]{43}", out)
    assert re.search(r"consumer assistant sha256:[0-9a-f]{64} records,billing-\*", said)


def test_the_sample_runs_offline_and_prints_what_its_page_says(tmp_path: Path) -> None:
    """The run sees the change at its next step, an admitted call keeps its contract, a replaced one is not admitted."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COLUMNS": "160"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "samples" / "catalog" / "app.py")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")
    page = (ROOT / "docs" / "catalogs.md").read_text(encoding="utf-8")
    assert done.stdout in re.findall(r"```text\n(.*?)```", page, re.S)
    calls = [line for line in done.stdout.splitlines() if line.startswith("request")]
    assert [line.rpartition(" -> ")[2] for line in calls] == ["success", "call_not_admitted", "success"]
    assert "site" not in calls[0]
    assert '"site":"north"' in calls[1]
