"""The viewer: what it shows, that it is self-contained, and that nothing hostile in a record ever acts."""

import asyncio
import hashlib
import re
import shutil
import subprocess
from base64 import b64encode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ptc.audit.notes import verifier_key
from ptc.audit.query import Filter, select
from ptc.audit.verify import verify
from ptc.audit.view.document import policy
from ptc.audit.view.listing import runs_page
from ptc.audit.view.model import run_view
from ptc.audit.view.page import run_page
from ptc.audit.view.server import site
from ptc_tools.context import RunContext
from ptc_tools.outcome import Denied, Failure, Success
from tests.ptc.audit_support import INVENTORY, KEYS, RUN, call, contract, fill, open_log, read, record_call

HOSTILE = (
    "<script>document.title='pwned'</script>",
    "</script><script>document.title='pwned'</script>",
    "<img src=x onerror=\"document.title='pwned'\">",
    "\"><svg onload=document.title='pwned'>",
    "' onmouseover='document.title=1' autofocus onfocus='document.title=\"pwned\"",
    "javascript:document.title='pwned'",
    "</textarea></title></style><iframe srcdoc=\"<script>parent.document.title='pwned'</script>\">",
    "<style>@import 'http://127.0.0.1:9/x'</style><meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "\u202egnp.exe\u2066\x1b]0;pwned\x07\x1b[2J",
    "{{7*7}}${7*7}<!--",
)


class Page(HTMLParser):
    """Every element and attribute of a page, as a browser would find them."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def page_of(path: Path, run: str = "run_1") -> str:
    log = read(path)[0]["log"]
    report = verify(path, verifier_keys=[verifier_key(log, KEYS.active("signing"))])
    return run_page(run_view(run, select(path, Filter(run=run))), report)


async def hostile_log(path: Path) -> None:
    """Hostile texts in every field that somebody outside the host can reach."""
    async with open_log(path, levels="full") as log:
        for number, text in enumerate(HOSTILE):
            run = RunContext("run_1", "alice" if number else text, {"tenant": text, "trace": text})
            await log.event("run.started", {"model": text, "input": text, "labels": {text: text}}, run)
            await log.event("request.sent", {"request": number + 1}, run)
            await log.event("response.received", {"request": number + 1, "response_id": text}, run)
            await log.event(
                "program.started", {"call_id": text, "code": text, "language": text, "where": text}, run
            )
            made = call(number, text, text, arguments=text, origin_line=1)
            await log.denied(made, None, Denied("unknown_tool", text), run)
            token = await log.started(call(number, program=text), INVENTORY, {"sku": text, text: [text]}, run)
            await log.finished(token, Success({text: {text: text}}), 5)
            token = await log.started(call(number + 50, program=None), INVENTORY, text, run)
            await log.finished(token, Failure("tool_error", text), 5)
            data = {"call_id": text, "rule": text, "detail": text, "wall": text}
            await log.event("sandbox.violation", data, run)
            end: dict[str, Any] = {
                "call_id": text,
                "status": text,
                "output": text,
                "value": text,
                "result": text,
            }
            await log.event("program.finished", end, run)
            await log.event("custom.event", {text: text}, run)
            await log.event("run.finished", {"status": text, "usage": {text: 1}}, run)


async def test_a_page_shows_what_happened(tmp_path: Path) -> None:
    """Who, which program, which calls and why one was denied: in words, not in colours alone."""
    path = tmp_path / "a.jsonl"
    await fill(path, levels="full")
    words = " ".join(Page(page_of(path)).words)
    for expected in (
        "Run run_1",
        "alice",
        "Log intact",
        "Denied, and why",
        "unknown_tool",
        "there is no tool 'rm'",
        "await get_inventory(sku='a')",
        "get_inventory",
        '{"sku": "sku_1"}',
        '{"units": 1}',
        "the tool failed",
    ):
        assert expected in words, expected


async def test_what_is_left_out_is_shown_as_left_out(tmp_path: Path) -> None:
    """A chip says why something is not there and how large it was."""
    path = tmp_path / "a.jsonl"
    await fill(path)
    assert "redacted: level · 15 bytes" in " ".join(Page(page_of(path)).words)


async def test_a_page_refers_to_nothing_and_allows_nothing_else(tmp_path: Path) -> None:
    """It can be mailed: no address in it is loaded, and the policy names our style and script by hash."""
    path = tmp_path / "a.jsonl"
    await fill(path, levels="full")
    html = page_of(path)
    assert not re.search(r"(?:src|href|action|url)\s*[=(]\s*[\"']?(?:https?:|//)", html)
    for kind in ("style", "script"):
        (content,) = re.findall(rf"<{kind}>(.*?)</{kind}>", html, re.DOTALL)
        assert b64encode(hashlib.sha256(content.encode()).digest()).decode() in policy()
    assert "default-src 'none'" in policy()
    assert "unsafe" not in policy()


async def test_nothing_hostile_becomes_markup(tmp_path: Path) -> None:
    """Only elements and attributes of ours are in the page, whatever the records say."""
    path = tmp_path / "a.jsonl"
    await hostile_log(path)
    html = page_of(path)
    page = Page(html)
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not {tag for tag, _ in page.tags} & {
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "textarea",
        "image",
    }
    for _, attributes in page.tags:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("src", "srcdoc", "style")
        ]
        assert not str(attributes.get("href", "")).lower().startswith("javascript")
    assert "\x1b" not in html
    assert "\u202e" not in html


async def test_a_page_can_be_used_without_eyes_or_mouse(tmp_path: Path) -> None:
    """Language, title, one main heading, named regions, labelled fields, headed columns, a way past the menu."""
    path = tmp_path / "a.jsonl"
    await fill(path, 60, levels="full")
    tags = Page(page_of(path)).tags
    names = [tag for tag, _ in tags]
    assert ("html", {"lang": "en"}) in tags
    assert names.count("h1") == names.count("main") == 1
    assert names[: names.index("body")].count("title") == 1
    assert all(attributes.get("scope") == "col" for tag, attributes in tags if tag == "th")
    assert all("aria-label" in attributes for tag, attributes in tags if tag == "svg")
    assert all("aria-label" in attributes for _, attributes in tags if attributes.get("tabindex") == "0")
    assert ("a", {"href": "#content", "class": "skip"}) in tags
    for index, (tag, _) in enumerate(tags):
        if tag in ("input", "select"):
            assert tags[index - 1][0] == "label"


@pytest.fixture(scope="session")
def chromium() -> str:
    """A headless Chromium. `apt-get install chromium`, or any Chrome in the path, makes these tests run."""
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))),
        None,
    )
    if found is None:
        pytest.skip("no Chromium here: apt-get install chromium (or put a Chrome into the path)")
    return found


def browse(chromium: str, page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        chromium,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        f"--user-data-dir={profile}",
        "--enable-logging=stderr",
        "--virtual-time-budget=3000",
        *options,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_hostile_records_execute_nothing_in_a_real_browser(tmp_path: Path, chromium: str) -> None:
    """The page's own script ran, and nothing else did: the title is ours, and the policy had nothing to stop."""
    path = tmp_path / "a.jsonl"
    asyncio.run(hostile_log(path))
    page = tmp_path / "run.html"
    page.write_text(page_of(path), "utf-8")
    seen = browse(chromium, page, tmp_path / "profile", "--dump-dom")
    assert "<title>Run run_1</title>" in seen.stdout
    calls = 3 * len(HOSTILE)
    assert f"{calls} of {calls} calls shown" in seen.stdout
    assert "CONSOLE" not in seen.stderr, [line for line in seen.stderr.splitlines() if "CONSOLE" in line]


def test_a_thousand_calls_make_a_page_that_a_browser_shows(tmp_path: Path, chromium: str) -> None:
    """Long tables scroll in their place; the picture is taken to show that something is drawn."""
    path = tmp_path / "a.jsonl"

    async def thousand() -> None:
        async with open_log(path, levels="full", sync="none") as log:
            await log.event(
                "program.started", {"call_id": "prog_1", "code": "x\n" * 5, "language": "python"}, RUN
            )
            for number in range(1000):
                await record_call(log, number, of=contract(f"tool_{number % 7}"))

    asyncio.run(thousand())
    html = page_of(path)
    assert len(html) < 2_000_000
    page = tmp_path / "run.html"
    page.write_text(html, "utf-8")
    picture = tmp_path / "run.png"
    seen = browse(
        chromium,
        page,
        tmp_path / "profile",
        f"--screenshot={picture}",
        "--window-size=1200,1600",
        "--dump-dom",
    )
    assert picture.stat().st_size > 20_000, seen.stderr
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.fixture
async def client(tmp_path: Path) -> Any:
    path = tmp_path / "a.db"
    await fill(path, levels="full")
    await hostile_log_into(path)
    with TestClient(
        site(path, "secret-token", lambda: verify(path)), base_url="http://127.0.0.1:8000"
    ) as client:
        yield client


async def hostile_log_into(path: Path) -> None:
    async with open_log(path, levels="full") as log:
        run = RunContext(HOSTILE[0], HOSTILE[2])
        await record_call(log, run=run)


def test_the_server_shows_nothing_without_its_token(client: Any) -> None:
    """Anything on this machine can reach a loopback port."""
    assert client.get("/").status_code == 403
    assert client.get("/run/run_1").status_code == 403
    assert client.get("/?token=guess").status_code == 403
    assert "alice" not in client.get("/run/run_1").text
    entered = client.get("/?token=secret-token", follow_redirects=False)
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert "samesite=strict" in entered.headers["set-cookie"].lower()


def test_the_server_answers_to_this_machines_names_alone(client: Any) -> None:
    """A page elsewhere that lets its name point to 127.0.0.1 is not this machine."""
    client.get("/?token=secret-token")
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example:8000", ""):
        assert client.get("/", headers={"host": host}).status_code in (400, 421)
    assert client.get("/", headers={"host": "localhost:8000"}).status_code == 200


def test_the_list_of_runs_is_filtered_and_links_to_each(client: Any) -> None:
    client.get("/?token=secret-token")
    page = client.get("/")
    assert page.headers["content-security-policy"] == policy()
    assert "2 of 2 runs" in page.text
    assert "1 of 2 runs" in client.get("/?actor=alice").text
    assert "1 of 2 runs" in client.get("/?denied=on").text
    assert "0 of 2 runs" in client.get("/?tool=nothing&status=completed").text
    links = [
        attributes["href"]
        for tag, attributes in Page(page.text).tags
        if tag == "a" and "run/" in str(attributes)
    ]
    for link in links:
        assert client.get(f"/{link}").status_code == 200
    assert client.get("/run/none").status_code == 404
    assert "<script>document" not in client.get("/run/" + HOSTILE[0]).text


def test_the_page_of_runs_escapes_as_well(tmp_path: Path) -> None:
    from ptc.audit.query import RunSummary

    asyncio.run(fill(tmp_path / "a.jsonl"))
    report = verify(tmp_path / "a.jsonl")
    runs = [RunSummary(text, 1, 2, actor=text, model=text, status=text) for text in HOSTILE]
    page = Page(runs_page(HOSTILE[0], runs, 10, {"run": HOSTILE[3], "actor": HOSTILE[4]}, report))
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
