"""How names, prose and questions become terms: identifiers split and joined, inflections and slips forgiven."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptc_tools.search import Document, ToolIndex, Weights
from ptc_tools.search.text import Query, count, stem, terms_of, words_of


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("describe_instances", ["describe", "instances"]),
        ("describeInstances", ["describe", "instances"]),
        ("HTTPServerError", ["http", "server", "error"]),
        ("multi-region", ["multi", "region"]),
        ("records.search", ["records", "search"]),
        ("_private__name_", ["private", "name"]),
        ("ec2", ["ec2"]),
        ("Größe", ["große"]),
        ("CAFÉ", ["cafe"]),
        ("注文一覧", ["注文", "文一", "一覧"]),
        ("注文API", ["注文", "api"]),
    ],
)
def test_identifiers_are_split_and_folded(written: str, words: list[str]) -> None:
    """Snake, camel and kebab case name the same thing, and so do capitals and accents."""
    expected = ["grosse" if word == "große" else word for word in words]
    assert list(words_of(written)) == expected


def test_an_identifier_is_one_term_as_well() -> None:
    """A question may write as one word what a name writes as two, and the other way round."""
    assert terms_of("load_balancer") == ("load", "balancer", "loadbalancer")
    assert "loadbalancer" in Query.read("the load balancer").joined


@pytest.mark.parametrize(
    "same",
    [
        ("delete", "deletes", "deleted", "deleting"),
        ("policy", "policies"),
        ("stop", "stops", "stopped", "stopping"),
        ("address", "addresses"),
        ("batch", "batches"),
        ("index", "indexes"),
        ("call", "calls", "called", "calling"),
    ],
)
def test_inflections_are_one_term(same: tuple[str, ...]) -> None:
    """Names are imperative, descriptions are not, and people ask as they like."""
    assert len({stem(word) for word in same}) == 1


@pytest.mark.parametrize(
    "text", ["órder a café", "Größe", "ЁЖИК и йод", "パンがほしい", "ngày tháng", "résumé_of_Zoë"]
)
def test_decomposed_text_is_the_same_text(text: str) -> None:
    """Some systems write an accent as a character of its own: file names of macOS, copied text."""
    assert count(unicodedata.normalize("NFD", text)) == count(unicodedata.normalize("NFC", text))
    assert Query.read(unicodedata.normalize("NFD", text)) == Query.read(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize("word", ["नमस्ते", "மொழி", "বাংলা", "שָׁלוֹם", "كِتَاب"])
def test_a_word_is_not_cut_at_the_signs_that_it_is_spelt_with(word: str) -> None:
    """Vowel signs are parts of words: what is left without them is another word."""
    assert list(count(f"({word}, {word})")) == [word]


def test_thai_is_read_with_its_vowel_signs() -> None:
    """It is written without spaces, so its terms are pairs of letters; `สวย` and `สวัสดี` share the first alone."""
    assert "วั" in count("สวัสดี")
    index = ToolIndex([Document("hello", description="สวัสดี"), Document("nice", description="สวย")])
    assert index.view().search("สวัสดี")[0].key == "hello"


@pytest.mark.parametrize("word", ["status", "ssm", "s3", "ring", "this", "access", "naïve", "bus"])
def test_what_is_no_inflection_stays_apart(word: str) -> None:
    """Stemming is light: cutting what is no ending would join words that have nothing in common."""
    assert stem(word) == word


def test_small_words_count_in_names_and_not_in_prose() -> None:
    """A tool called `who_is` must be found; `the` must find nothing."""
    index = ToolIndex(
        [
            Document("who_is", name="who_is", description="Look up the owner of a domain."),
            Document("a", name="list"),
        ]
    )
    assert [hit.key for hit in index.view().search("who is")] == ["who_is"]
    assert index.view().search("the of") == ()


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("instnaces", "describe_instances"),
        ("instances", "describe_instances"),
        ("instancess", "describe_instances"),
        ("autoscaling", "auto_scaling_group"),
        ("auto scaling", "auto_scaling_group"),
        ("cloud watch", "cloudwatch_alarm"),
        ("remove the user", "delete_user"),
        ("show users", "list_users"),
    ],
)
def test_slips_compounds_and_other_verbs_find_the_tool(question: str, found: str) -> None:
    """What people type is not what tools are called."""
    names = ["describe_instances", "auto_scaling_group", "cloudwatch_alarm", "delete_user", "list_users"]
    view = ToolIndex([Document(name, name=name) for name in names]).view()
    assert view.search(question)[0].key == found


def test_a_word_as_it_is_written_beats_a_guess_or_another_verb() -> None:
    """Help must not stand in the way of somebody who knows the name."""
    names = ["remove_user", "delete_user"]
    view = ToolIndex([Document(name, name=name) for name in names]).view()
    assert [hit.key for hit in view.search("remove user")] == ["remove_user", "delete_user"]
    assert [hit.key for hit in view.search("delete user")] == ["delete_user", "remove_user"]


def test_a_word_is_guessed_at_only_where_the_view_has_it_not() -> None:
    """What a caller may not see must not decide how its question is read."""
    index = ToolIndex([Document("hidden", name="ordres"), Document("seen", name="orders")])
    assert [hit.key for hit in index.view(["seen"]).search("ordres")] == ["seen"]
    assert [hit.key for hit in index.view().search("ordres")] == ["hidden"]


def test_help_can_be_switched_off() -> None:
    """Who wants words as they are written says so with weights of 0."""
    literal = Weights(related=0, guessed=0, joined=0)
    view = ToolIndex([Document("delete_user", name="delete_user", description="x y")], weights=literal).view()
    assert view.search("remove") == ()
    assert view.search("delte") == ()
    assert view.search("delete user")


def test_a_name_in_full_finds_its_tool_first() -> None:
    """Results are aware of namespaces: `records.search` is one tool among many searches."""
    spaces = ["archive", "orders", "records", "search"]
    view = ToolIndex(
        [Document(f"{s}.search", namespace=s, name="search", description="Search records.") for s in spaces]
    ).view()
    for space in spaces:
        assert view.search(f"{space}.search")[0].key == f"{space}.search"
        assert view.search(f"search {space}")[0].key == f"{space}.search"


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_can_be_counted_and_asked(text: str) -> None:
    """Descriptions come from strangers and questions from models."""
    counts = count(text, stop_words=True)
    assert all(times > 0 and term for term, times in counts.items())
    view = ToolIndex([Document("t", name="t", description=text), Document("u", name="list_orders")]).view()
    assert all(hit.score > 0 for hit in view.search(text))


@settings(deadline=None)
@given(st.text(alphabet="abcdefgABC_-. ", min_size=1, max_size=40))
def test_what_a_description_says_can_be_found_by_saying_it(text: str) -> None:
    """Documents and questions are read by one rule."""
    view = ToolIndex([Document("t", name="zzz", description=text)]).view()
    found = bool(view.search(text))
    assert found == bool(count(text))


def test_hostile_sizes_are_cut() -> None:
    """A name of a megabyte, a question of a megabyte and a schema of a hundred thousand parts are read to a limit."""
    deep: dict[str, object] = {"type": "object"}
    for number in range(2_000):
        deep = {"type": "object", "properties": {f"p{number}": deep}}
    wide = {
        "type": "object",
        "properties": {f"w{number}": {"description": "x" * 100} for number in range(20_000)},
    }
    index = ToolIndex(
        [
            Document("long", name="a" * 1_000_000, description="b_" * 1_000_000),
            Document("deep", name="deep", parameters=deep),  # type: ignore[arg-type]
            Document("wide", name="wide", parameters=wide),  # type: ignore[arg-type]
        ]
    )
    assert index.view().search("wide " * 300_000)[0].key == "wide"


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_is_not_positive_is_refused(limit: int) -> None:
    """It would look like a catalog that has nothing."""
    with pytest.raises(ValueError, match="at least 1"):
        ToolIndex().view().search("x", limit)
