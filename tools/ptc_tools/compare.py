"""What became of a contract: the same, other words, narrower, wider, or something else; with reasons.

*Narrower* is proven: everything that the new contract accepts, returns or may do, the old one allowed as
well. *Wider* is the reverse. Whatever can be proven neither way is *incompatible*. A pin that was given to
the old contract covers the new one only where it is identical, documentation or narrower.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.contract import Contract
from ptc_tools.definition import extra_of, form_of
from ptc_tools.errors import InvalidSchema
from ptc_tools.fingerprint import normalised
from ptc_tools.frozen import thaw
from ptc_tools.publication import Publication
from ptc_tools.schema import escape, resolve, shorten
from ptc_tools.strict_json import canonical, dumps
from ptc_tools.subsume import accepts_all_of

Verdict: TypeAlias = Literal["identical", "documentation", "narrower", "wider", "incompatible"]
COVERED: frozenset[Verdict] = frozenset({"identical", "documentation", "narrower"})
_EFFECTS = ("read", "write", "destructive", None)  # undeclared is worse than anything declared
_RISKS = ("low", "medium", "high", None)
_APPROVALS = ("always", "never")
_PROJECTIONS = ("partial", "full")
_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Reason:
    """One difference: where (a JSON path into the contract), what it is, and what it alone amounts to."""

    path: str
    verdict: Verdict
    change: str

    def __str__(self) -> str:
        return f"{self.path}: {self.change} ({self.verdict})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict over all reasons. `covered` says whether a pin on the old contract holds for the new."""

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()

    @property
    def covered(self) -> bool:
        return self.verdict in COVERED


def compare(old: Contract, new: Contract) -> Comparison:
    """Compare two versions of one tool's contract. Identical ones have one fingerprint."""
    reasons = list(_differences(old, new))
    if not reasons and old.fingerprint() != new.fingerprint():
        # What the model is shown, say, beside what a call is checked against: a pin must not pass over it.
        reasons.append(Reason("$.parameters", "documentation", "shown in another way"))
    return Comparison(*_combined(reasons))


def compare_schemas(old: JsonValue, new: JsonValue) -> Comparison:
    """Compare two schemas by the values that they accept."""
    reasons = list(_schema_reasons(old, new, "$"))
    verdict = _judge(old, new)
    if verdict == "identical" and reasons:
        verdict = "documentation"
    return Comparison(verdict, tuple(reasons))


def _combined(reasons: list[Reason]) -> tuple[Verdict, tuple[Reason, ...]]:
    found = {reason.verdict for reason in reasons} - {"identical", "documentation"}
    if not found:
        return ("documentation" if reasons else "identical"), tuple(reasons)
    verdict = found.pop() if len(found) == 1 else "incompatible"
    return verdict, tuple(reasons)


def _differences(old: Contract, new: Contract) -> Iterator[Reason]:
    if (old.namespace, old.name) != (new.namespace, new.name):
        yield Reason(
            "$.name", "incompatible", f"{old.qualified_name} is another tool than {new.qualified_name}"
        )
    yield from _schema_difference("$.parameters", old.checked_parameters, new.checked_parameters)
    yield from _schema_difference("$.output_schema", _anything(old), _anything(new))
    if (old.output_schema is None) != (new.output_schema is None):
        yield Reason("$.output_schema", "documentation", "a schema is shown, or no longer")
    for name, ranks in (
        ("effects", _EFFECTS),
        ("risk_level", _RISKS),
        ("approval", _APPROVALS),
        ("projection", _PROJECTIONS),
    ):
        yield from _ranked(
            f"$.{name}", getattr(old, name), getattr(new, name), cast("tuple[object, ...]", ranks)
        )
    for name in ("allowed_callers", "authority"):
        yield from _sets(f"$.{name}", getattr(old, name), getattr(new, name), more="wider", fewer="narrower")
    for name in ("sensitive_parameters", "sensitive_results"):
        yield from _sets(f"$.{name}", getattr(old, name), getattr(new, name), more="narrower", fewer="wider")
    for name in ("items", "text", "depth", "bytes"):
        yield from _limit(f"$.bounds.{name}", getattr(old.bounds, name), getattr(new.bounds, name))
    yield from _limit("$.timeout", old.timeout, new.timeout)
    yield from _search(old, new)
    # What is idempotent may be run again without asking anybody; a read that tells only helps.
    yield from _promise("$.idempotency", old.idempotency, new.idempotency, "wider")
    yield from _promise("$.reconciliation", old.reconciliation, new.reconciliation, "narrower")
    # A first word of what a mutation commits to: nobody can tell whether it did the same before.
    verdict: Verdict = "documentation" if old.commitment is None and not old.mutates else "incompatible"
    yield from _words("$.commitment", old.commitment, new.commitment, verdict)
    yield from _words("$.extra", extra_of(old), extra_of(new), "incompatible")
    yield from _definitions(old, new)
    yield from _published(old.publication, new.publication)
    for name in ("description", "tags", "version", "defer_loading", "strict"):
        yield from _words(f"$.{name}", getattr(old, name), getattr(new, name), "documentation")
    yield from _words("$.bounds.offset", old.bounds.offset, new.bounds.offset, "documentation")


_SHOWN = frozenset({"title", "search_terms", "fields"})


def _published(old: Publication | None, new: Publication | None) -> Iterator[Reason]:
    """What consumers are told: words are documentation; who runs it, what is asked and what is given are not."""
    # Without a publication a tool is what most are: a service, and nothing more is said of it.
    before: JsonObject = {"kind": "service"} if old is None else old.to_json()
    after: JsonObject = {"kind": "service"} if new is None else new.to_json()
    for name in sorted({*before, *after}):
        verdict: Verdict = "documentation" if name in _SHOWN else "incompatible"
        yield from _words(f"$.publication.{name}", before.get(name), after.get(name), verdict)


def _anything(contract: Contract) -> JsonObject:
    """Without an output schema a tool may return anything."""
    return {} if contract.output_schema is None else contract.output_schema


def _schema_difference(path: str, old: JsonValue, new: JsonValue) -> Iterator[Reason]:
    """The reasons of a schema; if they do not add up to what is proven about the whole, that too."""
    comparison = compare_schemas(old, new)
    reasons = [
        Reason(path + reason.path.removeprefix("$"), reason.verdict, reason.change)
        for reason in comparison.reasons
    ]
    yield from reasons
    if _combined(reasons)[0] != comparison.verdict:
        yield Reason(path, comparison.verdict, "taken as a whole")


def _judge(old: JsonValue, new: JsonValue) -> Verdict:
    narrower, wider = accepts_all_of(old, new), accepts_all_of(new, old)
    if narrower and wider:
        return "identical"
    return "narrower" if narrower else "wider" if wider else "incompatible"


def _ranked(path: str, old: object, new: object, ranks: tuple[object, ...]) -> Iterator[Reason]:
    if old != new:
        wider = ranks.index(new) > ranks.index(old)
        yield Reason(path, "wider" if wider else "narrower", f"{old or 'undeclared'} → {new or 'undeclared'}")


def _sets(
    path: str, old: Collection[str], new: Collection[str], *, more: Verdict, fewer: Verdict
) -> Iterator[Reason]:
    if added := sorted(set(new) - set(old)):
        yield Reason(path, more, f"{', '.join(added)} added")
    if gone := sorted(set(old) - set(new)):
        yield Reason(path, fewer, f"{', '.join(gone)} removed")


def _limit(path: str, old: float | None, new: float | None) -> Iterator[Reason]:
    if old == new:
        return
    wider = new is None or (old is not None and new > old)
    yield Reason(path, "wider" if wider else "narrower", f"{_or_none(old)} → {_or_none(new)}")


def _or_none(limit: float | None) -> str:
    return "none" if limit is None else f"{limit:g}"


def _search(old: Contract, new: Contract) -> Iterator[Reason]:
    before, after = old.bounds.search, new.bounds.search
    if before is not None and after is not None and (before.start, before.end) == (after.start, after.end):
        yield from _limit("$.bounds.search.limit", before.limit, after.limit)
    elif before is None and after is not None:
        yield Reason("$.bounds.search", "narrower", "a range is bounded now")
    elif before is not None and after is None:
        yield Reason("$.bounds.search", "wider", "the range is no longer bounded")
    elif before != after:
        yield Reason("$.bounds.search", "incompatible", "another range is bounded")


def _promise(path: str, old: object, new: object, first: Verdict) -> Iterator[Reason]:
    """A promise about mutations: `first` is what one more amounts to; one less or another breaks who relied on it."""
    if old == new:
        return
    yield Reason(path, first if old is None else "incompatible", "declared" if old is None else "changed")


def _words(path: str, old: object, new: object, verdict: Verdict) -> Iterator[Reason]:
    if old != new:
        yield Reason(path, verdict, shorten(f"{old!r} → {new!r}", 160))


def _definitions(old: Contract, new: Contract) -> Iterator[Reason]:
    """How a raw definition writes what the fields say: `strict` absent or false, for instance."""
    if form_of(old) != form_of(new):
        yield Reason("$.definition", "documentation", "written in another way")


def _schema_reasons(old: JsonValue, new: JsonValue, path: str) -> Iterator[Reason]:
    old, new = thaw(old), thaw(new)
    yield from _Walk(old, new).reasons(old, new, path, _DEPTH)


class _Walk:
    """Goes down two schemas side by side and names the smallest places where they differ."""

    def __init__(self, old: JsonValue, new: JsonValue) -> None:
        self._old = old if isinstance(old, dict) else {}
        self._new = new if isinstance(new, dict) else {}

    def reasons(self, old: JsonValue, new: JsonValue, path: str, depth: int) -> Iterator[Reason]:
        old, new = _target(old, self._old), _target(new, self._new)
        if canonical(normalised(old)) == canonical(normalised(new)) and not _refers(old):
            return
        if canonical(normalised(old, words=False)) == canonical(normalised(new, words=False)):
            if canonical(normalised(old)) != canonical(normalised(new)):
                yield Reason(path, "documentation", "other words")
            if not _refers(old):
                return
        if depth == 0:
            return
        if _is(old, "object") and _is(new, "object"):
            yield from self._objects(cast("JsonObject", old), cast("JsonObject", new), path, depth)
        elif _is(old, "array") and _is(new, "array"):
            yield from self._arrays(cast("JsonObject", old), cast("JsonObject", new), path, depth)
        elif canonical(normalised(old, words=False)) != canonical(normalised(new, words=False)):
            verdict = self._judged(old, new)
            yield Reason(path, verdict, shorten(f"{_shown(old)} → {_shown(new)}", 200))

    def _objects(self, old: JsonObject, new: JsonObject, path: str, depth: int) -> Iterator[Reason]:
        before, after = _object(old, "properties"), _object(new, "properties")
        for name in sorted({*before, *after}):
            place = f"{path}.{escape(name)}"
            if name in before and name in after:
                yield from self.reasons(before[name], after[name], place, depth - 1)
            elif name in after:
                yield Reason(place, self._added(old, name, after[name]), "property added")
            else:
                # To remove is the reverse of to add.
                reverse: dict[Verdict, Verdict] = {"wider": "narrower", "narrower": "wider"}
                verdict = self._added({**old, "properties": _without(before, name)}, name, before[name])
                yield Reason(place, reverse.get(verdict, verdict), "property removed")
        yield from self._keywords(old, new, path, {"properties"})

    def _added(self, base: JsonObject, name: str, schema: JsonValue) -> Verdict:
        properties = {**_object(base, "properties"), name: schema}
        return self._judged(base, {**base, "properties": properties})

    def _arrays(self, old: JsonObject, new: JsonObject, path: str, depth: int) -> Iterator[Reason]:
        if "items" in old and "items" in new:
            yield from self.reasons(old["items"], new["items"], f"{path}[*]", depth - 1)
            yield from self._keywords(old, new, path, {"items"})
        else:
            yield from self._keywords(old, new, path, set())

    def _keywords(self, old: JsonObject, new: JsonObject, path: str, apart: set[str]) -> Iterator[Reason]:
        """Every other keyword, judged as if it alone had changed."""
        skipped = apart | {"$defs", "definitions"}
        for keyword in sorted({*old, *new} - skipped):
            if canonical(old.get(keyword)) == canonical(new.get(keyword)) and (keyword in old) == (
                keyword in new
            ):
                continue
            changed = _without(old, keyword)
            if keyword in new:
                changed[keyword] = new[keyword]
            if canonical(normalised(old, words=False)) == canonical(normalised(changed, words=False)):
                if canonical(normalised(old)) != canonical(normalised(changed)):
                    yield Reason(f"{path}.{keyword}", "documentation", "other words")
                continue
            change = shorten(f"{_shown(old.get(keyword))} → {_shown(new.get(keyword))}", 200)
            yield Reason(f"{path}.{keyword}", self._judged(old, changed), change)

    def _judged(self, old: JsonValue, new: JsonValue) -> Verdict:
        """The verdict over two parts, each with the definitions of the schema that it stands in."""
        return _judge(_rooted(old, self._old), _rooted(new, self._new if self._new else self._old))


def _rooted(part: JsonValue, root: JsonObject) -> JsonValue:
    if not isinstance(part, dict):
        return part
    return {**part, **{key: root[key] for key in ("$defs", "definitions") if key in root}}


def _target(schema: JsonValue, root: JsonObject) -> JsonValue:
    seen: set[str] = set()
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        reference = cast("str", schema["$ref"])
        if reference in seen:
            return schema
        seen.add(reference)
        try:
            schema = resolve(root, reference)
        except InvalidSchema:
            return schema
    return schema


def _refers(schema: JsonValue) -> bool:
    return any(word in canonical(schema) for word in (b'"$ref"', b'"$dynamicRef"', b'"$recursiveRef"'))


def _is(schema: JsonValue, kind: str) -> bool:
    return isinstance(schema, dict) and schema.get("type") == kind


def _object(schema: JsonObject, keyword: str) -> JsonObject:
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _without(schema: JsonObject, keyword: str) -> JsonObject:
    return {key: value for key, value in schema.items() if key != keyword}


def _shown(value: JsonValue) -> str:
    return "nothing" if value is None else shorten(dumps(value), 80)


def widest(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict over several contracts at once, as for the reasons of one."""
    return _combined([Reason("$", verdict, "") for verdict in verdicts if verdict != "identical"])[0]
