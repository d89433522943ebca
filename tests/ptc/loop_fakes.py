"""A service that says what a test tells it to, and remembers what it was asked: no network, no process."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx2
import openai

from ptc.retry import RetryPolicy

Item = dict[str, Any]
AT_ONCE = RetryPolicy(base_delay=0.0)
"""Retries without waiting."""


class FakeEndpoint:
    """Plays `turns` in order: a response, a list of items, an exception, or a function of the body."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.bodies: list[Item] = []
        self.asked = asyncio.Event()
        self.cancelled: list[str] = []
        self.retrieved: list[Any] = []

    async def create(self, body: Item, *, timeout: float | None = None) -> Item:
        return self._next(body)

    async def stream(self, body: Item, *, timeout: float | None = None) -> AsyncIterator[Item]:
        response = self._next(body)
        for event in events_of(response):
            yield event

    async def retrieve(self, response_id: str) -> Item:
        turn = self.retrieved.pop(0)
        if isinstance(turn, BaseException):
            raise turn
        return as_response(turn)

    async def cancel(self, response_id: str) -> Item:
        self.cancelled.append(response_id)
        return response(status="cancelled")

    def _next(self, body: Item) -> Item:
        self.bodies.append(copy.deepcopy(body))
        self.asked.set()
        if not self.turns:
            raise AssertionError("the script has no further turn")
        turn = self.turns.pop(0)
        if callable(turn):
            turn = turn(body)
        if isinstance(turn, BaseException):
            raise turn
        return as_response(turn, number=len(self.bodies))

    @property
    def inputs(self) -> list[list[Item]]:
        return [body["input"] for body in self.bodies]


def as_response(turn: Any, number: int = 1) -> Item:
    return copy.deepcopy(turn) if isinstance(turn, dict) else response(*turn, id=f"resp_{number}")


def response(*output: Item, status: str = "completed", id: str = "resp_1", **fields: Any) -> Item:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return {
        "id": id,
        "object": "response",
        "status": status,
        "output": [dict(item) for item in output],
        "usage": usage,
        **fields,
    }


def answer(text: str = "done", phase: str | None = "final_answer", **fields: Any) -> Item:
    item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
        **fields,
    }
    return item if phase is None else {**item, "phase": phase}


def commentary(text: str = "Let me see.") -> Item:
    return answer(text, "commentary")


def refusal(text: str = "No.") -> Item:
    return {**answer(phase=None), "content": [{"type": "refusal", "refusal": text}]}


def reasoning(id: str = "rs_1", encrypted: str | None = "sealed") -> Item:
    item: Item = {"type": "reasoning", "id": id, "summary": []}
    return item if encrypted is None else {**item, "encrypted_content": encrypted}


def function_call(name: str = "echo", call_id: str = "c1", arguments: Any = None, **fields: Any) -> Item:
    text = arguments if isinstance(arguments, str) or arguments is None else json.dumps(arguments)
    text = '{"x": 1}' if arguments is None else text
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": text,
    } | fields


def program(call_id: str = "cp", code: str = "text(1)") -> Item:
    return {"type": "program", "id": f"pg_{call_id}", "call_id": call_id, "code": code, "fingerprint": "f1"}


def program_output(call_id: str = "cp", result: str = "1", status: str = "completed") -> Item:
    return {
        "type": "program_output",
        "id": f"po_{call_id}",
        "call_id": call_id,
        "result": result,
        "status": status,
    }


def by_program(call_id: str = "cp", **fields: Any) -> Item:
    return {"type": "program", "caller_id": call_id, **fields}


def outputs_in(body: Item) -> dict[str, Any]:
    """Outputs of a request's input by call id; JSON is read."""
    found: dict[str, Any] = {}
    for item in body["input"]:
        if str(item.get("type")).endswith("_output") and "call_id" in item and "output" in item:
            value = item["output"]
            with contextlib.suppress(TypeError, ValueError):
                value = json.loads(value)
            found[item["call_id"]] = value
    return found


def events_of(response: Item) -> Sequence[Item]:
    """A response as the service streams it."""
    events: list[Item] = [
        {"type": "response.created", "response": {**response, "output": [], "status": "in_progress"}}
    ]
    for index, item in enumerate(response.get("output") or []):
        at = {"output_index": index}
        events.append({"type": "response.output_item.added", **at, "item": {**item, "content": []}})
        for part in item.get("content") or [] if item.get("type") == "message" else []:
            if part.get("type") == "output_text":
                half = len(part["text"]) // 2
                for piece in (part["text"][:half], part["text"][half:]):
                    event = {
                        "type": "response.output_text.delta",
                        **at,
                        "item_id": item.get("id"),
                        "delta": piece,
                    }
                    events.append(event)
        events.append({"type": "response.output_item.done", **at, "item": item})
    ending = {"incomplete": "response.incomplete", "failed": "response.failed"}
    events.append({"type": ending.get(response["status"], "response.completed"), "response": response})
    return events


def client_of(handler: Callable[[httpx2.Request], httpx2.Response], **options: Any) -> openai.AsyncOpenAI:
    """A real SDK client whose transport is a function."""
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(handler))
    return openai.AsyncOpenAI(api_key="test", base_url="http://fake/v1", http_client=http, **options)
