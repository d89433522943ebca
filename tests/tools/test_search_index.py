"""The search index: exact statistics for every view, whatever was added and removed on the way."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ptc_tools import Contract, DuplicateTool, RegistrationError
from ptc_tools.search import Document, Hit, SearchView, ToolIndex, Weights

WORDS = [
    "list",
    "orders",
    "getOrder",
    "delete_user",
    "billing",
    "the",
    "invoice",
    "HTTPServer",
    "größe",
    "注文一覧",
]
QUERIES = [
    "list orders",
    "get order",
    "delete the users",
    "http",
    "lst ordrs",
    "the",
    "注文",
    "billing invoice list",
]

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
names = st.sampled_from([f"tool_{number}" for number in range(12)])


@st.composite
def documents(draw: st.DrawFn, name: str | None = None) -> Document:
    own = name or draw(names)
    space = draw(st.sampled_from(["", "billing", "http_server"]))
    properties = {
        word: {"type": "string", "description": draw(texts)}
        for word in draw(st.sets(st.sampled_from(WORDS), max_size=2))
    }
    return Document(
        key=own,
        namespace=space,
        name=own,
        title=draw(st.sampled_from(["", "List orders"])),
        description=draw(texts),
        parameters={"type": "object", "properties": properties},
    )


catalogs = st.lists(documents(), max_size=12, unique_by=lambda document: document.key)


def results(view: SearchView) -> list[tuple[Hit, ...]]:
    return [view.search(query, limit) for query in QUERIES for limit in (1, 3, 50)]


@settings(deadline=None)
@given(catalogs, st.sets(names))
def test_a_view_scores_exactly_as_an_index_of_its_tools_alone(
    catalog: list[Document], keys: set[str]
) -> None:
    """A policy's view must not let a hidden tool show through a statistic: equal to the last digit."""
    view = ToolIndex(catalog).view(keys)
    alone = ToolIndex([document for document in catalog if document.key in keys]).view()
    assert results(view) == results(alone)
    assert len(view) == len(alone)


@settings(deadline=None)
@given(catalogs, st.randoms(use_true_random=False))
def test_the_order_in_which_tools_came_changes_nothing(
    catalog: list[Document], source: random.Random
) -> None:
    """Two processes that read one registry in two orders must show a model the same tools."""
    shuffled = source.sample(catalog, len(catalog))
    assert results(ToolIndex(catalog).view()) == results(ToolIndex(shuffled).view())
    assert ToolIndex(catalog).fingerprint == ToolIndex(shuffled).fingerprint


@settings(deadline=None)
@given(catalogs)
def test_the_best_few_are_the_head_of_all(catalog: list[Document]) -> None:
    """What is skipped because it cannot be among the best must not have been among them, ties by name."""
    view = ToolIndex(catalog).view()
    for query in QUERIES:
        everything = view.search(query, 1000)
        assert list(everything) == sorted(everything, key=lambda hit: (-hit.score, hit.key))
        assert all(hit.score > 0 for hit in everything)
        for limit in (1, 2, 5):
            assert view.search(query, limit) == everything[:limit]


class Changes(RuleBasedStateMachine):
    """Adds, removes and replaces at random; the index must always be what a fresh build would be."""

    def __init__(self) -> None:
        super().__init__()
        start = [Document(key=f"fixed_{n}", name=f"fixed_{n}", description=WORDS[n % 10]) for n in range(20)]
        self.model = {document.key: document for document in start}
        self.index = ToolIndex(start)

    @rule(document=documents())
    def put(self, document: Document) -> None:
        there = [document.key] if document.key in self.model else []
        self.index = self.index.with_changes([document], there)
        self.model[document.key] = document

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        self.index = self.index.with_changes(remove=[key])
        del self.model[key]

    @rule(catalog=catalogs)
    def read_again(self, catalog: list[Document]) -> None:
        kept = [document for key, document in self.model.items() if key.startswith("fixed")]
        self.model = {document.key: document for document in [*kept, *catalog]}
        self.index = self.index.updated(self.model.values())

    @invariant()
    def equals_a_full_build(self) -> None:
        fresh = ToolIndex(self.model.values())
        assert results(self.index.view()) == results(fresh.view())
        some = set(list(self.model)[::2])
        assert results(self.index.view(some)) == results(fresh.view(some))
        assert self.index.fingerprint == fresh.fingerprint
        assert len(self.index) == len(self.model)


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)


def test_an_index_stays_what_it_was_when_another_is_made_from_it() -> None:
    """A run that is under way searches the snapshot that it holds."""
    before = ToolIndex([Document(key=f"t{n}", name=f"order_{n}", description="list") for n in range(10)])
    shown = results(before.view())
    before.with_changes([Document(key="new", name="list_orders")], ["t3"])
    assert results(ToolIndex([before.document(f"t{n}") for n in range(10)]).view()) == shown  # type: ignore[misc]
    assert "t3" in before
    assert "new" not in before


def test_asked_again_for_the_same_keys_it_is_the_same_view() -> None:
    """Concurrent runs of one policy share what a view has worked out."""
    index = ToolIndex([Document(key="a", name="a"), Document(key="b", name="b")])
    assert index.view(["a"]) is index.view({"a"})
    assert index.view() is index.view(None)
    assert index.view(["a"]) is not index.view(["b"])


def test_a_key_that_the_index_has_not_is_not_in_the_view() -> None:
    """A policy may allow a tool that is gone."""
    view = ToolIndex([Document(key="a", name="find_order")]).view(["a", "gone"])
    assert len(view) == 1
    assert [hit.key for hit in view.search("order")] == ["a"]


def test_two_documents_of_one_key_are_refused() -> None:
    """A result names a tool by its key, so the key must say which."""
    one = Document(key="a", name="a")
    for make in (
        lambda: ToolIndex([one, one]),
        lambda: ToolIndex([one]).with_changes([one]),
        lambda: ToolIndex().updated([one, one]),
    ):
        with pytest.raises(DuplicateTool, match="'a'"):
            make()


def test_removing_what_is_not_there_is_refused() -> None:
    """A caller whose picture of the catalog is wrong must hear of it."""
    filled = ToolIndex([Document(key=f"t{n}", name="x") for n in range(9)])
    for index in (ToolIndex(), filled):
        with pytest.raises(RegistrationError, match="'gone'"):
            index.with_changes(remove=["gone"])


def test_a_change_of_nothing_is_the_same_index() -> None:
    """A step whose catalog did not change costs nothing, and keeps its views."""
    catalog = [Document(key="a", name="a")]
    index = ToolIndex(catalog)
    assert index.with_changes() is index
    assert index.updated([Document(key="a", name="a")]) is index


def test_a_change_of_any_word_changes_the_fingerprint() -> None:
    """It is a cache's key: what could change a result must be in it."""
    of = {"key": "a", "namespace": "n", "name": "a", "title": "t", "description": "d"}
    prints = {
        ToolIndex([Document(**of)]).fingerprint,
        ToolIndex([Document(**of)], weights=Weights(k1=2)).fingerprint,
    }  # type: ignore[arg-type]
    for field in ("namespace", "name", "title", "description", "about"):
        prints.add(ToolIndex([Document(**{**of, field: "other"})]).fingerprint)  # type: ignore[arg-type]
    prints.add(ToolIndex([Document(**of, terms=("x",))]).fingerprint)  # type: ignore[arg-type]
    prints.add(ToolIndex([Document(**of, parameters={"type": "object"})]).fingerprint)  # type: ignore[arg-type]
    assert len(prints) == 9


def test_threads_that_search_one_view_at_once_see_what_one_sees() -> None:
    """Views are shared by runs, which a host may spread over threads."""
    catalog = [
        Document(key=f"t{n}", name=f"{WORDS[n % 10]}_{n}", description=WORDS[n % 7]) for n in range(60)
    ]
    expected = results(ToolIndex(catalog).view())
    shared = ToolIndex(catalog)
    seen: list[list[tuple[Hit, ...]]] = []
    threads = [threading.Thread(target=lambda: seen.append(results(shared.view()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [expected] * 8


def test_a_document_is_what_the_model_would_be_told() -> None:
    """Search must not find a tool by what its definition does not show."""
    contract = Contract(
        namespace="orders",
        name="get",
        description="Fetch an order.",
        parameters={
            "type": "object",
            "properties": {"order_id": {"type": "string"}},
            "required": ["order_id"],
            "additionalProperties": False,
        },
        tags=("secret_tag",),
        authority=("ledger",),
    )
    index = ToolIndex([Document.of(contract, title="Order look-up", terms=("purchase",))])
    view = index.view()
    for query in ("orders.get", "fetch", "order id", "look-up", "purchases"):
        assert [hit.key for hit in view.search(query)] == ["orders.get"], query
    for query in ("secret tag", "ledger"):
        assert view.search(query) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": -1.0},
        {"k1": float("nan")},
        {"b_title": 1.5},
        {"title": "much"},
        dict.fromkeys(["name", "namespace", "title", "description", "parameters"], 0),
    ],
)
def test_weights_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    """A weight is a figure that somebody typed: it is checked where it is given."""
    with pytest.raises(RegistrationError, match="search weights"):
        Weights(**wrong)  # type: ignore[arg-type]


def test_what_was_forgotten_is_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views and scores are kept within bounds, and a policy for each of a hundred users must not change a result."""
    monkeypatch.setattr("ptc_tools.search.index.SCORES_KEPT", 500)
    monkeypatch.setattr("ptc_tools.search.index.VIEWS_KEPT", 3)
    catalog = [
        Document(key=f"t{n}", name=f"{WORDS[n % 10]}_{n}", description=WORDS[n % 7]) for n in range(40)
    ]
    index = ToolIndex(catalog)
    parts = [{f"t{n}" for n in range(40) if n % 9 != part} for part in range(9)]
    expected = [results(ToolIndex([each for each in catalog if each.key in part]).view()) for part in parts]
    for _ in range(2):
        assert [results(index.view(part)) for part in parts] == expected
    assert results(index.view()) == results(ToolIndex(catalog).view())
