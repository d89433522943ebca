"""Search by words and by meaning: BM25F and the nearness of sentence vectors, added up.

It has the face of `ToolIndex`, so a runner takes either. It needs numpy and an encoder (the extra `search-hybrid`),
and encodes each tool once. A view never scores, compares or returns a tool that is not in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Final

from ptc_tools.search.document import Document
from ptc_tools.search.encoders import Encoder, MiniLM, checked_encoder
from ptc_tools.search.errors import SearchUnavailable
from ptc_tools.search.index import DEFAULT, ToolIndex
from ptc_tools.search.kept import Kept
from ptc_tools.search.text import MAX_QUERY, words_of
from ptc_tools.search.vectors import SCALE, Vectors, encoded
from ptc_tools.search.view import LIMIT, Hit, SearchView, check_limit
from ptc_tools.search.weights import Weights

if TYPE_CHECKING:
    from typing import Self

_ROWS: Final = 1024
"""Vectors that lie together: what one changed tool makes to be copied."""
_READ: Final = 600
_VIEWS: Final = 64

NEARNESS: Final = 1.5
"""What a cosine of 1 is worth against the best match of words; chosen as the weights were."""
FLOOR: Final = 0.25
"""What is asked beside the point stays below this, with MiniLM; another encoder may want another."""


class HybridIndex:
    """A `ToolIndex` with a vector for each tool. Making or changing one encodes the new tools, which takes long:
    some milliseconds each, so give it `vectors` in a file where a catalog has thousands.

    A tool scores `bm25 / best bm25 + nearness · cosine`. One that shares no word with the question is found only
    from a cosine of `floor` on. Raises `SearchUnavailable` if a package is missing, `EncoderError` for what an
    encoder gives.
    """

    __slots__ = (
        "_chunks",
        "_free",
        "_numpy",
        "_places",
        "_views",
        "encoder",
        "floor",
        "lexical",
        "nearness",
        "vectors",
    )

    def __init__(
        self,
        documents: Iterable[Document] = (),
        *,
        encoder: Encoder | None = None,
        vectors: Vectors | None = None,
        weights: Weights = DEFAULT,
        nearness: float = NEARNESS,
        floor: float = FLOOR,
    ) -> None:
        self._numpy = _numpy()
        self.encoder: Encoder = MiniLM() if encoder is None else checked_encoder(encoder)
        self.vectors = Vectors() if vectors is None else vectors
        self.nearness = nearness
        self.floor = floor
        self.lexical = ToolIndex(weights=weights)
        self._places: dict[str, int] = {}
        self._free: list[int] = []
        self._chunks: list[Any] = []
        self._views: Kept[SearchView, HybridView] = Kept(_VIEWS)
        added = list(documents)
        self.lexical = ToolIndex(added, weights=weights)
        self._put(added)

    def __len__(self) -> int:
        return len(self.lexical)

    def __contains__(self, key: object) -> bool:
        return key in self.lexical

    def __repr__(self) -> str:
        return f"<HybridIndex of {len(self)} tools, {self.encoder.name}>"

    def document(self, key: str) -> Document | None:
        """The document of this key, or None."""
        return self.lexical.document(key)

    @property
    def fingerprint(self) -> str:
        """That of the documents and weights, with the encoder's name and how the two scores are added."""
        return f"{self.lexical.fingerprint}/{self.encoder.name}/{self.nearness:g}/{self.floor:g}"

    def view(self, keys: Collection[str] | None = None) -> HybridView:
        """What is searched when only these keys may be seen (None: all); see `ToolIndex.view`."""
        lexical = self.lexical.view(keys)
        return self._views.get(lexical, lambda: HybridView(self, lexical))

    def with_changes(self, add: Iterable[Document] = (), remove: Iterable[str] = ()) -> Self:
        """A new index without the tools `remove` names and with those of `add`; see `ToolIndex.with_changes`."""
        added, removed = list(add), list(dict.fromkeys(remove))
        lexical = self.lexical.with_changes(added, removed)
        if lexical is self.lexical:
            return self
        new = type(self)(
            encoder=self.encoder,
            vectors=self.vectors,
            weights=lexical.weights,
            nearness=self.nearness,
            floor=self.floor,
        )
        new.lexical = lexical
        new._places = self._places.copy()
        new._free = [*self._free, *(new._places.pop(key) for key in removed)]
        new._chunks = self._chunks.copy()
        new._put(added)
        return new

    def updated(self, documents: Iterable[Document]) -> Self:
        """An index of exactly these documents; only what differs from this one is counted and encoded."""
        changed, gone = self.lexical.differences(documents)
        return self.with_changes(changed, gone)

    def _put(self, documents: list[Document]) -> None:
        """Only while nobody else has the index."""
        rows = self.vectors.of(self.encoder, [sentence(document) for document in documents])
        own: set[int] = set()
        for document, row in zip(documents, rows, strict=True):
            place = self._free.pop() if self._free else len(self._places)
            self._places[document.key] = place
            chunk = place // _ROWS
            if chunk == len(self._chunks):
                self._chunks.append(self._numpy.zeros((_ROWS, self.encoder.dimensions), dtype="float32"))
            elif chunk not in own:
                self._chunks[chunk] = self._chunks[chunk].copy()
            own.add(chunk)
            self._chunks[chunk][place % _ROWS] = row


class HybridView:
    """Searches some tools of a hybrid index; made by `HybridIndex.view`. Safe to share between threads."""

    __slots__ = ("_index", "_keys", "_lexical", "_numpy", "_rows")

    def __init__(self, index: HybridIndex, lexical: SearchView) -> None:
        self._index = index
        self._lexical = lexical
        self._numpy = index._numpy
        places = index._places
        # A tool's row among the vectors by its place in the words' index, or -1 where the view has no tool.
        self._keys = lexical.keys
        self._rows = self._numpy.array([places[key] if key else -1 for key in self._keys], dtype="int64")

    def __len__(self) -> int:
        return len(self._lexical)

    def search(self, query: str, limit: int = LIMIT) -> tuple[Hit, ...]:
        """The best tools for a question, best first, equal ones by name; only those that match at all.

        Blocks for as long as the encoder takes for one sentence. At most `limit`, which must be positive
        (`ValueError`).
        """
        check_limit(limit)
        np = self._numpy
        if not len(self) or not query.strip():
            return ()
        words = np.zeros(len(self._rows))
        for worth, places, scores in self._lexical.matches(query):
            words[np.frombuffer(places, dtype="uint32")] += worth * np.frombuffer(scores)
        best = words.max()
        nearness = self._nearness(query)
        found = (self._rows >= 0) & ((words > 0) | (nearness >= self._index.floor))
        scores = (words / best if best > 0 else words) + self._index.nearness * nearness
        at = np.flatnonzero(found & (scores > 0))
        if len(at) > limit:
            kept = scores[at]
            at = at[kept >= np.partition(kept, len(at) - limit)[len(at) - limit]]
        hits = [Hit(self._keys[place], float(scores[place])) for place in at]
        hits.sort(key=lambda hit: (-hit.score, hit.key))
        return tuple(hits[:limit])

    def _nearness(self, query: str) -> Any:
        """The cosine of each tool's vector with the question's, by place."""
        np, index = self._numpy, self._index
        (asked,) = encoded(index.encoder, [query[:MAX_QUERY]])
        vector = np.frombuffer(asked, dtype="int16").astype("float32")
        products = np.concatenate([chunk @ vector for chunk in index._chunks]).astype("float64")
        return products[self._rows] / SCALE**2


def sentence(document: Document) -> str:
    """What an encoder reads of a tool: the words of its names, then what it says of itself, cut."""
    names = " ".join(filter(None, (*words_of(document.namespace), document.about, *words_of(document.name))))
    said = ". ".join(part for part in (document.title, *document.terms, document.description) if part)
    return f"{names}. {said[:_READ]}"


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise SearchUnavailable(
            'the hybrid search needs numpy: pip install "ptc-runner[search-hybrid]"'
        ) from None
    return numpy
