"""What the peer refuses in a request apart from its history: fields, tool definitions, tool choices."""

from __future__ import annotations

from typing import Any

import pytest

from ptc.gateway.rejection import Rejected
from ptc.gateway.request import Request, read_request
from ptc.gateway.shapes import REQUEST, TOOLS

Item = dict[str, Any]
EMPTY: Item = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
PROGRAMS: Item = {"type": "programmatic_tool_calling"}


def function(name: str = "f", **more: Any) -> Item:
    return {"type": "function", "name": name, "parameters": EMPTY, "strict": True, **more}


def schema(**more: Any) -> Item:
    return {**EMPTY, **more}


def accepted(**more: Any) -> Request:
    return read_request({"model": "m", "input": "hi", **more})


def refused(**more: Any) -> Rejected:
    with pytest.raises(Rejected) as caught:
        accepted(**more)
    assert caught.value.status == 400
    return caught.value


DEEP = {
    "type": "object",
    "properties": {"a": {"type": "object"}},
    "required": ["a"],
    "additionalProperties": False,
}

BAD_TOOLS: dict[str, tuple[list[Any], str]] = {
    "not an object": (["f"], "Invalid type for 'tools[0]'"),
    "no type": ([{"name": "f"}], "Missing required parameter: 'tools[0].type'"),
    "an unknown type": ([{"type": "robot"}], "Invalid value: 'robot'"),
    "the hosted tool with a field": ([{**PROGRAMS, "name": "x"}], "Unknown parameter: 'tools[0].name'"),
    "the hosted tool twice": ([PROGRAMS, PROGRAMS], "Duplicate tool 'programmatic_tool_calling'"),
    "no name": ([{"type": "function", "parameters": EMPTY}], "'tools[0].name'"),
    "no parameters": ([{"type": "function", "name": "f"}], "'tools[0].parameters'"),
    "a name with a space": ([function("get it")], "does not match pattern"),
    "a name with a dot": ([function("records.search")], "does not match pattern"),
    "a name that is too long": ([function("f" * 65)], "does not match pattern"),
    "a name that ends in a line feed": ([function("f\n")], "does not match pattern"),
    "the reserved name tool_search": ([function("tool_search")], "reserved name"),
    "the reserved name of the hosted tool": ([function("programmatic_tool_calling")], "reserved name"),
    "the same name twice": ([function(), function()], "Duplicate tool name 'f'"),
    "a field nobody knows": ([function(callers=["direct"])], "Unknown parameter: 'tools[0].callers'"),
    "async as the SDK's models spell it": ([function(async_=True)], "Unknown parameter: 'tools[0].async_'"),
    "an unknown caller": ([function(allowed_callers=["program"])], "Invalid value: 'program'"),
    "no caller at all": ([function(allowed_callers=[])], "empty array"),
    "a program's tool without the hosted tool": (
        [function(allowed_callers=["programmatic"])],
        "needs the 'programmatic_tool_calling' tool",
    ),
    "allowed_callers on web_search": (
        [{"type": "web_search", "allowed_callers": ["direct"]}],
        "Unknown parameter: 'tools[0].allowed_callers'",
    ),
    "allowed_callers on tool_search": (
        [{"type": "tool_search", "allowed_callers": ["direct"]}],
        "Unknown parameter",
    ),
    "allowed_callers on a namespace": (
        [{"type": "namespace", "name": "n", "description": "", "tools": [function()], "allowed_callers": []}],
        "Unknown parameter",
    ),
    "a namespace without a description": (
        [{"type": "namespace", "name": "n", "tools": [function()]}],
        "Missing required parameter: 'tools[0].description'",
    ),
    "a namespace twice": (
        [{"type": "namespace", "name": "n", "description": "", "tools": [function()]}] * 2,
        "Duplicate namespace 'n'",
    ),
    "a namespace with nothing in it": (
        [{"type": "namespace", "name": "n", "description": "", "tools": []}],
        "empty array",
    ),
    "a hosted tool in a namespace": (
        [{"type": "namespace", "name": "n", "description": "", "tools": [PROGRAMS]}],
        "Invalid value",
    ),
    "the same name twice in a namespace": (
        [{"type": "namespace", "name": "n", "description": "", "tools": [function(), function()]}],
        "Duplicate tool name 'n.f'",
    ),
    "two tools of one name in a program": (
        [
            function("a_b", allowed_callers=["programmatic"]),
            {
                "type": "namespace",
                "name": "a",
                "description": "",
                "tools": [function("b", allowed_callers=["programmatic"])],
            },
            PROGRAMS,
        ],
        "have the name 'a_b' in a program",
    ),
    "a deferred tool without tool search": ([function(defer_loading=True)], "needs the 'tool_search' tool"),
    "parameters that are no schema": (
        [function(parameters={"type": "objekt"})],
        "Invalid schema for function",
    ),
    "parameters that are no object": ([function(parameters={"type": "string"})], 'type: "object"'),
    "an output schema that is no schema": ([function(output_schema={"type": 1})], "Invalid schema"),
    "strict, and more properties allowed": (
        [function(parameters={"type": "object", "properties": {}})],
        "'additionalProperties' is required to be supplied and to be false",
    ),
    "strict, and a property that is not required": (
        [function(parameters=schema(properties={"a": {"type": "string"}}))],
        "Missing 'a'",
    ),
    "strict, and an inner object that is open": (
        [function(parameters=DEEP)],
        "In context=('properties', 'a',)",
    ),
    "strict, and allOf": (
        [function(parameters=schema(properties={"a": {"allOf": []}}, required=["a"]))],
        "Invalid schema",
    ),
    "strict, and an array without items": (
        [function(parameters=schema(properties={"a": {"type": "array"}}, required=["a"]))],
        "array schema missing items",
    ),
}


@pytest.mark.parametrize("name", BAD_TOOLS)
def test_a_bad_tool_definition_is_refused(name: str) -> None:
    """What a client declares wrongly must not be found by a model that calls it."""
    tools, words = BAD_TOOLS[name]
    assert words in refused(tools=tools).message


def test_good_tool_definitions_are_taken() -> None:
    """One of each type, with the fields that the SDK has for it."""
    tools = [
        function("direct_only"),
        function("both", allowed_callers=["direct", "programmatic"], output_schema={"type": "object"}),
        function("loose", strict=False, parameters={"type": "object"}),
        function("none_strict", strict=None, parameters={}),
        function("later", defer_loading=True, **{"async": True}),
        {"type": "custom", "name": "script", "format": {"type": "text"}},
        {"type": "namespace", "name": "n", "description": "d", "tools": [{"type": "function", "name": "f"}]},
        PROGRAMS,
        {"type": "tool_search", "execution": "client", "parameters": EMPTY},
        {"type": "web_search"},
        {
            "type": "mcp",
            "server_label": "m",
            "server_url": "https://example.com",
            "allowed_callers": ["programmatic"],
        },
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "shell"},
        {"type": "apply_patch"},
    ]
    request = accepted(tools=tools)
    assert [tool.name for tool in request.tools.for_programs()] == ["both"]
    assert request.tools.programs


BAD_CHOICES: dict[str, Any] = {
    "an unknown word": "always",
    "an unknown type": {"type": "robot"},
    "a function that is not there": {"type": "function", "name": "g"},
    "a custom tool that is a function": {"type": "custom", "name": "f"},
    "a hosted tool that is not there": PROGRAMS,
    "a function without a name": {"type": "function"},
    "allowed tools of no mode": {"type": "allowed_tools", "tools": []},
    "allowed tools of an unknown mode": {"type": "allowed_tools", "mode": "none", "tools": []},
    "allowed tools with one that is not there": {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "g"}],
    },
    "our own form, which is not the wire's": {"mode": "required", "required_function_name": "f"},
}


@pytest.mark.parametrize("name", BAD_CHOICES)
def test_a_bad_tool_choice_is_refused(name: str) -> None:
    """A choice that cannot be met is an error, and never silently automatic."""
    assert refused(tools=[function()], tool_choice=BAD_CHOICES[name]).param is not None


def test_required_needs_a_tool() -> None:
    """Nothing can be required of no tools."""
    assert "must be specified with 'tools'" in refused(tool_choice="required").message


@pytest.mark.parametrize(
    "choice",
    [
        "auto",
        "none",
        "required",
        {"type": "function", "name": "f"},
        PROGRAMS,
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}, PROGRAMS]},
    ],
)
def test_a_good_tool_choice_is_taken(choice: Any) -> None:
    """Every form of the wire."""
    assert accepted(tools=[function(), PROGRAMS], tool_choice=choice).model == "m"


BAD_FIELDS: dict[str, tuple[Item, str]] = {
    "a field nobody knows": ({"max_requests": 1}, "Unknown parameter: 'max_requests'"),
    "a model that is no text": ({"model": 1}, "Invalid type for 'model'"),
    "an empty input": ({"input": []}, "empty array"),
    "an input that is an object": ({"input": {}}, "Invalid type for 'input'"),
    "tools that are an object": ({"tools": {}}, "Invalid type for 'tools'"),
    "a temperature that is too high": ({"temperature": 3}, "'temperature'"),
    "a temperature that is true": ({"temperature": True}, "Invalid type for 'temperature'"),
    "an include that is unknown": ({"include": ["reasoning"]}, "Invalid value: 'reasoning'"),
    "metadata that is not text": ({"metadata": {"a": 1}}, "metadata"),
    "too few output tokens": ({"max_output_tokens": 1}, "integer below minimum value"),
    "background without a store": ({"background": True, "store": False}, "requires 'store' to be true"),
    "two ways to go on": ({"previous_response_id": "a", "conversation": "b"}, "Mutually exclusive"),
    "an unknown truncation": ({"truncation": "some"}, "Invalid value: 'some'"),
}


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_a_bad_field_is_refused(name: str) -> None:
    """A field that is ignored in silence is a bug that nobody finds."""
    fields, words = BAD_FIELDS[name]
    assert words in refused(**fields).message


def test_a_model_and_an_input_are_needed() -> None:
    """The two fields that every request has, unless it goes on from another."""
    for body, missing in (({"input": "hi"}, "model"), ({"model": "m"}, "input")):
        with pytest.raises(Rejected, match=f"Missing required parameter: '{missing}'"):
            read_request(body)
    assert read_request({"model": "m", "previous_response_id": "resp_1"}).items == ()


def test_a_deployment_without_programs_says_so() -> None:
    """The error by which a client learns to try another way."""
    with pytest.raises(Rejected, match="'programmatic_tool_calling' is not supported with m"):
        read_request({"model": "m", "input": "hi", "tools": [PROGRAMS]}, programs_supported=False)


def test_the_tables_follow_the_installed_sdk() -> None:
    """The same request fields and tool types and fields as the SDK sends."""
    import typing

    from openai.types.responses import response_create_params, tool_param

    sdk = set(typing.get_type_hints(response_create_params.ResponseCreateParamsBase))
    assert set(REQUEST) == sdk | {"stream"}
    for member in typing.get_args(tool_param.ToolParam):
        hints = typing.get_type_hints(member, include_extras=True)
        for kind in typing.get_args(typing.get_args(hints["type"])[0]):
            assert set(TOOLS[kind]) == set(hints), kind
