"""What every page stands in: one self-contained document, under a strict content security policy.

Style and script are ours, named by their hashes; nothing else is allowed from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from ptc.audit.view.markup import Markup, tag


def message_page(title: str, message: str) -> str:
    """A page that says one thing."""
    return document(title, [tag("h1", title), tag("p", message)])


@cache
def policy() -> str:
    """The content security policy: our style and our script by their hashes, and nothing else from anywhere."""
    style, script = (_hash(name) for name in ("style.css", "script.js"))
    return (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none';"
        " form-action 'self'; frame-ancestors 'none'"
    )


def document(title: str, body: list[Any]) -> str:
    # A policy in a meta element cannot name frame-ancestors; the server's header does.
    meta_policy = policy().replace("; frame-ancestors 'none'", "")
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=meta_policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        Markup(f"<style>{_asset('style.css')}</style>"),
    ]
    main = tag("main", *body, id="content")
    skip = tag("a", "Skip to content", href="#content", class_="skip")
    footer = tag(
        "footer", "Made by ptc from an audit log. Times are UTC. What is redacted is not in this page."
    )
    script = Markup(f"<script>{_asset('script.js')}</script>")
    page = tag("html", tag("head", *head), tag("body", skip, main, footer, script), lang="en")
    return f"<!doctype html>\n{page}\n"


@cache
def _asset(name: str) -> str:
    return files("ptc.audit.view").joinpath(name).read_text("utf-8")


def _hash(name: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(_asset(name).encode()).digest()).decode()
