"""Client-side tool search in the loop, against the strict peer: what is sent, found, loaded, bounded and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest

import ptc
from ptc.testing import Peer, call, capture_audit, commentary, program, reason, say, search
from ptc_tools.search import Hit
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call
from tests.ptc.search_support import (
    RAN,
    RECORDS,
    SECRET_WORDS,
    TOOLS,
    found_in,
    gadget,
    of_type,
    outputs,
    peer_of,
    weather,
)

SCRIPTS = Path(__file__).with_name("search_scripts.py")
FIND_CUSTOMER = search("look up a customer record")
CALL_LOOKUP = call("lookup", customer="a", namespace="records")


async def test_the_first_request_has_one_query_tool_and_no_deferred_name_or_description() -> None:
    """Not in the tools, not in the instructions, not anywhere."""
    async with peer_of(say("done")) as peer:
        await peer.runner(instructions="Help.").run("go")
        (body,) = peer.bodies
    assert [tool["type"] for tool in body["tools"]] == ["function", "tool_search"]
    assert body["tools"][1]["execution"] == "client"
    assert list(body["tools"][1]["parameters"]["properties"]) == ["query"]
    text = json.dumps(body)
    assert [word for word in SECRET_WORDS if word in text] == []


@pytest.mark.parametrize("programs", ["hosted", "local"])
async def test_no_deferred_name_is_told_where_programs_run_either(programs: Any) -> None:
    """The code tool describes what programs have, and what waits is not there yet."""
    async with peer_of(say("done")) as peer:
        await peer.runner(programs=programs).run("go")
        text = json.dumps(peer.bodies[0])
    assert [word for word in SECRET_WORDS if word in text] == []


async def test_a_search_gives_definitions_in_their_namespaces_and_echoes_the_call_id() -> None:
    """And what was found is called by its namespace in the next round."""
    async with peer_of(FIND_CUSTOMER, CALL_LOOKUP, say("done")) as peer:
        result = await peer.runner().run("go")
        first, second, third = peer.bodies
    (asked,), (output,) = of_type(second, "tool_search_call"), of_type(second, "tool_search_output")
    assert (output["call_id"], output["execution"], output["status"]) == (
        asked["call_id"],
        "client",
        "completed",
    )
    (space,) = output["tools"]
    assert (space["type"], space["name"], space["description"]) == (
        "namespace",
        "records",
        "What is known of customers.",
    )
    assert found_in(output)[0] == "records.lookup"
    assert all(tool["defer_loading"] is True for tool in space["tools"])
    (called,) = of_type(third, "function_call")
    assert called["namespace"] == "records"
    assert outputs(third) == ["record of a"]
    assert first["tools"] == second["tools"] == third["tools"]
    assert (result.output_text, RAN) == ("done", ["lookup"])


async def test_a_tool_without_a_namespace_is_found_and_called_too() -> None:
    """The service calls it with its own name as namespace, and gets that back."""
    async with peer_of(search("gadget"), call("gadget", size=3), say("done")) as peer:
        result = await peer.runner().run("go")
        (called,) = of_type(peer.bodies[2], "function_call")
    assert called["namespace"] == "gadget"
    assert [report.call.qualified_name for report in result.calls] == ["tool_search_call", "gadget"]
    assert RAN == ["gadget"]


async def test_nothing_that_matches_is_an_empty_list_and_the_search_may_go_on() -> None:
    """No error, no guess: the model tries other words."""
    async with peer_of(search("zzyzx"), FIND_CUSTOMER, CALL_LOOKUP, say("done")) as peer:
        result = await peer.runner().run("go")
        empty, found = of_type(peer.bodies[2], "tool_search_output")
    assert empty["tools"] == []
    assert found_in(found)[0] == "records.lookup"
    assert (result.output_text, result.requests) == ("done", 4)


@pytest.mark.parametrize("arguments", [{}, {"query": 7}, {"query": ""}, {"query": "?!"}, {"other": "x"}])
async def test_a_search_without_a_question_finds_nothing(arguments: Any) -> None:
    """The output has no way to say what was wrong with it."""
    async with peer_of(search(**arguments), say("done")) as peer:
        result = await peer.runner().run("go")
        (output,) = of_type(peer.bodies[1], "tool_search_output")
    assert (output["tools"], result.output_text) == ([], "done")


async def test_one_search_gives_five_tools_unless_the_runner_says_another_number() -> None:
    """The best ones."""
    many = [ptc.define_tool({"name": f"part_{n}", "description": "A part."}, lambda: 1) for n in range(9)]
    tools = ptc.use(ptc.Toolset("parts", many)).defer()
    for limit, options in ((5, {}), (2, {"search_limit": 2})):
        async with peer_of(search("part"), say("done")) as peer:
            await peer.runner(tools, **options).run("go")
            (output,) = of_type(peer.bodies[1], "tool_search_output")
        assert found_in(output) == [f"parts.part_{n}" for n in range(limit)]


async def test_exactly_the_deferred_tools_of_a_use_wait() -> None:
    """The others are there from the start, in the same namespace, and a search does not give them again."""
    tools = ptc.use(RECORDS).defer("orders", "purge")
    async with peer_of(search("open orders"), say("done")) as peer:
        await peer.runner(tools).run("go")
        first, second = peer.bodies
    assert [tool["name"] for tool in first["tools"][0]["tools"]] == ["lookup"]
    assert found_in(of_type(second, "tool_search_output")[0]) == ["records.orders"]


async def test_a_tool_is_found_by_what_its_toolset_is_described_by() -> None:
    """Nothing that `purge` says of itself has to do with customers; its toolset's description does."""
    async with peer_of(search("customers"), say("done")) as peer:
        await peer.runner(ptc.use(RECORDS).defer("purge")).run("go")
        _, second = peer.bodies
    assert found_in(of_type(second, "tool_search_output")[0]) == ["records.purge"]


# --- budgets -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [None, 0, -1, 15, True, 2.5, "many"])
def test_search_needs_an_output_token_budget_that_the_service_takes(tokens: Any) -> None:
    """Required where search is on, and never without meaning."""
    for mode in ("lexical", "server"):
        with pytest.raises(ptc.ConfigurationError, match="max_output_tokens"):
            ptc.Runner(client=FakeEndpoint(), model="m", tools=TOOLS, search=mode, max_output_tokens=tokens)


@pytest.mark.parametrize("limit", [0, -1, 65, True, "5", None])
def test_a_search_limit_is_a_small_positive_number(limit: Any) -> None:
    """Found at construction."""
    with pytest.raises(ptc.ConfigurationError, match="search_limit"):
        ptc.Runner(
            client=FakeEndpoint(),
            model="m",
            tools=TOOLS,
            search="lexical",
            search_limit=limit,
            max_output_tokens=100,
        )


async def test_rounds_of_search_count_as_requests() -> None:
    """A model that only searches is stopped by the limit of requests."""
    async with peer_of(then=search("customer")) as peer:
        with pytest.raises(ptc.RequestLimitExceeded):
            await peer.runner(max_requests=4).run("go")
        assert len(peer.bodies) == 4


async def test_rounds_of_search_share_the_output_tokens_of_one_invocation() -> None:
    """Each round may give what the rounds before it have left; a call begins the next invocation."""
    async with peer_of(search("a"), FIND_CUSTOMER, CALL_LOOKUP, search("b"), say("done")) as peer:
        result = await peer.runner(max_output_tokens=1_000).run("go")
        allowed = [body["max_output_tokens"] for body in peer.bodies]
        spent = await written_by(peer, result)
    assert allowed == [1_000, 1_000 - spent[0], 1_000 - spent[0] - spent[1], 1_000, 1_000 - spent[3]]


async def written_by(peer: Any, result: ptc.RunResult[object]) -> list[int]:
    """Output tokens of each response, as the peer counts them: a quarter of the letters of its items."""
    del peer
    outputs = {"function_call_output", "tool_search_output"}
    return [
        -(-len(json.dumps([item], separators=(",", ":"))) // 4)
        for item in result.items[1:]
        if item["type"] not in outputs
    ]


async def test_a_search_that_spends_the_invocations_tokens_ends_the_run() -> None:
    """With an error that says so, not with a request that the service would refuse."""
    async with peer_of(then=search("customer")) as peer:
        with pytest.raises(ptc.LimitExceeded, match="on searching for tools") as caught:
            await peer.runner(max_output_tokens=200).run("go")
        assert caught.value.limit == "max_output_tokens"
        assert 2 <= len(peer.bodies) <= 4


async def test_after_the_limit_the_model_may_answer_with_what_it_has() -> None:
    """`final_answer` holds for this limit as for the others, and its request has the whole budget."""
    turns = [search("customer")] * 3

    def ending(request: Any) -> Any:
        return say("enough") if request.tool_choice == "none" else search("customer")

    async with peer_of(*turns, then=ending) as peer:
        limits = ptc.Limits(final_answer=True)
        result = await peer.runner(max_output_tokens=200, limits=limits).run("go")
        last = peer.bodies[-1]
    assert (result.output_text, result.limit) == ("enough", "max_output_tokens")
    assert (last["tool_choice"], last["max_output_tokens"]) == ("none", 200)


async def test_a_service_that_counts_nothing_is_counted_by_size() -> None:
    """The budget holds there as well."""
    asked = {
        "type": "tool_search_call",
        "id": "ts",
        "call_id": "c1",
        "execution": "client",
        "arguments": {"query": "x" * 400},
        "status": "completed",
    }
    endpoint = FakeEndpoint({"id": "r", "status": "completed", "output": [asked], "usage": None}, [answer()])
    runner = ptc.Runner(client=endpoint, model="m", tools=TOOLS, search="lexical", max_output_tokens=500)
    await runner.run("go")
    assert endpoint.bodies[1]["max_output_tokens"] < 400


async def test_output_tokens_are_bounded_without_search_as_well() -> None:
    """The argument means the same there, for each answer."""
    async with peer_of(say("done")) as peer:
        await peer.runner(weather, search=None, max_output_tokens=77).run("go")
        assert peer.bodies[0]["max_output_tokens"] == 77


def test_an_output_token_budget_is_given_once() -> None:
    """Two would be one too many to know which holds."""
    with pytest.raises(ptc.ConfigurationError, match="given twice"):
        ptc.Runner(client=FakeEndpoint(), model="m", max_output_tokens=50, request={"max_output_tokens": 60})


# --- rounds ------------------------------------------------------------------------------------------------


async def test_a_mixed_round_returns_at_once() -> None:
    """A call beside a search runs now, and both outputs go in the next request, in their order."""
    turn = [reason("both"), call("weather", city="Rome"), FIND_CUSTOMER]
    async with peer_of(turn, CALL_LOOKUP, say("done")) as peer:
        result = await peer.runner().run("go")
        second = peer.bodies[1]
    kinds = [item["type"] for item in second["input"][1:]]
    assert kinds == [
        "reasoning",
        "function_call",
        "tool_search_call",
        "function_call_output",
        "tool_search_output",
    ]
    assert (second["max_output_tokens"], RAN, result.requests) == (4_000, ["weather", "lookup"], 3)


async def test_a_call_beside_its_own_search_comes_too_early() -> None:
    """It was not loaded when the model made it; the search is answered all the same."""
    async with peer_of([FIND_CUSTOMER, CALL_LOOKUP], CALL_LOOKUP, say("done")) as peer:
        await peer.runner().run("go")
        refused, done = outputs(peer.bodies[2])
    assert "search first" in refused["error"]["message"]
    assert (done, RAN) == ("record of a", ["lookup"])


async def test_a_word_on_the_way_does_not_end_the_rounds() -> None:
    """Commentary is no answer."""
    async with peer_of([commentary("Let me look."), search("a")], say("done")) as peer:
        await peer.runner(max_output_tokens=900).run("go")
        assert peer.bodies[1]["max_output_tokens"] < 900


async def test_a_call_of_a_tool_that_was_not_loaded_is_refused_and_says_what_to_do() -> None:
    """Also where its name was guessed right; the run goes on."""
    async with peer_of(CALL_LOOKUP, FIND_CUSTOMER, CALL_LOOKUP, say("done")) as peer:
        result = await peer.runner().run("go")
        early, _ = outputs(peer.bodies[3])
    assert "records.lookup is not loaded yet: find it with tool search first" in early["error"]["message"]
    assert [report.outcome.status for report in result.calls] == ["denied", "success", "success"]
    assert RAN == ["lookup"]


async def test_a_lost_namespace_is_refused_by_the_service() -> None:
    """So a history that loses it cannot go on, and ours does not lose it."""

    def loses(items: Any) -> Any:
        return [{key: value for key, value in item.items() if key != "namespace"} for item in items]

    turns = [FIND_CUSTOMER, CALL_LOOKUP, say("done")]
    async with peer_of(*turns) as peer:
        with pytest.raises(ptc.RequestRejected, match="Missing namespace for function_call 'lookup'"):
            await peer.runner(compact=loses).run("go")
    async with peer_of(*turns) as peer:
        assert (await peer.runner(compact=list).run("go")).output_text == "done"


@pytest.mark.parametrize("history", ["stateless", "previous_response", "conversation"])
async def test_search_works_wherever_the_history_is_kept(history: Any) -> None:
    """What a search loaded stays loaded where the service keeps the items."""
    async with peer_of(FIND_CUSTOMER, CALL_LOOKUP, CALL_LOOKUP, say("done")) as peer:
        run: dict[str, Any] = {}
        if history == "conversation":
            run["conversation_id"] = (await peer.client.conversations.create()).id
        result = await peer.runner(history=history).run("go", **run)
    assert (result.output_text, RAN) == ("done", ["lookup", "lookup"])


@pytest.mark.parametrize("driver", ["async", "sync", "stream"])
def test_every_driver_searches_over_http_with_the_real_client(driver: str) -> None:
    """The peer in a process of its own, on a socket."""
    import asyncio

    with Peer(f"{SCRIPTS}:model") as peer:
        options: dict[str, Any] = {
            "model": "m",
            "tools": TOOLS,
            "search": "lexical",
            "max_output_tokens": 4_000,
        }
        RAN.clear()
        if driver == "sync":
            with openai.OpenAI(base_url=peer.base_url, api_key="any") as client:
                result: ptc.RunResult[Any] = ptc.Runner(client=client, **options).run_sync("go")
        else:

            async def run() -> Any:
                async with openai.AsyncOpenAI(base_url=peer.base_url, api_key="any") as client:
                    runner = ptc.Runner(client=client, **options)
                    return await (runner.run("go") if driver == "async" else runner.stream("go").finish())

            result = asyncio.run(run())
        assert result.output_text == "record of a"
        assert RAN == ["lookup"]
        assert [word for word in SECRET_WORDS if word in json.dumps(peer.requests()[0])] == []


# --- choices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "choice",
    [
        {"mode": "required", "required_function_name": "records.lookup"},
        {"mode": "required", "required_function_name": "lookup"},
        {"type": "function", "name": "gadget"},
    ],
)
async def test_a_forced_choice_makes_that_tool_eager(choice: Any) -> None:
    """It is in the first request, called without a search, and stays for the rest of the run."""
    name = choice.get("name", "lookup")
    turn = call("gadget", size=1) if name == "gadget" else CALL_LOOKUP
    async with peer_of(turn, turn, say("done")) as peer:
        await peer.runner(tool_choice=choice).run("go")
        first, second, _ = peer.bodies
    text = json.dumps(first)
    assert f'"{name}"' in text
    assert "purge" not in text
    assert first["tool_choice"]["name"] == name
    assert second["tools"] == first["tools"]
    assert [name, name] == RAN


async def test_while_another_tool_is_forced_a_search_gives_nothing() -> None:
    """The choice holds for the search as for any call."""
    choice: Any = {"mode": "required", "required_function_name": "gadget"}
    async with peer_of(search("customer"), call("gadget", size=1), say("done")) as peer:
        await peer.runner(tool_choice=choice).run("go")
        (output,) = of_type(peer.bodies[1], "tool_search_output")
    assert output["tools"] == []


async def test_a_demand_for_some_tool_is_not_met_by_searching() -> None:
    """It stays while the model only searches, and is over with the first call."""
    async with peer_of(FIND_CUSTOMER, CALL_LOOKUP, say("done")) as peer:
        await peer.runner(tool_choice="required").run("go")
        assert [body.get("tool_choice") for body in peer.bodies] == ["required", "required", None]


async def test_the_only_tools_that_are_allowed_are_sent_from_the_start() -> None:
    """A list of names is no question."""
    choice: Any = {"allowed_tools": ["records.orders", "weather"]}
    async with peer_of(
        search("customer"), call("orders", customer="a", namespace="records"), say("done")
    ) as peer:
        await peer.runner(tool_choice=choice).run("go")
        first, second, _ = peer.bodies
    assert [tool["name"] for tool in first["tool_choice"]["tools"]] == ["orders", "weather"]
    assert of_type(second, "tool_search_output")[0]["tools"] == []
    assert RAN == ["orders"]


# --- who may ------------------------------------------------------------------------------------------------


class OnlyLookup:
    """Shows and grants one tool of the records."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def permits(self, principal: str | None, tool: ptc.Contract, labels: Any) -> bool:
        return tool.namespace is None or tool.name == "lookup"

    async def authorize(self, principal: Any, tool: ptc.Contract, arguments: Any, caller: Any) -> Any:
        self.asked.append(tool.qualified_name)
        return None if tool.name == "lookup" else ptc.Denied("not_authorized", "no")


async def test_a_search_finds_permitted_tools_alone_and_calls_are_authorised_as_ever() -> None:
    """Deferral changes loading only. The policy is not asked whether the model may search."""
    policy = OnlyLookup()
    turns = [search("customer orders archived document"), CALL_LOOKUP, call("orders", namespace="records")]
    async with peer_of(*turns, search("gadget"), call("gadget", size=1), say("done")) as peer:
        await peer.runner(policy=policy).run("go")
        first, second = of_type(peer.bodies[-1], "tool_search_output")
        found, unknown, denied = outputs(peer.bodies[-1])
    assert (found_in(first), found_in(second)) == (["records.lookup"], ["gadget"])
    assert found == "record of a"
    assert unknown["error"]["type"] == "unknown_tool"
    assert denied["error"]["type"] == "not_authorized"
    assert (policy.asked, RAN) == (["records.lookup", "gadget"], ["lookup"])


async def test_a_search_is_recorded_like_any_call() -> None:
    """With its question, and with what it gave."""
    async with peer_of(FIND_CUSTOMER, say("done")) as peer:
        with capture_audit() as capture:
            await peer.runner(audit=capture).run("go")
    assert capture.names("finished") == ["tool_search_call"]


# --- programs -----------------------------------------------------------------------------------------------


async def test_a_hosted_program_calls_what_was_loaded_before_it_started() -> None:
    """The definition that a search gives says that programs may call the tool."""
    code = "await records_lookup(customer='p')"
    async with peer_of(FIND_CUSTOMER, program(code), lambda request: say(request.program_result)) as peer:
        result = await peer.runner(programs="hosted").run("go")
    assert (json.loads(result.output_text), RAN) == ({"result": "record of p"}, ["lookup"])


async def test_a_hosted_program_has_no_tool_that_was_not_loaded() -> None:
    """A running program cannot search."""
    code = "await records_lookup(customer='p')"
    async with peer_of(program(code), lambda request: say(request.program_result)) as peer:
        result = await peer.runner(programs="hosted").run("go")
    assert "records_lookup" in result.output_text
    assert RAN == []


async def test_what_is_loaded_while_a_program_runs_is_for_later_programs() -> None:
    """Rule 18: the call of an open program to it is refused, whoever says that it made it."""
    program_item = {"type": "program", "id": "pg", "call_id": "cp", "code": "…", "fingerprint": "f"}
    owned = function_call(
        "lookup", "c1", {"customer": "p"}, namespace="records", caller={"type": "program", "caller_id": "cp"}
    )
    asked = {
        "type": "tool_search_call",
        "id": "ts",
        "call_id": "cs",
        "execution": "client",
        "arguments": {"query": "customer record"},
        "status": "completed",
    }
    output = {"type": "program_output", "id": "po", "call_id": "cp", "result": "", "status": "completed"}
    endpoint = FakeEndpoint([program_item, asked], [owned], [output, answer()])
    RAN.clear()
    runner = ptc.Runner(
        client=endpoint,
        model="m",
        tools=TOOLS,
        programs="hosted",
        search="lexical",
        max_output_tokens=999,
        retry=AT_ONCE,
    )
    await runner.run("go")
    (said,) = [item for item in endpoint.inputs[2] if item["type"] == "function_call_output"]
    assert "after this program had started" in json.loads(said["output"])["error"]["message"]
    assert RAN == []


# --- what does not go together ------------------------------------------------------------------------------


async def test_a_deployment_without_tool_search_is_no_reason_to_send_all() -> None:
    """One request, one error that says what there is instead."""
    async with peer_of(say("done"), tool_search=False) as peer:
        with pytest.raises(ptc.ToolSearchUnsupported, match="not sent instead") as caught:
            await peer.runner().run("go")
        assert len(peer.bodies) == 1
    assert caught.value.code == "tool_search_unsupported"
    assert caught.value.safe_to_retry


async def test_a_search_that_is_demanded_is_a_choice_that_the_service_refuses() -> None:
    """The service knows no such choice, and says nothing of whether it has tool search."""
    async with peer_of(say("done")) as peer:
        with pytest.raises(ptc.RequestRejected) as caught:
            await peer.runner(tool_choice={"type": "tool_search"}).run("go")
    assert caught.value.code == "request_rejected"


def test_a_client_of_another_api_has_no_tool_search() -> None:
    """Refused where the runner is made."""

    class Messages:
        def post(self) -> None: ...

        def with_options(self) -> None: ...

    with pytest.raises(ptc.ToolSearchUnsupported, match="Messages"):
        ptc.Runner(client=Messages(), model="m", tools=TOOLS, search="lexical", max_output_tokens=100)


def test_deferred_tools_without_a_search_are_refused() -> None:
    """Nothing could ever load them."""
    with pytest.raises(ptc.ConfigurationError, match='set search="lexical"'):
        ptc.Runner(client=FakeEndpoint(), model="m", tools=[ptc.use(RECORDS).defer("purge")])


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ({"type": "tool_search"}, "use one of them"),
        (
            ptc.client_tool({"type": "tool_search", "execution": "client"}, lambda request: []),
            "use one of them",
        ),
        (
            {"type": "mcp", "server_label": "m", "server_url": "https://m", "defer_loading": True},
            "no mcp tool",
        ),
        (
            ptc.client_tool({"type": "custom", "name": "grep", "defer_loading": True}, lambda input: ""),
            "no custom tool",
        ),
    ],
)
def test_a_search_of_ones_own_and_what_a_search_cannot_find_are_refused(tool: Any, words: str) -> None:
    """At construction, with the way out."""
    with pytest.raises(ptc.ConfigurationError, match=words):
        ptc.Runner(
            client=FakeEndpoint(), model="m", tools=[tool, gadget], search="lexical", max_output_tokens=100
        )


@pytest.mark.parametrize("search_with", ["fuzzy", 5, object()])
def test_an_unknown_search_is_refused(search_with: Any) -> None:
    """It names what there is."""
    with pytest.raises(ptc.ConfigurationError, match=r"lexical.*hybrid.*server"):
        ptc.Runner(client=FakeEndpoint(), model="m", tools=TOOLS, search=search_with, max_output_tokens=100)


async def test_an_index_of_ones_own_searches_in_the_same_way() -> None:
    """The seam is a protocol: documents in, a view that searches out."""

    class View:
        def search(self, query: str, limit: int = 5) -> list[Any]:
            return [type("Hit", (), {"key": "records.purge"})()]

    class Index:
        def __init__(self, keys: frozenset[str] = frozenset()) -> None:
            self.keys = keys

        def with_changes(self, add: Any = (), remove: Any = ()) -> Index:
            return Index((self.keys - set(remove)) | {document.key for document in add})

        def view(self, keys: Any = None) -> View:
            assert set(keys) <= self.keys
            return View()

    async with peer_of(search("anything"), say("done")) as peer:
        await peer.runner(search=Index()).run("go")
        (output,) = of_type(peer.bodies[1], "tool_search_output")
    assert found_in(output) == ["records.purge"]


async def test_an_index_that_cannot_search_fails_the_run() -> None:
    """An empty list would say to the model that there is nothing."""

    class Broken:
        def with_changes(self, add: Any = (), remove: Any = ()) -> Broken:
            return self

        def view(self, keys: Any = None) -> Any:
            raise OSError("the encoder is gone")

    async with peer_of(FIND_CUSTOMER, say("done")) as peer:
        with pytest.raises(ptc.RunTerminated, match="search for tools failed: OSError: the encoder is gone"):
            await peer.runner(search=Broken()).run("go")


class Fixed:
    """An index of somebody's own that always gives the same."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def with_changes(self, add: Any = (), remove: Any = ()) -> Fixed:
        return self

    def view(self, keys: Any = None) -> Fixed:
        return self

    def search(self, query: str, limit: int = 5) -> list[Hit]:
        return [Hit(name, 1.0) for name in self.names]


async def test_what_an_index_gives_twice_or_beyond_the_limit_is_left_out() -> None:
    """A definition twice would be refused, and the model would take it for nothing found."""
    index = Fixed("records.lookup", "records.lookup", "records.orders", "records.purge")
    async with peer_of(FIND_CUSTOMER, say("done")) as peer:
        await peer.runner(search=index, search_limit=2).run("go")
        (output,) = of_type(peer.bodies[1], "tool_search_output")
    assert found_in(output) == ["records.lookup", "records.orders"]


@pytest.mark.parametrize("name", ["records.nothing", "weather", "lookup"])
async def test_an_index_that_finds_what_it_was_not_given_fails_the_run(name: str) -> None:
    """It is another's code: what a step does not defer, or its policy hides, comes in by no index."""
    async with peer_of(FIND_CUSTOMER, say("done")) as peer:
        with pytest.raises(ptc.RunTerminated, match=f"the index found '{name}'"):
            await peer.runner(search=Fixed(name)).run("go")


async def test_a_hybrid_index_searches_by_meaning_in_the_loop() -> None:
    """With an encoder of one's own; nothing is downloaded and nothing else changes."""
    pytest.importorskip("numpy", reason="the extra search-hybrid is not installed")

    def encode(texts: list[str]) -> list[list[float]]:
        about_money = ("bill", "orders", "invoice")
        return [[1.0, 0.1] if any(word in text for word in about_money) else [0.0, 1.0] for text in texts]

    index = ptc.HybridIndex(encoder=ptc.FunctionEncoder("two topics", 2, encode))
    async with peer_of(search("unpaid bill"), say("done")) as peer:
        await peer.runner(search=index, search_limit=1).run("go")
        (output,) = of_type(peer.bodies[1], "tool_search_output")
    assert found_in(output) == ["records.orders"]
