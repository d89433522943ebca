"""Toolsets and their uses: deferral is each consumer's, by exact local names, and changes loading alone."""

from __future__ import annotations

import pytest

import ptc
from tests.tools.catalog_support import analyze, lookup, names, records, search


def refused(code: str, action, *arguments: object) -> str:  # type: ignore[no-untyped-def]
    with pytest.raises(ptc.RegistrationError) as raised:
        action(*arguments)
    assert raised.value.code == code
    return raised.value.message


def test_a_toolset_gives_its_tools_its_name_as_namespace() -> None:
    """`records.search` is what a model, a policy and a record call it."""
    assert [entry.contract.qualified_name for entry in records()] == [
        "records.lookup",
        "records.search",
        "records.analyze",
    ]
    assert lookup.contract.namespace is None  # the tool that was given is as it was


def test_defer_with_names_defers_exactly_those() -> None:
    """`lookup` is used often and stays with every request."""
    step = ptc.Sources([ptc.use(records()).defer("search", "analyze")]).fixed()
    assert step.deferred == {"records.search", "records.analyze"}
    assert names(step) == ["records.lookup", "records.search", "records.analyze"]


def test_defer_without_names_defers_all() -> None:
    """The whole toolset waits for a search."""
    step = ptc.Sources([ptc.use(records()).defer()]).fixed()
    assert step.deferred == {"records.lookup", "records.search", "records.analyze"}


def test_nothing_is_deferred_where_nobody_says_so() -> None:
    """Loading at once is the default."""
    assert ptc.Sources([ptc.use(records())]).fixed().deferred == frozenset()
    assert ptc.Sources([records()]).fixed().deferred == frozenset()


def test_deferral_raises_on_a_toolset_a_reference_a_registry_and_an_export() -> None:
    """It is the consumer's: what is shared says nothing about loading."""
    company = ptc.Registry("company")
    refused("invalid_deferral", records().defer)
    refused("invalid_deferral", records().defer, "search")
    refused("invalid_deferral", records().export(version="1.0.0").defer)
    refused("invalid_deferral", company.defer)
    refused("invalid_deferral", ptc.Toolset.from_registry(company, "records").defer)


def test_a_tool_that_defers_itself_cannot_be_in_a_toolset() -> None:
    """Else the toolset would decide for its consumers after all."""
    waiting = ptc.tool(lambda_named("wait"), defer_loading=True)
    message = refused("invalid_deferral", ptc.Toolset, "records", [waiting])
    assert "use(toolset).defer" in message


def lambda_named(name: str):  # type: ignore[no-untyped-def]
    def function(x: int) -> int:
        """Wait."""
        return x

    function.__name__ = name
    return function


def test_two_consumers_of_one_toolset_may_differ() -> None:
    """A use is a value beside the toolset."""
    shared = records()
    one, two = ptc.use(shared).defer("search"), ptc.use(shared).defer()
    assert ptc.Sources([one]).fixed().deferred == {"records.search"}
    assert len(ptc.Sources([two]).fixed().deferred) == 3
    assert ptc.Sources([ptc.use(shared)]).fixed().deferred == frozenset()


def test_a_use_is_never_changed() -> None:
    """`defer` gives a new value, so that one use can be the start of several."""
    use = ptc.use(records())
    use.defer("search")
    use.defer()
    assert (use.deferred, use.defers_all) == ((), False)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("records.search", "'search'"),
        ("records_search", "'search'"),
        ("Search", "search"),
        ("get", "it has lookup, search, analyze"),
        ("", "no name"),
    ],
)
def test_a_name_that_is_no_local_name_raises(name: str, hint: str) -> None:
    """A qualified name, a Python name, another case, an unknown and an empty one: each says what to do."""
    assert hint in refused("invalid_deferral", ptc.use(records()).defer, name)


def test_a_python_attribute_name_of_a_hyphenated_tool_raises() -> None:
    """The name is the one that the wire has."""
    other = ptc.tool(lambda_named("get"), name="get-order")
    use = ptc.use(ptc.Toolset("shop", [other]))
    assert "'get-order'" in refused("invalid_deferral", use.defer, "get_order")
    assert use.defer("get-order").deferred == ("get-order",)


@pytest.mark.parametrize("name", [None, 3, b"search", search])
def test_what_is_no_text_is_no_name(name: object) -> None:
    """Not even the tool itself: names are what is deferred."""
    refused("invalid_deferral", ptc.use(records()).defer, name)


def test_a_duplicate_raises_also_across_calls() -> None:
    """Whoever names a tool twice meant another one."""
    use = ptc.use(records())
    refused("invalid_deferral", use.defer, "search", "search")
    refused("invalid_deferral", use.defer("search").defer, "search")


def test_names_of_several_calls_add_up() -> None:
    """A consumer may choose in two places."""
    assert ptc.use(records()).defer("search").defer("analyze").deferred == ("search", "analyze")


def test_mixing_both_forms_raises_in_either_order() -> None:
    """All and some cannot both be meant."""
    refused("invalid_deferral", ptc.use(records()).defer().defer, "search")
    refused("invalid_deferral", ptc.use(records()).defer("search").defer)


def test_repeating_defer_is_fine() -> None:
    """It says the same again."""
    use = ptc.use(records())
    assert use.defer().defer() == use.defer()


def test_deferral_changes_loading_only() -> None:
    """Callers, approval, effects and the function are the same contract and the same tool."""
    toolset = records()
    eager, deferred = ptc.Sources([toolset]).fixed(), ptc.Sources([ptc.use(toolset).defer()]).fixed()
    assert list(eager.catalog) == list(deferred.catalog)
    assert all(not entry.contract.defer_loading for entry in deferred.catalog)


async def test_a_deferred_tool_runs_as_any_other() -> None:
    """Execution stays."""
    step = ptc.Sources([ptc.use(records()).defer()]).fixed()
    call = ptc.Call("c", "lookup", {"key": "7"}, namespace="records")
    assert await ptc.Invoker(step.catalog).invoke(call, ptc.RunContext("r")) == ptc.Success("record 7")


def test_the_fingerprint_tells_loading_apart_and_nothing_else() -> None:
    """Equal offers share caches; an offer that loads otherwise does not."""
    toolset = records()
    assert ptc.Sources([toolset]).fixed().fingerprint == ptc.Sources([records()]).fixed().fingerprint
    assert (
        ptc.Sources([toolset]).fixed().fingerprint
        != ptc.Sources([ptc.use(toolset).defer()]).fixed().fingerprint
    )


def test_a_toolset_takes_plain_typed_functions_and_agents() -> None:
    """As a runner's list does; a runner is a tool by `as_tool`."""

    def plain(x: int) -> int:
        """Add one."""
        return x + 1

    assert ptc.Toolset("mixed", [plain, lookup]).names == ("plain", "lookup")


def test_what_cannot_be_in_a_toolset_is_refused() -> None:
    """Twice the same name, another namespace, another source."""
    other = ptc.tool(lambda_named("get"), namespace="billing")
    refused("duplicate_tool", ptc.Toolset, "records", [lookup, lookup])
    refused("invalid_source", ptc.Toolset, "records", [other])
    refused("invalid_source", ptc.Toolset, "records", [records("other")])
    refused("invalid_source", ptc.Toolset, "records", [ptc.Registry("company")])
    refused("invalid_name", ptc.Toolset, "rec.ords", [lookup])
    refused("invalid_name", ptc.Toolset, "ptc", [lookup])


def test_a_read_named_by_its_local_name_goes_into_the_namespace_too() -> None:
    """A mutation's reconciliation read is in the same toolset as a rule."""

    @ptc.tool(
        effects="write",
        commitment="changes a record",
        reconciliation=ptc.Reconciliation("lookup", {"key": "key"}),
    )
    def change(key: str) -> str:
        """Change a record."""
        return key

    step = ptc.Sources([ptc.Toolset("records", [lookup, change])]).fixed()
    changed = step.catalog.resolve("records", "change")
    assert changed is not None
    assert changed.contract.reconciliation == ptc.Reconciliation("records.lookup", {"key": "key"})


def test_consumer_tags_are_this_consumers_alone() -> None:
    """They are for its policy; the toolset and other consumers do not have them."""
    toolset = records()
    tagged = ptc.Sources([ptc.use(toolset).tag("finance")]).fixed()
    assert {entry.contract.tags for entry in tagged.catalog} == {("finance",)}
    assert {entry.contract.tags for entry in toolset} == {()}


def test_use_takes_sources_only() -> None:
    """A single tool goes into the list as it is."""
    for wrong in (lookup, "records", None, [analyze]):
        with pytest.raises(TypeError):
            ptc.use(wrong)  # type: ignore[arg-type]
