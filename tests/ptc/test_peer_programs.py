"""Hosted programs of the peer: paused, resumed, rebuilt from the history, refused where that was changed."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

import ptc
from ptc.gateway.app import create_app
from ptc.gateway.peer import Peer as EmbeddedPeer
from ptc.gateway.peer import Settings
from ptc.testing import Peer, ScriptedModel, in_process, program, say
from ptc.testing.scripted import Part, Turn
from tests.ptc.process_watch import orphans

Item = dict[str, Any]
SCRIPTS = Path(__file__).with_name("peer_scripts.py")
PROGRAMS: Item = {"type": "programmatic_tool_calling"}
KEY = b"the key of these tests"


def function(name: str, parameter: str = "sku", **more: Any) -> Item:
    parameters = {
        "type": "object",
        "properties": {parameter: {"type": "string"}},
        "required": [parameter],
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "name": name,
        "parameters": parameters,
        "strict": True,
        "allowed_callers": ["programmatic"],
        "output_schema": {"type": "object"},
        **more,
    }


TOOLS = [function("get_inventory"), function("get_demand"), PROGRAMS]
UNITS = {"get_inventory": {"available_units": 73}, "get_demand": {"expected_units": 62}}


def answer(call: Item) -> Any:
    return UNITS.get(call["name"], {"echo": json.loads(call["arguments"])})


def result_of(request: Any) -> Part:
    return say(request.program_result)


class Conversation:
    """The vendors' plain loop over the SDK, one request at a time, with a hand on the history in between."""

    def __init__(self, client: openai.AsyncOpenAI, tools: list[Any] | None = None) -> None:
        self.client = client
        self.tools = TOOLS if tools is None else tools
        self.items: list[Any] = [{"role": "user", "content": "Compare."}]
        self.responses: list[list[Item]] = []

    async def ask(self, items: list[Any] | None = None) -> list[Item]:
        """One request with this history; the output as it is on the wire."""
        response = await self.client.responses.create(
            model="m", input=self.items if items is None else items, tools=self.tools, store=False
        )
        return [item.to_dict() for item in response.output]

    async def step(self, answer: Callable[[Item], Any] = answer) -> list[Item]:
        """A request, and the outputs of its calls, in their order."""
        output = await self.ask()
        self.items += output
        self.responses.append(output)
        self.items += [outputs_for(item, answer) for item in output if item["type"] == "function_call"]
        return output

    async def run(self, answer: Callable[[Item], Any] = answer) -> str:
        """To the final message; gives its text."""
        while True:
            output = await self.step(answer)
            if output and output[-1]["type"] == "message":
                text: str = output[-1]["content"][0]["text"]
                return text


def outputs_for(call: Item, answer: Callable[[Item], Any] = answer) -> Item:
    given = answer(call)
    output: Item = {
        "type": "function_call_output",
        "call_id": call["call_id"],
        "output": given if isinstance(given, str) else json.dumps(given),
    }
    return {**output, "caller": call["caller"]} if "caller" in call else output


@asynccontextmanager
async def scripted(*turns: Turn, **settings: Any) -> AsyncIterator[openai.AsyncOpenAI]:
    async with in_process(ScriptedModel(*turns), settings=Settings(**settings), key=KEY) as client:
        yield client


def kinds(output: list[Item]) -> list[str]:
    return [item["type"] for item in output]


BOTH = """\
a, b = await asyncio.gather(get_inventory(sku="x"), get_demand(sku="x"))
print("compared")
a["available_units"] - b["expected_units"]
"""


async def test_a_program_pauses_at_its_calls_and_ends_after_their_outputs() -> None:
    """The wire of pause and resume: program and both calls at once, then its output and the message."""
    async with scripted(program(BOTH), result_of) as client:
        talk = Conversation(client)
        assert await talk.run() == "compared\n11"
    first, second = talk.responses
    assert kinds(first) == ["program", "function_call", "function_call"]
    assert kinds(second) == ["program_output", "message"]
    owner = {"type": "program", "caller_id": first[0]["call_id"]}
    assert [call["caller"] for call in first[1:]] == [owner, owner]
    assert second[0]["call_id"] == first[0]["call_id"]
    assert (second[0]["result"], second[0]["status"]) == ("compared\n11", "completed")


async def test_a_program_is_rebuilt_where_no_process_of_it_is_left() -> None:
    """The same items whether or not the paused program lives: ids too, so that the history stays valid."""
    outputs = []
    for kept in (32, 0):
        async with scripted(program(BOTH), result_of, paused_programs=kept) as client:
            talk = Conversation(client)
            talk.items, talk.responses = copy.deepcopy(START), []
            outputs.append((await talk.step())[0])
    assert outputs[0] == outputs[1]


START: list[Any] = []


@pytest.fixture(autouse=True)
async def _start() -> None:
    """A history that is paused at both calls, made once, by a peer that is gone since."""
    if not START:
        async with scripted(program(BOTH), result_of) as client:
            talk = Conversation(client)
            await talk.step()
            START.extend(talk.items)


async def test_the_same_request_again_gets_the_same_answer() -> None:
    """A client that lost the answer asks again; the program must not have gone on behind its back."""
    async with scripted(program(SEQUENCE), result_of) as client:
        talk = Conversation(client)
        await talk.step(echo)
        first = [await talk.ask() for _ in range(3)]
        assert first[0] == first[1] == first[2]
        again = await asyncio.gather(*(talk.ask() for _ in range(3)))
        assert again[0] == again[1] == again[2] == first[0]
        assert await talk.run(echo) == "[1,2,3]"


SEQUENCE = """\
found = []
for n in ["1", "2", "3"]:
    found.append(int((await get_inventory(sku=n))["echo"]))
found
"""


def echo(call: Item) -> Any:
    return {"echo": json.loads(call["arguments"])["sku"]}


@pytest.mark.parametrize("kept", [32, 1, 0])
async def test_many_pauses_of_many_programs_at_once(kept: int) -> None:
    """Ten conversations on one peer that keeps more, one or none of their programs."""
    async with scripted(program(SEQUENCE.replace("int(", "(")), result_of, paused_programs=kept) as client:
        texts = await asyncio.gather(*(Conversation(client).run(echo) for _ in range(10)))
    assert set(texts) == {'["1","2","3"]'}


DETERMINED = """\
import random, time
start = time.time()
first = [random.random(), list({"a", "b", "c"})]
await asyncio.sleep(3600)
await get_inventory(sku="a")
await asyncio.sleep(0.5)
[first, random.random(), time.time() - start]
"""


async def test_time_and_chance_go_the_same_way_again() -> None:
    """A rebuilt program that computed something else would make its history a lie; and no second is slept."""
    texts = []
    async with scripted(program(DETERMINED), result_of) as client:
        talk = Conversation(client)
        await talk.step()
        for kept in (32, 0):
            async with scripted(program(DETERMINED), result_of, paused_programs=kept) as other:
                again = Conversation(other)
                again.items = copy.deepcopy(talk.items)
                texts.append(await again.run())
        texts.append(await talk.run())
    assert texts[0] == texts[1] == texts[2]
    assert json.loads(texts[0])[2] == pytest.approx(3600.5, abs=0.001)


RACE = """\
tasks = [asyncio.create_task(get_inventory(sku=n)) for n in ("a", "b")]
done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
for task in waiting:
    task.cancel()
await asyncio.sleep(0)
[task.result()["echo"] for task in done]
"""


@pytest.mark.parametrize("kept", [32, 0])
@pytest.mark.parametrize("first", [0, 1])
async def test_the_order_of_the_outputs_decides_a_race(first: int, kept: int) -> None:
    """Answers are given in the order of the history; the output of a call given up is dropped, and needed."""
    async with scripted(program(RACE), result_of, paused_programs=kept) as client:
        talk = Conversation(client)
        output = await talk.ask()
        calls = [item for item in output if item["type"] == "function_call"]
        outputs = [outputs_for(call, echo) for call in calls]
        talk.items += output + (outputs if first == 0 else outputs[::-1])
        assert await talk.run() == json.dumps([["a"], ["b"]][first])


async def test_a_program_and_its_result_may_stand_alone() -> None:
    """Responses with neither calls nor a message: the client has to go on (rule 8)."""
    turns = [program(BOTH, calls_later=True, result_alone=True), result_of]
    for kept in (32, 0):
        async with scripted(*turns, paused_programs=kept) as client:
            talk = Conversation(client)
            assert await talk.run() == "compared\n11"
        assert [kinds(output) for output in talk.responses] == [
            ["program"],
            ["function_call", "function_call"],
            ["program_output"],
            ["message"],
        ]


async def test_a_program_without_calls_and_the_next_are_in_one_response() -> None:
    """The model goes on by itself where nothing has to be asked of the client."""
    async with scripted(program("1 + 1"), program('print("hi")'), result_of) as client:
        output = await Conversation(client).step()
    assert kinds(output) == ["program", "program_output", "program", "program_output", "message"]
    assert [item["result"] for item in output if item["type"] == "program_output"] == ["2", "hi"]


async def test_two_programs_of_one_turn_are_open_at_once() -> None:
    """Each has its own calls; the message comes when both have ended."""
    async with scripted([program(BOTH), program(SEQUENCE)], result_of) as client:
        talk = Conversation(client)
        assert await talk.run(lambda call: {**UNITS[call["name"]], **echo(call)}) == "[1,2,3]"
    assert kinds(talk.responses[0]) == [
        "program",
        "function_call",
        "function_call",
        "program",
        "function_call",
    ]
    assert kinds(talk.responses[1]) == ["program_output", "function_call"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import os", "os"),
        ("open('/etc/passwd')", "open"),
        ("x = (", "SyntaxError"),
        ("await get_nothing(sku='a')", "get_nothing"),
        ("add_tools([])", "RuntimeError"),
    ],
)
async def test_a_program_that_fails_has_an_incomplete_output_that_says_why(code: str, words: str) -> None:
    """The model reads it, and the run goes on."""
    async with scripted(program(code), result_of) as client:
        output = await Conversation(client).step()
    assert kinds(output) == ["program", "program_output", "message"]
    assert output[1]["status"] == "incomplete"
    assert words in output[1]["result"]


async def test_a_program_gets_an_error_as_the_object_it_is() -> None:
    """As with the hosted service, where a failed call is a value (rule 5)."""
    error = {"error": {"type": "timeout", "message": "too slow"}}
    code = "(await get_inventory(sku='a'))['error']['type']"
    async with scripted(program(code), result_of) as client:
        assert await Conversation(client).run(lambda _: error) == "timeout"


async def test_a_tool_without_a_schema_gives_its_text() -> None:
    """JSON is made of an output only where a schema says that it is."""
    tools = [function("read", output_schema=None), PROGRAMS]
    async with scripted(program("(await read(sku='a')) + '!'"), result_of) as client:
        assert await Conversation(client, tools).run(lambda _: '{"a":1}') == '{"a":1}!'


async def test_a_tool_of_a_namespace_is_called_and_named_as_the_wire_has_it() -> None:
    """`records.search` is `records_search` in a program, and its call carries the namespace."""
    tools = [
        {
            "type": "namespace",
            "name": "records",
            "description": "Records",
            "tools": [function("search", "q")],
        },
        PROGRAMS,
    ]
    async with scripted(program("(await records_search(q='x'))['echo']['q']"), result_of) as client:
        talk = Conversation(client, tools)
        assert await talk.run() == "x"
    call = talk.responses[0][1]
    assert (call["namespace"], call["name"]) == ("records", "search")


async def test_more_tools_may_come_while_a_program_is_open() -> None:
    """The program goes on with those it was started with (rule 11 asks for no less)."""
    for kept in (32, 0):
        async with scripted(program(BOTH), result_of, paused_programs=kept) as client:
            talk = Conversation(client)
            await talk.step()
            talk.tools = [function("another"), *TOOLS]
            assert await talk.run() == "compared\n11"


async def test_a_deferred_tool_is_the_programs_only_once_it_was_loaded() -> None:
    """Tool search is top level only: what was not loaded before a program starts, it cannot call (rule 18)."""
    deferred = function("get_demand", defer_loading=True)
    tools = [function("get_inventory"), deferred, {"type": "tool_search", "execution": "client"}, PROGRAMS]
    search: Item = {"type": "tool_search_call", "call_id": "call_s", "arguments": {}, "execution": "client"}
    found = {"type": "tool_search_output", "call_id": "call_s", "execution": "client", "tools": [deferred]}
    async with scripted(program(BOTH), result_of) as client:
        talk = Conversation(client, tools)
        assert "get_demand" in await talk.run()
        talk = Conversation(client, tools)
        talk.items += [search, found]
        assert await talk.run() == "compared\n11"


async def test_a_program_goes_on_from_a_stored_response() -> None:
    """`previous_response_id` and the new outputs alone; the tools are sent again."""
    async with scripted(program(BOTH), result_of) as client:
        first = await client.responses.create(model="m", input="hi", tools=TOOLS)  # type: ignore[arg-type]
        outputs: Any = [outputs_for(item.to_dict()) for item in first.output if item.type == "function_call"]
        goes_on: Any = {"model": "m", "input": outputs, "previous_response_id": first.id}
        with pytest.raises(openai.BadRequestError, match="must have the 'programmatic_tool_calling' tool"):
            await client.responses.create(**goes_on)
        second = await client.responses.create(**goes_on, tools=TOOLS)
    assert second.output_text == "compared\n11"


async def test_a_program_in_the_background_is_polled() -> None:
    """Its calls are there when the response has completed."""
    async with scripted(program(BOTH), result_of) as client:
        response = await client.responses.create(model="m", input="hi", tools=TOOLS, background=True)  # type: ignore[arg-type]
        while response.status in ("queued", "in_progress"):
            response = await client.responses.retrieve(response.id)
    assert [item.type for item in response.output] == ["program", "function_call", "function_call"]


# --- tampering ------------------------------------------------------------------------------------------

TAMPERED: dict[str, Callable[[list[Item]], Any]] = {
    "other arguments": lambda items: items[2].update(arguments='{"sku":"y"}', id=None),
    "another tool": lambda items: items[2].update(name="get_demand", id=None),
    "another call id": lambda items: [item.update(call_id="call_x") for item in (items[2], items[4])],
    "a call too many": lambda items: items.extend(
        [{**items[2], "id": None, "call_id": "call_x"}, {**items[4], "call_id": "call_x"}]
    ),
    "a call and its output left out": lambda items: [items.pop(4), items.pop(2)],
    "other code": lambda items: items[1].update(code="42"),
}


@pytest.mark.parametrize("kept", [32, 0])
@pytest.mark.parametrize("name", TAMPERED)
async def test_a_history_that_is_not_the_programs_is_refused(name: str, kept: int) -> None:
    """Whether or not the program lives: what it is told was asked for must be what it asked for."""
    async with scripted(program(BOTH), result_of, paused_programs=kept) as client:
        talk = Conversation(client)
        await talk.step()
        items = copy.deepcopy(talk.items)
        TAMPERED[name](items)
        items = [{k: v for k, v in item.items() if k != "id" or v is not None} for item in items]
        with pytest.raises(openai.BadRequestError):
            await talk.ask(items)
        assert await talk.run() == "compared\n11"


async def test_a_program_of_another_deployment_is_answered_401() -> None:
    """A fingerprint is worth something with its own key alone."""
    async with in_process(ScriptedModel(program(BOTH), result_of), key=b"another key") as client:
        talk = Conversation(client)
        talk.items = copy.deepcopy(START)
        with pytest.raises(openai.AuthenticationError) as caught:
            await talk.ask()
    assert caught.value.code == "invalid_program_fingerprint"


async def test_the_processes_of_programs_that_wait_too_long_are_ended() -> None:
    """A client that never comes back must not hold a process; one that does gets its program all the same."""
    script = ScriptedModel(program(BOTH), result_of)
    async with EmbeddedPeer(script, KEY, settings=Settings(idle_seconds=0.0)) as peer:
        from httpx2 import ASGITransport, AsyncClient

        async with (
            AsyncClient(transport=ASGITransport(app=create_app(peer))) as http,
            openai.AsyncOpenAI(base_url="http://peer/v1", api_key="none", http_client=http) as client,
        ):
            talk = Conversation(client)
            await talk.step()
            assert peer.paused_programs == 1
            await peer.expire()
            assert peer.paused_programs == 0
            assert await talk.run() == "compared\n11"


# --- with the runner, and a peer in a process of its own -------------------------------------------------


class Shop:
    """The two tools, which count their runs; `between` happens while the first of them runs."""

    def __init__(self, between: Callable[[], Any] = lambda: None) -> None:
        self.runs: list[str] = []
        self._between = between

    def tools(self) -> list[Any]:
        @ptc.tool(allowed_callers=["programmatic"])
        async def get_inventory(sku: str) -> dict[str, int]:
            self.runs.append("get_inventory")
            await asyncio.to_thread(self._between)
            return {"available_units": 73}

        @ptc.tool(allowed_callers=["programmatic"])
        async def get_demand(sku: str) -> dict[str, int]:
            self.runs.append("get_demand")
            return {"expected_units": 62}

        return [get_inventory, get_demand]


async def run_with(peer: Peer, tools: list[Any]) -> ptc.RunResult:
    async with openai.AsyncOpenAI(base_url=peer.base_url, api_key="any") as client:
        runner = ptc.Runner(client=client, model="m", tools=tools, programs="hosted", on_tool_error="raise")
        return await runner.run("Compare inventory with demand.")


async def test_the_run_ends_with_11_though_the_peer_was_killed_in_between() -> None:
    """Between request 1 and 2 the process of the peer is another one; neither tool runs twice."""
    with Peer(f"{SCRIPTS}:inventory") as peer:
        shop = Shop(between=peer.restart)
        result = await run_with(peer, shop.tools())
        assert result.output_text == "11 units are left."
        assert sorted(shop.runs) == ["get_demand", "get_inventory"]
        assert len(peer.requests()) == 1  # the second request alone: the first was before the restart


async def test_a_peer_that_is_killed_leaves_no_process_of_a_paused_program() -> None:
    """It cannot clean up; its fork server and the confined children have to notice by themselves."""
    with orphans() as left, Peer(f"{SCRIPTS}:inventory") as peer:
        async with openai.AsyncOpenAI(base_url=peer.base_url, api_key="any") as client:
            assert kinds(await Conversation(client).ask()) == ["program", "function_call", "function_call"]
        peer.kill()
    assert left == []


async def test_a_program_goes_on_over_a_restart_at_every_pause() -> None:
    """Three calls, one after the other, and the peer killed at each."""
    with Peer(f"{SCRIPTS}:one_by_one") as peer:
        shop = Shop(between=peer.restart)
        result = await run_with(peer, shop.tools())
    assert result.output_text == "219 units are left."
    assert shop.runs == ["get_inventory"] * 3


async def test_both_calls_of_the_program_are_in_flight_at_once() -> None:
    """Each waits for the other: one after the other they would wait for ever."""
    both = asyncio.Barrier(2)

    @ptc.tool(allowed_callers=["programmatic"])
    async def get_inventory(sku: str) -> dict[str, int]:
        await both.wait()
        return {"available_units": 73}

    @ptc.tool(allowed_callers=["programmatic"])
    async def get_demand(sku: str) -> dict[str, int]:
        await both.wait()
        return {"expected_units": 62}

    async with in_process(ScriptedModel(program(BOTH), result_of)) as client, asyncio.timeout(60):
        runner = ptc.Runner(client=client, model="m", tools=[get_inventory, get_demand], programs="hosted")
        result = await runner.run("Compare.")
    assert result.output_text == "compared\n11"


async def test_the_history_of_a_run_is_what_the_peer_sent() -> None:
    """Replayed equals received: the second request's input begins with the first response, item by item."""
    with Peer(f"{SCRIPTS}:inventory") as peer:
        result = await run_with(peer, Shop().tools())
        first, second = peer.requests()
    sent: Any = second["input"]
    assert sent == list(result.items[: len(sent)])
    assert kinds(sent) == ["message", "program", *["function_call"] * 2, *["function_call_output"] * 2]
    assert first["store"] is False
