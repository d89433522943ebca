"""The approval page of the service sample: over HTTP, against hostile forms and texts, and in a real browser."""

from __future__ import annotations

import html
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.ptc.test_sample_service import Service

HOSTILE = (
    "Please order <script>document.title='pwned'</script> \"><img src=x onerror=alert(1)> \u202e\x1b]0;x\x07"
)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    running = Service(tmp_path)
    try:
        yield running
    finally:
        complaints = running.stop()
    assert complaints == ""


@pytest.fixture
def http(service: Service) -> Iterator[httpx2.Client]:
    with closing(httpx2.Client(base_url=service.url, timeout=100)) as client:
        yield client


class Forms(HTMLParser):
    """The forms of a page, as a browser finds them, and every element there is."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[dict[str, str]] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append({})
        elif tag == "input" and given.get("type") == "hidden":
            self.forms[-1][given["name"]] = given["value"]


def wait_for_approval(http: httpx2.Client, question: str = "Please order 5 units.") -> str:
    response = http.post("/ask", json={"question": question})
    assert (response.status_code, response.json()["status"]) == (202, "waiting")
    return str(response.json()["run_id"])


def shown(http: httpx2.Client) -> dict[str, str]:
    (form,) = Forms(http.get("/approvals").text).forms
    return form


def answer(http: httpx2.Client, run_id: str) -> dict[str, Any]:
    return dict(http.get(f"/runs/{run_id}").json())


@pytest.mark.parametrize(
    ("decision", "says"),
    [({"decision": "approve"}, "ordered 5 of a"), ({"decision": "deny", "reason": "too many"}, "too many")],
)
def test_a_call_is_decided_on_the_page(http: httpx2.Client, decision: dict[str, str], says: str) -> None:
    """It is shown with its arguments; the run goes on with what was decided, and its answer can be had."""
    run_id = wait_for_approval(http)
    page = http.get("/approvals").text
    assert "order_delivery" in page
    assert html.escape('"units": 5') in page
    assert answer(http, run_id)["status"] == "waiting"
    response = http.post("/approvals", data={**shown(http), **decision})
    assert (response.status_code, response.headers["location"]) == (303, "/approvals")
    assert says in answer(http, run_id)["answer"]
    assert "Nothing waits" in http.get("/approvals").text


def test_a_call_waits_while_the_service_is_not_there(tmp_path: Path) -> None:
    """The run lies in the store; the service that comes up shows it, and it runs once."""
    first = Service(tmp_path)
    with closing(httpx2.Client(base_url=first.url, timeout=100)) as http:
        run_id = wait_for_approval(http)
    assert first.stop() == ""
    second = Service(tmp_path)
    try:
        with closing(httpx2.Client(base_url=second.url, timeout=100)) as http:
            http.post("/approvals", data={**shown(http), "decision": "approve"})
            assert "ordered 5 of a" in answer(http, run_id)["answer"]
    finally:
        assert second.stop() == ""


def statuses(directory: Path) -> dict[str, str]:
    """Of the runs in the service's store, by id."""
    with closing(sqlite3.connect(directory / "audit.db")) as db:
        return dict(db.execute("SELECT run, status FROM runs").fetchall())


def until_running(http: httpx2.Client, runs: int) -> None:
    while http.get("/healthz").json()["running"] != runs:
        pass


def test_a_run_that_was_cut_off_with_its_service_goes_on_with_the_next(tmp_path: Path) -> None:
    """Killed or stopped as an operator does: nobody waits for it, and its answer can be had."""
    first = Service(tmp_path)
    with (
        closing(httpx2.Client(base_url=first.url, timeout=100)) as http,
        http.stream("POST", "/ask/stream", json={"question": "Wait for a delivery"}) as response,
    ):
        next(line for line in response.iter_lines() if "wait_for_delivery" in line)
        first.process.kill()
        first.process.communicate(timeout=60)
    ((run_id, status),) = statuses(tmp_path).items()
    assert status == "running"
    for _ in range(2):
        again = Service(tmp_path)
        with closing(httpx2.Client(base_url=again.url, timeout=100)) as http:
            until_running(http, 1)
            assert answer(http, run_id)["status"] == "running"
        assert again.stop() == ""
        assert statuses(tmp_path) == {run_id: "running"}


def test_an_answer_can_be_had_from_the_next_service(tmp_path: Path) -> None:
    """It lies in the store: of a run that had to wait, and of any other."""
    first = Service(tmp_path)
    with closing(httpx2.Client(base_url=first.url, timeout=100)) as http:
        waited = wait_for_approval(http)
        http.post("/approvals", data={**shown(http), "decision": "approve"})
        told = http.post("/ask", json={"question": "How many units are left?"}).json()
    first.process.kill()
    first.process.communicate(timeout=60)
    second = Service(tmp_path)
    try:
        with closing(httpx2.Client(base_url=second.url, timeout=100)) as http:
            for _ in range(2):
                assert "ordered 5 of a" in answer(http, waited)["answer"]
                assert answer(http, told["run_id"])["answer"] == told["answer"]
            assert http.get("/runs/run_of_nobody").status_code == 404
    finally:
        assert second.stop() == ""


def test_a_run_that_cannot_go_on_does_not_keep_the_service_from_starting(tmp_path: Path) -> None:
    """Its tools may have changed with the service: it lies in the store as it was."""
    first = Service(tmp_path)
    with closing(httpx2.Client(base_url=first.url, timeout=100)) as http:
        run_id = wait_for_approval(http)
    assert first.stop() == ""
    with closing(sqlite3.connect(tmp_path / "audit.db")) as db, db:
        db.execute("UPDATE steps SET data = replace(data, 'order_delivery', 'order_elsewhere')")
    second = Service(tmp_path)
    try:
        with closing(httpx2.Client(base_url=second.url, timeout=100)) as http:
            assert "Nothing waits" in http.get("/approvals").text
            assert answer(http, run_id)["status"] == "paused"
    finally:
        assert second.stop() == ""


def test_a_stream_says_that_its_run_waits(http: httpx2.Client) -> None:
    """Instead of an answer."""
    with http.stream("POST", "/ask/stream", json={"question": "Please order 5 units."}) as response:
        text = "".join(response.iter_text())
    assert "event: waiting" in text
    assert "event: answer" not in text
    assert len(Forms(http.get("/approvals").text).forms) == 1


def test_only_our_own_page_decides(http: httpx2.Client, service: Service) -> None:
    """A form of another site, another visitor's, a changed one, an old one, no form: nothing runs."""
    run_id = wait_for_approval(http)
    form = {**shown(http), "decision": "approve"}
    with closing(httpx2.Client(base_url=service.url, timeout=100)) as stranger:
        assert stranger.post("/approvals", data=form).status_code == 403
        stranger.get("/approvals")
        assert stranger.post("/approvals", data=form).status_code == 403
    wrong: list[tuple[dict[str, Any], int]] = [
        ({"data": form, "headers": {"origin": "https://evil.example"}}, 403),
        ({"data": form, "headers": {"origin": "null"}}, 403),
        ({"data": {**form, "token": form["token"][:-1] + "x"}}, 403),
        ({"data": {**form, "token": "é"}}, 403),
        ({"data": {name: value for name, value in form.items() if name != "token"}}, 403),
        ({"data": {**form, "call": "another"}}, 409),
        ({"data": {**form, "run": "another"}}, 409),
        ({"data": {**form, "decision": "maybe"}}, 422),
        ({"json": form}, 409),
        (
            {"content": b"\xff" * 100_000, "headers": {"content-type": "application/x-www-form-urlencoded"}},
            409,
        ),
        ({"content": b"a=1&" * 500, "headers": {"content-type": "application/x-www-form-urlencoded"}}, 409),
        ({"data": form, "headers": {"host": "evil.example"}}, 400),
    ]
    for given, status in wrong:
        assert http.post("/approvals", **given).status_code == status, given
        assert answer(http, run_id)["status"] == "waiting"
    assert http.get("/approvals", headers={"host": "evil.example"}).status_code == 400
    assert http.post("/approvals", data=form, headers={"origin": service.url}).status_code == 303
    assert http.post("/approvals", data=form).status_code == 409  # decided: a second time is too late
    assert answer(http, run_id)["status"] == "answered"


def test_the_page_holds_nothing_that_could_act(http: httpx2.Client) -> None:
    """What a model wrote is text, whatever it wrote; and the headers forbid the rest."""
    wait_for_approval(http, HOSTILE)
    response = http.get("/approvals")
    assert not {"script", "img", "iframe", "link", "svg"} & Forms(response.text).tags
    assert not {"\u202e", "\x1b", "\x07"} & set(response.text)
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert re.search(
        r"visitor=\S+; HttpOnly; Path=/approvals; SameSite=strict", response.headers["set-cookie"]
    )


def test_the_page_works_in_a_real_browser(http: httpx2.Client, service: Service, tmp_path: Path) -> None:
    """It is shown as it is meant, its style allowed by its own policy, and nothing hostile acts."""
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next((path for name in names if (path := shutil.which(name))), None)
    if chromium is None:
        pytest.skip("no Chromium here: apt-get install chromium (or put a Chrome into the path)")
    wait_for_approval(http, HOSTILE)
    seen = subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--screenshot={tmp_path / 'page.png'}",
            "--enable-logging=stderr",
            "--dump-dom",
            f"{service.url}/approvals",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "<title>Approvals</title>" in seen.stdout
    assert "Refused to" not in seen.stderr  # by the policy: script that a text brought in, or our own style
    assert (tmp_path / "page.png").stat().st_size > 5_000
