"""Point 8: names that the API or a program cannot have are refused at registration, and nothing becomes a
tool by being imported."""

import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypedDict

from ptc_tools import (
    Catalog,
    DuplicateTool,
    Extension,
    InvalidName,
    Manifest,
    RegistrationError,
    Tool,
    define_tool,
    offers,
    tool,
)
from ptc_tools.call import JsonObject
from ptc_tools.names import PATTERN, RESERVED, program_name


async def look(n: int) -> int:
    """Look."""
    return n


def named(name: str, namespace: str | None = None) -> Tool[..., object]:
    return tool(look, name=name, namespace=namespace, allowed_callers=["direct", "programmatic"])


class TestNames:
    @pytest.mark.parametrize("name", ["a", "A-b_9", "x" * 64, "9lives", "_a"])
    def test_what_the_api_takes_is_taken(self, name: str) -> None:
        """1 to 64 letters, digits, underscores and hyphens."""
        assert named(name).contract.name == name

    @pytest.mark.parametrize(
        "name", ["", "x" * 65, "a b", "a.b", "é", "a\n", "a/b", "<script>", "a\u200b", None, 3]
    )
    def test_what_the_api_refuses_is_refused_and_named(self, name: object) -> None:
        """Found before the first request, not by its 400."""
        with pytest.raises(InvalidName):
            define_tool({"name": name, "parameters": {"type": "object"}}, look)  # type: ignore[dict-item]
        if isinstance(name, str):
            with pytest.raises(InvalidName):
                named("fine", namespace=name)

    @pytest.mark.parametrize("name", sorted(RESERVED))
    def test_reserved_names_are_refused(self, name: str) -> None:
        """They mean something of their own to the API, to the model or to programs."""
        with pytest.raises(InvalidName, match="reserved"):
            named(name)
        with pytest.raises(InvalidName, match="reserved"):
            named("fine", namespace=name)

    def test_every_tool_type_of_the_sdk_is_reserved(self) -> None:
        """The list is taken from the SDK; a new kind of tool there fails here."""
        import typing

        from openai.types.responses import tool_choice_types_param, tool_param

        found: set[str] = set()
        for member in typing.get_args(tool_param.ToolParam):
            hints = typing.get_type_hints(member, include_extras=False)
            found.update(typing.get_args(_bare(hints["type"])))
        found.update(
            typing.get_args(
                _bare(typing.get_type_hints(tool_choice_types_param.ToolChoiceTypesParam)["type"])
            )
        )
        assert len(found) > 10
        dated = {name for name in found if name[-1].isdigit()}
        assert found - dated <= RESERVED

    def test_inside_a_namespace_only_what_dispatches_by_name_alone_is_reserved(self) -> None:
        """`terminal.shell` is a qualified name; `terminal.tool_search` was refused by the API in the wild."""
        assert named("shell", namespace="terminal").contract.qualified_name == "terminal.shell"
        for name in (
            "tool_search",
            "programmatic_tool_calling",
            "multi_tool_use",
            "add_tools",
            "remove_tools",
        ):
            with pytest.raises(InvalidName):
                named(name, namespace="terminal")

    def test_the_cores_own_prefix_is_reserved(self) -> None:
        """An extension must not speak as the core."""
        with pytest.raises(InvalidName, match="ptc"):
            named("look", namespace="ptc")

    @given(st.text(max_size=70))
    def test_no_text_gets_past_the_pattern(self, text: str) -> None:
        """What is registered can be sent."""
        try:
            entry = named(text)
        except InvalidName:
            return
        assert PATTERN.fullmatch(entry.contract.name)


def _bare(hint: object) -> object:
    import typing

    return typing.get_args(hint)[0] if "Required" in str(typing.get_origin(hint)) else hint


class TestCollisions:
    def test_two_tools_of_one_name_are_refused_with_the_name(self) -> None:
        """Dispatch must never choose."""
        with pytest.raises(DuplicateTool, match="look"):
            Catalog([named("look"), named("look")])
        with pytest.raises(DuplicateTool, match=r"records\.look"):
            Catalog([named("look", "records"), named("look", "records")])
        assert len(Catalog([named("look"), named("look", "records")])) == 2

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (("search", "records"), ("records_search", None)),
            (("a-b", None), ("a_b", None)),
            (("b", "a"), ("a-b", None)),
            (("1a", None), ("tool_1a", None)),
        ],
    )
    def test_two_names_that_are_one_in_a_program_are_refused(
        self, one: tuple[str, str | None], other: tuple[str, str | None]
    ) -> None:
        """A program would call one and mean the other."""
        with pytest.raises(DuplicateTool, match="program"):
            Catalog([named(*one), named(*other)])

    @pytest.mark.parametrize(
        "name",
        [
            *("class", "await", "None", "match", "type", "_", "print", "len", "open", "asyncio", "exit"),
            *("Exception", "ToolError", "__import__", "_x_", "--"),
        ],
    )
    def test_a_name_that_means_something_else_in_a_program_is_refused(self, name: str) -> None:
        """A program could not call `class`, and could not print any more beside a tool `print`."""
        with pytest.raises(InvalidName, match=f"tool '{name}' cannot be called by programs.* rename it"):
            named(name)
        definition: JsonObject = {"type": "function", "name": name, "description": "", "parameters": None}
        with pytest.raises(InvalidName, match="cannot be called by programs"):
            define_tool({**definition, "allowed_callers": ["programmatic"]}, look)
        assert named(name, "records").contract.name == name
        assert define_tool(definition, look).contract.name == name

    def test_a_raw_tool_that_nobody_may_call_is_refused(self) -> None:
        """The API answers 400 to an empty list; null stands for the default."""
        definition: JsonObject = {"type": "function", "name": "a", "description": "", "parameters": None}
        with pytest.raises(RegistrationError, match="allowed_callers is empty"):
            define_tool({**definition, "allowed_callers": []}, look)
        assert define_tool({**definition, "allowed_callers": None}, look).contract.allowed_callers == (
            "direct",
        )

    def test_tools_that_no_program_may_call_do_not_collide_in_one(self) -> None:
        """They have no name there."""
        one, other = tool(look, name="a-b"), tool(look, name="a_b")
        assert len(Catalog([one, other])) == 2
        assert dict(Catalog([one, other]).program_names) == {}

    @given(
        st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True),
        st.none() | st.from_regex(r"[a-z]{1,8}", fullmatch=True),
    )
    def test_every_name_is_an_identifier_in_a_program(self, name: str, namespace: str | None) -> None:
        """Whatever the API takes, Python can call."""
        import keyword

        identifier = program_name(namespace, name)
        assert identifier.isidentifier()
        assert not keyword.iskeyword(identifier)


class TestCatalog:
    def test_it_resolves_exactly_and_is_a_snapshot(self) -> None:
        """(namespace, name) and nothing near it."""
        entries = [named("look"), named("look", "records")]
        catalog = Catalog(entries)
        entries.clear()
        assert catalog.resolve("records", "look").contract.namespace == "records"  # type: ignore[union-attr]
        for namespace, name in ((None, "Look"), ("Records", "look"), ("", "look"), (None, "records.look")):
            assert catalog.resolve(namespace, name) is None
        assert [entry.contract.qualified_name for entry in catalog] == ["look", "records.look"]
        assert list(catalog.program_names) == ["look", "records_look"]

    def test_the_tools_of_a_namespace_stand_in_one_wrapper(self) -> None:
        """As the wire wants it: with a description, in the order given."""
        catalog = Catalog([named("a", "n"), named("b"), named("c", "n")], namespaces={"n": "About n."})
        wire = catalog.wire()
        assert [(item["type"], item["name"]) for item in wire] == [("namespace", "n"), ("function", "b")]
        assert wire[0]["description"] == "About n."
        assert [item["name"] for item in wire[0]["tools"]] == ["a", "c"]  # type: ignore[index, union-attr, call-overload]
        assert Catalog([named("a", "n")]).wire()[0]["description"]

    def test_it_can_be_narrowed_to_a_kind_of_caller(self) -> None:
        """What a program may not call, a program is not told of."""
        direct = tool(look, name="direct_only")
        catalog = Catalog([direct, named("both")])
        assert [entry.contract.name for entry in catalog.for_caller("programmatic")] == ["both"]
        assert len(catalog.for_caller("direct")) == 2

    def test_a_plain_function_is_registered_with_the_defaults(self) -> None:
        """Writing it into the list of tools is selecting it."""
        assert [entry.contract.name for entry in Catalog([look])] == ["look"]
        with pytest.raises(RegistrationError):
            Catalog([lambda x: x])


def module_with(**members: object) -> types.ModuleType:
    module = types.ModuleType("made_for_this_test")
    for name, member in members.items():
        if isinstance(member, types.FunctionType):
            member.__module__ = module.__name__
        setattr(module, name, member)
    return module


class TestNoToolByItself:
    def test_importing_a_module_registers_nothing_until_its_functions_are_named(self) -> None:
        """There is no registry that fills up by importing, and no way to take all that is offered."""

        async def good(n: int) -> int:
            return n

        async def dangerous(n: int) -> int:
            return n

        offer = offers(module_with(good=good, dangerous=dangerous, _private=look, sys=sys, Tool=Tool))
        assert set(offer) == {"good", "dangerous"}
        chosen = offer.select(["good"], effects="read")
        assert [entry.contract.name for entry in chosen] == ["good"]
        assert chosen[0].contract.effects == "read"
        assert list(Catalog()) == []
        with pytest.raises(RegistrationError, match="missing"):
            offer.select(["missing"])
        with pytest.raises(RegistrationError):
            offer.select(["*"])
        with pytest.raises(TypeError):
            offer.select("good")

    def test_what_a_module_imported_is_not_what_it_offers(self) -> None:
        """A helper from elsewhere is no tool of this module."""
        from os.path import join

        module = module_with()
        module.join = join  # type: ignore[attr-defined]
        assert list(offers(module)) == []


class TestExtensions:
    manifest = Manifest("records", "1.0", "Customer records.")

    def test_a_bare_decorator_and_types_of_its_own_function_work_as_for_any_tool(self) -> None:
        """An extension's author writes what everybody writes."""
        extension = Extension(self.manifest)

        class Local(TypedDict):
            id: str

        async def get(row: "Local") -> "Local":
            """Get it."""
            return row

        assert extension.tool(get).contract.qualified_name == "records.get"
        assert [entry.contract.name for entry in extension.tools] == ["get"]

    def test_a_tool_is_extension_dot_snake_case(self) -> None:
        """The prefix is the manifest's name, in the catalog and on the wire."""
        extension = Extension(self.manifest)

        @extension.tool(effects="read")
        async def find_customer(n: int) -> int:
            """Find one."""
            return n

        assert find_customer.contract.qualified_name == "records.find_customer"
        catalog = Catalog(extension.tools, namespaces=extension.namespaces)
        assert catalog.wire()[0]["description"] == "Customer records."

    @pytest.mark.parametrize(
        "name", ["FindCustomer", "find-customer", "_find", "find__customer", "findC", "1find"]
    )
    def test_another_form_of_name_is_refused(self, name: str) -> None:
        """One form for all extensions."""
        with pytest.raises(InvalidName):
            Extension(self.manifest).tool(name=name)(look)

    def test_another_prefix_is_refused(self) -> None:
        """An extension cannot put a tool into somebody else's namespace."""
        extension = Extension(self.manifest)
        for entry in (named("look", "billing"), named("look")):
            with pytest.raises(InvalidName, match="records"):
                extension.add(entry)
        with pytest.raises(InvalidName):
            extension.tool(namespace="billing")
        extension.add(named("look", "records"))
        with pytest.raises(RegistrationError, match="already"):
            extension.add(named("look", "records"))

    @pytest.mark.parametrize("name", ["ptc", "Records", "re-cords", "mcp", "", "python"])
    def test_a_manifest_may_not_take_a_reserved_or_odd_name(self, name: str) -> None:
        """The core's prefix, the API's words, another form."""
        with pytest.raises(InvalidName):
            Manifest(name, "1", "d")
