"""`python -m benchmarks.search`: does a question find its tool among 20,000, what does that cost, and how does it grow.

The catalog is every operation of botocore; the questions are titles of awscli's examples, and requests of our own as
people and models put them (benchmarks/search_catalog.py). Weights were chosen on half of the services; what is reported
is the other half. Peers get the same text, with their own tokenisers. Times are CPU time of this process. The first run
encodes the catalog, which takes minutes, and keeps the vectors in `.ptc/`.
"""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from time import thread_time
from typing import Any

from benchmarks.harness import Figure, interleaved, median, p99, report
from benchmarks.search_catalog import Question, read_catalog, read_requests, read_titles
from benchmarks.search_peers import PEERS, Search, bm25s_scores
from benchmarks.search_quality import Quality, lower_bound, quality, ranked
from ptc_tools.search import Document, HybridIndex, MiniLM, SearchUnavailable, ToolIndex, Vectors

STORE = Path(__file__).parent.parent / ".ptc"
LEXICAL, HYBRID = "lexical", "hybrid"
ALL = "all requests, of both halves"
FEW = 300
SIZES = (1_000, 2_000, 5_000, 10_000)
MEASURED_FOR_MEMORY = 5_000
ASKED = 200


def main() -> list[Figure]:
    if importlib.util.find_spec("botocore") is None or importlib.util.find_spec("awscli") is None:
        return [Figure("tool search", None, "", note='pip install -e ".[bench]" brings botocore and awscli')]
    catalog = read_catalog()
    titles = [question for question in read_titles(catalog) if not question.tuning]
    everybody = read_requests(catalog)
    requests = [question for question in everybody if not question.tuning]
    start = thread_time()
    index = ToolIndex(catalog)
    build = thread_time() - start
    hybrid = _hybrid(catalog)
    systems = _systems(catalog, index, hybrid)
    sets = {
        "titles": titles,
        "hard titles": [question for question in titles if question.hard()],
        "requests": requests,
        "hard requests": [question for question in requests if question.hard()],
    }
    found: dict[str, dict[str, Quality]] = {}
    for name, search in systems.items():
        if search is not None:
            ranks = ranked(search, _asked(name, [*titles, *everybody]))
            found[name] = {title: quality(ranks, asked) for title, asked in sets.items()}
            found[name][ALL] = quality(ranks, everybody)
    return [
        *_recall(found, sets),
        *_goals(found),
        *_speed(index, hybrid, catalog, titles + requests),
        *_changes(index, catalog, build),
        *_sizes(catalog, titles),
        *_memory(catalog),
    ]


def _hybrid(catalog: list[Document]) -> HybridIndex | None:
    try:
        encoder = MiniLM(threads=1)  # so that its time is that of the thread that asks
        STORE.mkdir(exist_ok=True)
        return HybridIndex(catalog, encoder=encoder, vectors=Vectors(STORE / "search-vectors.db"))
    except SearchUnavailable:
        return None


def _systems(
    catalog: list[Document], index: ToolIndex, hybrid: HybridIndex | None
) -> dict[str, Search | None]:
    peers = {name: make(catalog) for name, make in PEERS.items()}
    return {LEXICAL: _keys(index), HYBRID: None if hybrid is None else _keys(hybrid), **peers}


def _keys(index: ToolIndex | HybridIndex) -> Search:
    view = index.view()
    return lambda question: [hit.key for hit in view.search(question, 10)]


def _asked(name: str, asked: list[Question]) -> list[Question]:
    """rank-bm25 takes too long for all of them: it is asked the first by hash, and each request."""
    if name != "rank-bm25":
        return asked
    return [each for each in asked if hashlib.sha256(each.text.encode()).digest()[0] < 32 or each.request]


def _recall(found: dict[str, dict[str, Quality]], sets: dict[str, list[Question]]) -> list[Figure]:
    figures = []
    for title, asked in sets.items():
        for peer in (*PEERS, HYBRID):
            ours = found[LEXICAL][title]
            theirs = found.get(peer, {}).get(title)
            note = f"R@1/R@10/nDCG@10 {ours.rest}"
            if theirs is not None:
                note += f", the peer's {theirs.rest}" + (
                    f" on {len(theirs.ranks)}" if peer == "rank-bm25" else ""
                )
            figures.append(
                Figure(
                    f"R@5 of {len(asked):,} {title}, lexical",
                    ours.recall(5),
                    "",
                    peer=peer,
                    peer_value=None if theirs is None else theirs.recall(5),
                    note=note,
                )
            )
    return figures


def _goals(found: dict[str, dict[str, Quality]]) -> list[Figure]:
    split, ours = found["plain BM25, split names"], found[LEXICAL]
    figures = [
        Figure(
            "R@5 of titles, lexical",
            ours["titles"].recall(5),
            "",
            peer="the goal",
            peer_value=0.88,
            goal=1,
            at_least=True,
        )
    ]
    figures += [
        Figure(
            f"R@{k} of requests, lexical",
            ours["requests"].recall(k),
            "",
            peer="plain BM25, split names",
            peer_value=split["requests"].recall(k),
            goal=1,
            at_least=True,
        )
        for k in (1, 5, 10)
    ]
    if HYBRID not in found:
        return [*figures, Figure("R@5 of requests, hybrid", None, "", note="the extra search-hybrid")]
    return [*figures, *(_gain(found, title, k) for title in ("requests", ALL) for k in (1, 5, 10))]


def _gain(found: dict[str, dict[str, Quality]], title: str, k: int) -> Figure:
    """The least that the hybrid search finds, by the interval of its gain, against the best of those by words."""
    hybrid = found[HYBRID][title]
    words = {name: each[title] for name, each in found.items() if name not in (HYBRID, "rank-bm25")}
    best = max(words, key=lambda name: words[name].recall(k))
    bound = lower_bound(hybrid, words[best], k)
    return Figure(
        f"R@{k} of {title}, hybrid, lower end",
        words[best].recall(k) + bound,
        "",
        peer=f"the best by words: {best}",
        peer_value=words[best].recall(k),
        note=f"{hybrid.recall(k):.3f}; the gain's 95 % interval starts at {bound:+.3f}, 10,000 bootstrap samples",
        goal=1 + 1e-9,
        at_least=True,
    )


def _speed(
    index: ToolIndex, hybrid: HybridIndex | None, catalog: list[Document], asked: list[Question]
) -> list[Figure]:
    texts = [
        each.text for each in sorted(asked, key=lambda each: hashlib.sha256(each.text.encode()).digest())
    ][:ASKED]
    view = index.view()
    contenders: dict[str, Callable[[str], object]] = {LEXICAL: view.search}
    contenders.update(
        {name: search for name in ("bm25s", "tantivy") if (search := PEERS[name](catalog)) is not None}
    )
    if (scores := bm25s_scores(catalog)) is not None:
        contenders["bm25s, scores and top 5 alone"] = scores
    if hybrid is not None:
        encode = hybrid.encoder.encode
        contenders["the encoder alone"] = lambda text: encode([text])
        contenders[HYBRID] = hybrid.view().search
    fresh = _each(ToolIndex(catalog).view().search, texts)
    for search in contenders.values():
        _each(search, texts)
    samples = interleaved({name: _next(search, texts) for name, search in contenders.items()}, 3 * len(texts))
    lexical = samples[LEXICAL]
    goals = {"bm25s": 1.0, "bm25s, scores and top 5 alone": 1.0}
    figures = [
        Figure(
            f"a question, {len(index):,} tools, lexical: p50",
            median(lexical),
            "ms",
            peer=peer,
            peer_value=median(samples[peer]) if peer in samples else None,
            goal=goals.get(peer),
            p99=p99(lexical),
        )
        for peer in ("bm25s", "bm25s, scores and top 5 alone", "tantivy")
    ]
    figures.append(
        Figure(
            "the same from a fresh view: p50",
            median(fresh),
            "ms",
            p99=p99(fresh),
            note="each question once; a word's scores are worked out when it is first asked for",
        )
    )
    figures.append(
        Figure(
            "a question, hybrid: p50",
            median(samples[HYBRID]) if HYBRID in samples else None,
            "ms",
            peer="the encoder alone",
            peer_value=median(samples["the encoder alone"]) if HYBRID in samples else None,
            goal=2.0,
            p99=p99(samples[HYBRID]) if HYBRID in samples else None,
        )
    )
    return figures


def _each(search: Callable[[str], object], texts: Sequence[str]) -> list[float]:
    """Milliseconds for each."""
    return [_timed(lambda text=text: search(text)) * 1000 for text in texts]  # type: ignore[misc]


def _next(search: Callable[[str], object], texts: Sequence[str]) -> Callable[[], float]:
    following = cycle(texts)
    return lambda: _timed(lambda: search(next(following))) * 1000


def _timed(work: Callable[[], object]) -> float:
    start = thread_time()
    work()
    return thread_time() - start


def _changes(index: ToolIndex, catalog: list[Document], build: float) -> list[Figure]:
    tools = [catalog[place] for place in range(0, len(catalog), len(catalog) // 50)]
    updates = [_timed(lambda each=each: index.with_changes([each], [each.key])) for each in tools]  # type: ignore[misc]
    keys = [document.key for document in catalog]

    def permitted(part: int) -> float:
        seen = [key for key in keys if hashlib.sha256(f"{part}{key}".encode()).digest()[0] >= 26]
        return _timed(lambda: index.view(seen).search("list the instances of a cluster"))

    views = [permitted(part) for part in range(7)]
    return [
        Figure(
            "replacing one tool of 20,000",
            median(updates) * 1000,
            "ms",
            peer="a full build",
            peer_value=build * 1000,
            goal=0.001,
            p99=p99(updates) * 1000,
        ),
        Figure(
            "a policy's view of nine tenths of 20,000, and its first question",
            median(views) * 1000,
            "ms",
            peer="a full build",
            peer_value=build * 1000,
            goal=0.2,
        ),
    ]


def _sizes(catalog: list[Document], titles: list[Question]) -> list[Figure]:
    ordered = sorted(catalog, key=lambda each: hashlib.sha256(each.key.encode()).digest())
    figures = []
    for size in (*SIZES, len(catalog)):
        part = ordered[:size]
        start = thread_time()
        index = ToolIndex(part)
        build = thread_time() - start
        asked = [question for question in titles if all(key in index for key in question.answers)][:FEW]
        search = _keys(index)
        found = quality(ranked(search, asked), asked)
        times = _each(search, [question.text for question in asked])
        figures.append(
            Figure(
                f"{size:,} tools: a question, p50",
                median(times),
                "ms",
                p99=p99(times),
                note=f"built in {build * 1000:,.0f} ms; R@5 of {len(asked)} titles {found.recall(5):.3f}",
            )
        )
    return figures


def _memory(catalog: list[Document]) -> list[Figure]:
    part = catalog[:: len(catalog) // MEASURED_FOR_MEMORY][:MEASURED_FOR_MEMORY]
    ToolIndex(part)  # words that are known from here on are no memory of an index
    ours = _kept(lambda: ToolIndex(part)) / len(part)
    theirs = (
        _kept(lambda: PEERS["bm25s"](part)) / len(part) if PEERS["bm25s"](part[:10]) is not None else None
    )
    return [Figure("memory of a tool in the index", ours, "KiB", peer="bm25s", peer_value=theirs)]


def _kept(make: Callable[[], Any]) -> float:
    gc.collect()
    tracemalloc.start()
    kept = make()
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return size / 1024


if __name__ == "__main__":
    report("Tool search: what is found among 20,000 tools, and what it costs", main)
