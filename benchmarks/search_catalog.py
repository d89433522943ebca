"""A real catalog of 20,000 tools and two sets of questions about it, for `benchmarks.search`.

The tools are the operations of botocore; the first questions are the titles of awscli's examples, stripped of what
would give the answer away; the second, `search_requests.tsv`, were written as people and models ask, from the
operations' documentation alone. Both packages are read where they are installed; nothing of them is kept here.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptc_tools.search import Document

REQUESTS = Path(__file__).parent / "search_requests.tsv"
# Commands of awscli whose name is not that of botocore's service.
_COMMANDS = {"s3api": "s3", "configservice": "config", "deploy": "codedeploy"}
_TAG = re.compile(r"<[^>]+>")
_SPACE = re.compile(r"\s+")
_TITLE = re.compile(r"^\*\*(?P<title>.+?)\*\*:?$")
_NUMBER = re.compile(r"^\s*Example\s*\d*\s*[:.\-]\s*", re.IGNORECASE)
_LITERAL = re.compile(r"``.*?``|`[^`]*`_{0,2}|<code>.*?</code>")
_WORD = re.compile(r"[a-z0-9]+")
_SHARED = 6


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks, and the tools of which any one answers it."""

    text: str
    answers: frozenset[str]
    request: bool = False
    """Whether it is one of our own requests."""

    @property
    def service(self) -> str:
        return min(self.answers).partition(".")[0]

    @property
    def tuning(self) -> bool:
        """Whether it belongs to the half of the services that weights were chosen on."""
        return hashlib.sha256(self.service.encode()).digest()[0] % 2 == 0

    def hard(self) -> bool:
        """Half of the words of the tool's name or fewer are in the question, for every tool that answers it."""
        said = set(_words(self.text))
        return all(
            2 * sum(word in said for word in _words(key.partition(".")[2]))
            <= len(_words(key.partition(".")[2]))
            for key in self.answers
        )


def read_catalog() -> list[Document]:
    """Every operation of botocore: names as its clients have them, words without markup."""
    from botocore import xform_name
    from botocore.loaders import Loader

    loader = Loader()
    documents: list[Document] = []
    for service in sorted(loader.list_available_services("service-2")):
        model = loader.load_service_model(service, "service-2")
        shapes, about = model["shapes"], model["metadata"].get("serviceFullName", "")
        for operation, declared in model["operations"].items():
            name = xform_name(operation)
            shape = shapes.get(declared.get("input", {}).get("shape"), {})
            documents.append(
                Document(
                    key=f"{service}.{name}",
                    namespace=service,
                    name=name,
                    description=plain(declared.get("documentation", "")),
                    parameters=_schema(shape, shapes, 2),
                    about=about,
                )
            )
    return documents


def _schema(shape: Mapping[str, Any], shapes: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """The input as a JSON schema, as deep as search reads."""
    kind = shape.get("type", "structure")
    if kind == "list":
        return {"type": "array", "items": _schema(shapes[shape["member"]["shape"]], shapes, depth)}
    if kind != "structure":
        return {"type": "string"}
    if depth == 0:
        return {"type": "object"}
    properties = {}
    for name, member in shape.get("members", {}).items():
        inner = _schema(shapes[member["shape"]], shapes, depth - 1)
        properties[name] = {**inner, "description": plain(member.get("documentation", ""))}
    return {"type": "object", "properties": properties}


def plain(markup: str) -> str:
    return _SPACE.sub(" ", html.unescape(_TAG.sub(" ", markup))).strip()


def read_titles(catalog: Iterable[Document]) -> list[Question]:
    """The first title of each command's examples, where it can be asked without giving the answer away."""
    import awscli

    documents = {document.key: document for document in catalog}
    by_text: dict[str, set[str]] = defaultdict(set)
    for path in sorted((Path(awscli.__file__).parent / "examples").glob("*/*.rst")):
        command = path.stem
        key = f"{_COMMANDS.get(path.parent.name, path.parent.name)}.{command.replace('-', '_')}"
        document = documents.get(key)
        title = None if document is None else _title(path.read_text(encoding="utf-8"), command)
        if document is not None and title and not _gives_away(title, document.description):
            by_text[title].add(key)
    return [Question(text, frozenset(keys)) for text, keys in by_text.items()]


def _title(text: str, command: str) -> str | None:
    for line in text.splitlines():
        found = _TITLE.match(line.strip())
        if found:
            title = _NUMBER.sub("", _LITERAL.sub(" ", found["title"]))
            title = title.replace(command, " ").replace(command.replace("-", "_"), " ")
            return _SPACE.sub(" ", title).strip(" .:") or None
    return None


def _gives_away(title: str, description: str) -> bool:
    return not _runs(title).isdisjoint(_runs(description))


def _runs(text: str) -> set[tuple[str, ...]]:
    words = _words(text)
    return {tuple(words[at : at + _SHARED]) for at in range(len(words) - _SHARED + 1)}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def read_requests(catalog: Iterable[Document]) -> list[Question]:
    """The requests of `search_requests.tsv`: the tools that answer, separated by spaces, a tab, the request."""
    known = {document.key for document in catalog}
    return list(_requests(known))


def _requests(known: set[str]) -> Iterator[Question]:
    for number, line in enumerate(REQUESTS.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        keys, _, text = line.partition("\t")
        if unknown := set(keys.split()) - known:
            raise ValueError(f"{REQUESTS.name}:{number}: no such operation: {', '.join(sorted(unknown))}")
        yield Question(text.strip(), frozenset(keys.split()), request=True)
