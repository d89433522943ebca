"""The peer's tool search, by the client and by itself: what it serves, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest

from ptc.gateway.peer import Settings
from ptc.testing import ScriptedModel, call, in_process, program, say, search

Item = dict[str, Any]
QUERY: Item = {
    "type": "tool_search",
    "execution": "client",
    "description": "Find tools.",
    "parameters": {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
}
BY_SERVER: Item = {"type": "tool_search"}
USER: Item = {"role": "user", "content": "go"}


def function(name: str, **more: Any) -> Item:
    empty = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    return {"type": "function", "name": name, "strict": True, "parameters": empty, **more}


def space(name: str, *tools: Item) -> Item:
    return {"type": "namespace", "name": name, "description": f"All of {name}.", "tools": list(tools)}


LOOKUP = function("lookup", description="Look up a customer record.", defer_loading=True)
PURGE = function("purge", description="Remove everything.", defer_loading=True)
RECORDS = space("records", LOOKUP, PURGE)
RARE = function("rare", description="Seldom used.", defer_loading=True)


async def output_of(client: openai.AsyncOpenAI, items: Any, *tools: Any) -> list[Item]:
    """One request; the output as it is on the wire."""
    response = await client.responses.create(model="m", input=items, tools=list(tools), store=False)
    return [item.to_dict() for item in response.output]


def answer_to(item: Item, *tools: Item, **more: Any) -> Item:
    return {
        "type": "tool_search_output",
        "call_id": item["call_id"],
        "execution": "client",
        "status": "completed",
        "tools": list(tools),
        **more,
    }


def done(item: Item) -> Item:
    return {"type": "function_call_output", "call_id": item["call_id"], "output": "ok"}


async def test_the_client_searches_and_the_loaded_tool_is_called_by_its_namespace() -> None:
    """The search waits for the client, and what the client found is called in the same conversation."""
    model = ScriptedModel(
        search("customer"), lambda request: call("lookup", namespace="records"), say("done")
    )
    async with in_process(model) as client:
        (asked,) = await output_of(client, [USER], QUERY)
        assert (asked["type"], asked["execution"], asked["arguments"], asked["status"]) == (
            "tool_search_call",
            "client",
            {"query": "customer"},
            "completed",
        )
        items = [USER, asked, answer_to(asked, space("records", LOOKUP))]
        (called,) = await output_of(client, items, QUERY)
        assert (called["name"], called["namespace"]) == ("lookup", "records")
        (said,) = await output_of(client, [*items, called, done(called)], QUERY)
        assert said["content"][0]["text"] == "done"


async def test_a_loaded_tool_without_a_namespace_is_called_by_its_name_twice() -> None:
    """Nothing that was searched for is in the default namespace; the vendors' own SDK reckons with that."""
    async with in_process(ScriptedModel(search("seldom"), call("rare"), say("done"))) as client:
        (asked,) = await output_of(client, [USER], QUERY)
        items = [USER, asked, answer_to(asked, RARE)]
        (called,) = await output_of(client, items, QUERY)
        assert called["namespace"] == "rare"
        lost = {key: value for key, value in called.items() if key != "namespace"}
        with pytest.raises(openai.BadRequestError, match="Missing namespace for function_call 'rare'"):
            await output_of(client, [*items, lost, done(called)], QUERY)
        assert await output_of(client, [*items, called, done(called)], QUERY)


async def test_an_eager_tool_stays_in_the_default_namespace_when_a_search_finds_it() -> None:
    """It was there before."""
    eager = function("rare")
    async with in_process(ScriptedModel(search("seldom"), call("rare"), say("done"))) as client:
        (asked,) = await output_of(client, [USER], QUERY, eager)
        items = [USER, asked, answer_to(asked, RARE)]
        (called,) = await output_of(client, items, QUERY, eager)
        assert "namespace" not in called
        assert await output_of(client, [*items, called, done(called)], QUERY, eager)


async def test_nothing_found_is_an_empty_list_and_the_model_searches_again() -> None:
    """No match is an answer as well."""
    async with in_process(ScriptedModel(search("a"), search("b"), say("nothing"))) as client:
        (first,) = await output_of(client, [USER], QUERY)
        items = [USER, first, answer_to(first)]
        (second,) = await output_of(client, items, QUERY)
        assert second["call_id"] != first["call_id"]
        (said,) = await output_of(client, [*items, second, answer_to(second)], QUERY)
        assert said["content"][0]["text"] == "nothing"


Spoil = Callable[[Item, Item], list[Item]]
REFUSED: dict[str, tuple[Spoil, str]] = {
    "an output with another call id": (
        lambda asked, called: [asked, answer_to(asked, RECORDS, call_id="call_other"), called, done(called)],
        "No tool call found for tool search output with call_id call_other",
    ),
    "an output without a call id": (
        lambda asked, called: [asked, answer_to(asked, RECORDS, call_id=None), called, done(called)],
        "No tool call found for tool search output with call_id None",
    ),
    "an output of the service that it never made": (
        lambda asked, called: [
            asked,
            answer_to(asked, RECORDS, call_id=None, execution="server"),
            called,
            done(called),
        ],
        "No tool search call found",
    ),
    "two outputs for one search": (
        lambda asked, called: [asked, answer_to(asked, RECORDS), answer_to(asked), called, done(called)],
        "Duplicate tool output",
    ),
    "a search without an output": (
        lambda asked, called: [asked],
        "No tool output found for tool search call",
    ),
    "an output before its search": (
        lambda asked, called: [answer_to(asked, RECORDS), asked, called, done(called)],
        "No tool call found for tool search output",
    ),
    "a lost namespace": (
        lambda asked, called: [
            asked,
            answer_to(asked, RECORDS),
            {key: value for key, value in called.items() if key != "namespace"},
            done(called),
        ],
        r"Missing namespace for function_call 'lookup'. It does not exist in the default namespace",
    ),
    "a found tool that is no tool": (
        lambda asked, called: [asked, answer_to(asked, {"type": "function"}), called, done(called)],
        "Missing required parameter",
    ),
    "a found tool with a field of ours": (
        lambda asked, called: [asked, answer_to(asked, function("f", score=1.5)), called, done(called)],
        "Unknown parameter",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
async def test_the_peer_refuses(name: str) -> None:
    """Each of these is a 400 of the service."""
    spoil, words = REFUSED[name]
    model = ScriptedModel(search("customer"), call("lookup", namespace="records"), say("done"))
    async with in_process(model) as client:
        (asked,) = await output_of(client, [USER], QUERY)
        items = [USER, asked, answer_to(asked, RECORDS)]
        (called,) = await output_of(client, items, QUERY)
        assert await output_of(client, [*items, called, done(called)], QUERY)
        with pytest.raises(openai.BadRequestError, match=words):
            await output_of(client, [USER, *spoil(asked, called)], QUERY)


async def test_a_call_of_a_tool_that_was_not_loaded_is_refused_unless_the_model_made_it() -> None:
    """A model does call too early at times, and its own item comes back; a client cannot make one up."""
    early = call("lookup", namespace="records")
    async with in_process(ScriptedModel(early, say("done"))) as client:
        (called,) = await output_of(client, [USER], RECORDS, BY_SERVER)
        assert await output_of(client, [USER, called, done(called)], RECORDS, BY_SERVER)
        made_up = {key: value for key, value in called.items() if key != "id"}
        with pytest.raises(openai.BadRequestError, match="no tool search before this call loaded it"):
            await output_of(client, [USER, made_up, done(called)], RECORDS, BY_SERVER)


async def test_the_service_searches_in_the_same_response() -> None:
    """Server execution: call and output without a call id, and the model goes on with what was loaded."""
    model = ScriptedModel(search("look up a customer"), call("lookup", namespace="records"), say("done"))
    async with in_process(model) as client:
        asked, found, called = await output_of(client, [USER], RECORDS, RARE, BY_SERVER)
        assert (asked["execution"], asked["call_id"], found["execution"], found["call_id"]) == (
            "server",
            None,
            "server",
            None,
        )
        assert found["tools"] == [space("records", LOOKUP)]
        assert called["namespace"] == "records"
        items = [USER, asked, found, called, done(called)]
        (said,) = await output_of(client, items, RECORDS, RARE, BY_SERVER)
        assert said["content"][0]["text"] == "done"


async def test_the_script_says_what_the_service_finds() -> None:
    """So that a test needs no luck with words."""
    model = ScriptedModel(search("x", finds=["records.purge", "rare"]), lambda r: say(" ".join(r.found)))
    async with in_process(model) as client:
        *_, said = await output_of(client, [USER], RECORDS, RARE, BY_SERVER)
        assert said["content"][0]["text"] == "records.purge rare"


async def test_a_tool_that_a_search_loaded_is_there_for_a_program_that_starts_later() -> None:
    """Rule 18 of the wire: loaded before the program starts, whoever searched."""
    tool = function(
        "lookup",
        defer_loading=True,
        allowed_callers=["programmatic"],
        output_schema={"type": "object"},
    )
    tools = [space("records", tool), {"type": "programmatic_tool_calling"}]
    model = ScriptedModel(search("lookup"), program("await records_lookup()"))
    for finder in (BY_SERVER, QUERY):
        async with in_process(model) as client:
            output = await output_of(client, [USER], *tools, finder)
            if finder is QUERY:
                items = [USER, output[0], answer_to(output[0], space("records", tool))]
                output = await output_of(client, items, *tools, finder)
            called = output[-1]
            assert (called["namespace"], called["name"]) == ("records", "lookup")
            assert called["caller"]["type"] == "program"


async def test_a_choice_of_a_deferred_tool_is_refused() -> None:
    """The model cannot be made to call what it was not given."""
    choice: Any = {"type": "function", "name": "rare"}
    tools: Any = [RARE, BY_SERVER]
    async with in_process(ScriptedModel(say("done"))) as client:
        with pytest.raises(openai.BadRequestError, match="has 'defer_loading'"):
            await client.responses.create(model="m", input="go", tools=tools, tool_choice=choice)


async def test_a_deployment_without_tool_search_says_so() -> None:
    """Most models have none."""
    settings = Settings(tool_search=False)
    async with in_process(ScriptedModel(say("done")), settings=settings) as client:
        with pytest.raises(openai.BadRequestError, match="'tool_search' is not supported with m"):
            await output_of(client, [USER], QUERY)


async def test_a_script_that_searches_without_the_tool_is_told() -> None:
    """The mistake is the test's own."""
    async with in_process(ScriptedModel(search("x"))) as client:
        with pytest.raises(openai.BadRequestError, match="no 'tool_search' tool"):
            await output_of(client, [USER])
