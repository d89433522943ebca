"""The peers of the search benchmark: what people use for BM25 today, over the same catalog and with their own words.

Each peer is built once from the documents and then answers questions with the keys of its best ten. One that is not
installed is reported as missing. `Plain` is textbook BM25, for what the fields, stems and split names are worth.
"""

from __future__ import annotations

import importlib.util
import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ptc_tools.search import Document

Search = Callable[[str], list[str]]
LIMIT = 10

_WORD = re.compile(r"\w+")
_SPLIT = re.compile(r"[^\W_]+")


def text_of(document: Document) -> str:
    """What peers are given: they know one field."""
    return f"{document.namespace} {document.about} {document.name} {document.title} {document.description}"


class Plain:
    """BM25 over name, title and description: k1 1.2, b 0.75, words in lower case; `split` cuts names at `_`."""

    def __init__(
        self, documents: Sequence[Document], *, split: bool, k1: float = 1.2, b: float = 0.75
    ) -> None:
        self._word = _SPLIT if split else _WORD
        self._keys = [document.key for document in documents]
        counted = [Counter(self._word.findall(text_of(document).lower())) for document in documents]
        lengths = [counts.total() for counts in counted]
        average = sum(lengths) / len(lengths)
        postings: dict[str, tuple[array[int], array[float]]] = {}
        for place, (counts, length) in enumerate(zip(counted, lengths, strict=True)):
            for word, times in counts.items():
                places, scores = postings.setdefault(word, (array("I"), array("d")))
                places.append(place)
                scores.append(times * (k1 + 1) / (times + k1 * (1 - b + b * length / average)))
        size = len(documents)
        for word, (places, scores) in postings.items():
            rarity = math.log(1 + (size - len(places) + 0.5) / (len(places) + 0.5))
            postings[word] = places, array("d", (rarity * score for score in scores))
        self._postings = postings

    def __call__(self, question: str) -> list[str]:
        totals: dict[int, float] = {}
        for word in self._word.findall(question.lower()):
            places, scores = self._postings.get(word, ((), ()))
            for place, score in zip(places, scores, strict=True):
                totals[place] = totals.get(place, 0.0) + score
        ranked = sorted(totals, key=lambda place: (-totals[place], self._keys[place]))
        return [self._keys[place] for place in ranked[:LIMIT]]


def _bm25s_of(documents: Sequence[Document]) -> tuple[list[str], dict[str, Any], Any]:
    """The keys, the options of its tokeniser, and its index of the documents."""
    import bm25s
    import Stemmer

    options: dict[str, Any] = {
        "stopwords": "en",
        "stemmer": Stemmer.Stemmer("english"),
        "show_progress": False,
    }
    retriever = bm25s.BM25()
    retriever.index(bm25s.tokenize([text_of(each) for each in documents], **options), show_progress=False)
    return [document.key for document in documents], options, retriever


def bm25s_peer(documents: Sequence[Document]) -> Search | None:
    """bm25s with its tokeniser, its stop words and, as its documentation advises, PyStemmer."""
    if not _installed("bm25s", "Stemmer"):
        return None
    import bm25s

    keys, options, retriever = _bm25s_of(documents)

    def search(question: str) -> list[str]:
        tokens = bm25s.tokenize(question, **options)
        found, scores = retriever.retrieve(tokens, k=LIMIT, show_progress=False)
        return [keys[place] for place, score in zip(found[0], scores[0], strict=True) if score > 0]

    return search


def bm25s_scores(documents: Sequence[Document]) -> Search | None:
    """The quickest that bm25s offers: its words, its scores of all tools, and the five highest of those above 0."""
    if not _installed("bm25s", "Stemmer", "numpy"):
        return None
    import bm25s
    import numpy

    keys, options, retriever = _bm25s_of(documents)

    def search(question: str) -> list[str]:
        (words,) = bm25s.tokenize(question, return_ids=False, **options)
        scores = retriever.get_scores(words)
        at = numpy.flatnonzero(scores)
        best = at[numpy.argpartition(-scores[at], 4)[:5]] if len(at) > 5 else at
        return [keys[place] for place in best[numpy.argsort(-scores[best])] if scores[place] > 0]

    return search


def rank_bm25_peer(documents: Sequence[Document]) -> Search | None:
    """rank-bm25 with the words between spaces in lower case, as its documentation shows."""
    if not _installed("rank_bm25"):
        return None
    from rank_bm25 import BM25Okapi

    keys = [document.key for document in documents]
    ranker = BM25Okapi([text_of(document).lower().split() for document in documents])
    return lambda question: ranker.get_top_n(question.lower().split(), keys, n=LIMIT)


def tantivy_peer(documents: Sequence[Document]) -> Search | None:
    """tantivy with its English tokeniser (stop words, stems), a field for the names and one for the rest."""
    if not _installed("tantivy"):
        return None
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("key", stored=True, tokenizer_name="raw")
    for field in ("names", "description"):
        builder.add_text_field(field, tokenizer_name="en_stem")
    index = tantivy.Index(builder.build())
    writer = index.writer()
    for each in documents:
        names = f"{each.namespace} {each.about} {each.name} {each.title}".replace("_", " ")
        writer.add_document(tantivy.Document(key=each.key, names=names, description=each.description))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(question: str) -> list[str]:
        words = " ".join(_WORD.findall(question))
        query, _ = index.parse_query_lenient(words, ["names", "description"])
        return [searcher.doc(address)["key"][0] for _, address in searcher.search(query, LIMIT).hits]

    return search


PEERS: dict[str, Callable[[Sequence[Document]], Search | None]] = {
    "bm25s": bm25s_peer,
    "rank-bm25": rank_bm25_peer,
    "tantivy": tantivy_peer,
    "plain BM25": lambda documents: Plain(documents, split=False),
    "plain BM25, split names": lambda documents: Plain(documents, split=True),
}


def _installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)
