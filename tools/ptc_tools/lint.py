"""Advice about tools: what makes one hard to choose, easy to stretch, or unsafe to repeat.

Findings are advice from the contract alone, by rules of thumb where words are concerned; registration has
refused already what cannot work. Each finding says why it matters and shows a way out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.contract import Contract
from ptc_tools.schema import walk


@dataclass(frozen=True, slots=True)
class Finding:
    """One piece of advice. `rule` is stable; `fix` is an example."""

    rule: str
    tool: str
    path: str
    message: str
    why: str
    fix: str

    def to_json(self) -> JsonObject:
        return {
            "rule": self.rule,
            "tool": self.tool,
            "path": self.path,
            "message": self.message,
            "why": self.why,
            "fix": self.fix,
        }


def lint(contracts: Iterable[Contract]) -> list[Finding]:
    """All findings, tool by tool in the order given, then those about several tools."""
    listed = list(contracts)
    found = [finding for contract in listed for rule in _RULES for finding in rule(contract)]
    return [*found, *_missing_reads(listed), *_near_duplicates(listed)]


_SUBJECT = re.compile(r"(object|entity|resource|record|model|table|collection)_?(type|name|kind)|type|kind")
_OPERATION = re.compile(r"(op|operation|action|method|verb|command)(_?(type|name))?")
_SENTENCE_AND = re.compile(
    r"\b(create|update|delete|remove|send|cancel|refund|approve|archive|move|rename|close|post|pay|charge|ship|"
    r"publish|notify|email|write|insert|add|set|reset|revoke|grant|transfer|book|order)(?:e?s)?\b"
    r"[^.;]{0,60}?\b(?:and|then|&|und)\b[^.;]{0,40}?"
    r"\b(create|update|delete|remove|send|cancel|refund|approve|archive|move|rename|close|post|pay|charge|ship|"
    r"publish|notify|email|write|insert|add|reset|revoke|grant|transfer|book|order)(?:e?s)?\b",
    re.IGNORECASE,
)
_NAME_AND = re.compile(r"_(and|then)_")


def _properties(contract: Contract) -> dict[str, JsonObject]:
    named = contract.parameters.get("properties")
    if not isinstance(named, dict):
        return {}
    return {name: schema for name, schema in named.items() if isinstance(schema, dict)}


def _is_free_object(schema: JsonObject) -> bool:
    """An object that takes any key, or text that holds one."""
    return any(
        "object" in _types(member)
        and (member.get("additionalProperties") is not False or "properties" not in member)
        for _, member in walk(schema)
    )


def _types(schema: JsonObject) -> list[JsonValue]:
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind]


def _universal(contract: Contract) -> Iterator[Finding]:
    names = _properties(contract)
    subject = [name for name in names if _SUBJECT.fullmatch(name)]
    operation = [name for name in names if _OPERATION.fullmatch(name)]
    free = [name for name, schema in names.items() if _is_free_object(schema)]
    if not (subject and operation and (free or contract.parameters.get("additionalProperties") is not False)):
        return
    yield Finding(
        "universal-tool",
        contract.qualified_name,
        "$.parameters",
        f"takes a type ({subject[0]}), an operation ({operation[0]}) and free fields",
        "one tool that does anything to anything can be neither chosen, authorised nor approved with sense",
        "one tool for each thing to do: close_ticket(ticket_id), add_comment(ticket_id, text)",
    )


def _two_commitments(contract: Contract) -> Iterator[Finding]:
    if contract.effects == "read":
        return
    words = _SENTENCE_AND.search(contract.commitment or contract.description.split("\n\n")[0])
    two_verbs = words is not None and words[1].lower() != words[2].lower()
    if not two_verbs and not (_NAME_AND.search(contract.name) and contract.mutates):
        return
    shown = words[0] if words is not None and two_verbs else contract.name
    yield Finding(
        "two-commitments",
        contract.qualified_name,
        "$.commitment",
        f"seems to commit to two things: {shown!r}",
        "if the second fails, the first has happened: no answer to such a call is true",
        "two tools, each with one commitment; a program calls one after the other",
    )


def _unbounded(contract: Contract) -> Iterator[Finding]:
    for where, schema in (("parameters", contract.parameters), ("output_schema", contract.output_schema)):
        if schema is None:
            continue
        is_result = where == "output_schema"
        ours = _own_words(schema)
        for pointer, member in walk(schema):
            if pointer.startswith(ours):
                continue
            path = _path(where, pointer)
            literal = "enum" in member or "const" in member
            if "string" in _types(member) and not literal and "maxLength" not in member:
                bounded = _says_something(member.get("pattern")) or "format" in member
                if not bounded and not (is_result and (contract.bounds.text or contract.bounds.bytes)):
                    yield _unbounded_finding(contract, path, "text", "maxLength", "max_length=200")
            if "array" not in _types(member) or "maxItems" in member:
                continue
            if not (is_result and (contract.bounds.items or contract.bounds.bytes)):
                yield _unbounded_finding(contract, path, "list", "maxItems", "max_length=50")


def _own_words(schema: JsonObject) -> tuple[str, ...]:
    """Places of what our own return types say (what is missing, a reason): no part of the tool's result."""
    found = []
    for pointer, member in walk(schema):
        named = member.get("properties")
        outcome = named.get("outcome") if isinstance(named, dict) else None
        if isinstance(outcome, dict) and outcome.get("const") in ("empty", "partial", "unavailable"):
            found += [f"{pointer}/properties/{name}" for name in ("missing", "continuation", "reason")]
    return tuple(found)


def _unbounded_finding(contract: Contract, path: str, what: str, keyword: str, example: str) -> Finding:
    return Finding(
        f"unbounded-{what}",
        contract.qualified_name,
        path,
        f"a {what} without a bound",
        "what has no bound is bounded by the model's context, or by what somebody wants to push through it",
        f"Annotated[…, Field({example})] ({keyword}), or bounds=Bounds(…) for results",
    )


def _unsafe_mutation(contract: Contract) -> Iterator[Finding]:
    if not contract.mutates or contract.idempotency or contract.reconciliation:
        return
    yield Finding(
        "mutation-without-recourse",
        contract.qualified_name,
        "$.idempotency",
        "changes something, and has neither idempotency nor a reconciliation read",
        "when the connection breaks nobody can tell whether it happened, nor safely try again",
        'idempotency=Idempotency("protocol") with ctx.idempotency_key, or reconciliation=Reconciliation("…")',
    )


def _no_commitment(contract: Contract) -> Iterator[Finding]:
    if not contract.mutates or contract.commitment:
        return
    yield Finding(
        "mutation-without-commitment",
        contract.qualified_name,
        "$.commitment",
        "changes something, and does not say what it commits to",
        "who approves or audits a call needs to see the one thing that it does",
        'commitment="sets the status of one ticket"',
    )


def _no_effects(contract: Contract) -> Iterator[Finding]:
    if contract.effects is not None:
        return
    yield Finding(
        "undeclared-effects",
        contract.qualified_name,
        "$.effects",
        "does not say whether it reads or changes something",
        "undeclared counts as the worst when contracts are compared, and nothing may retry the tool",
        'effects="read"',
    )


def _says_something(pattern: JsonValue) -> bool:
    """Whether a pattern asks for more than any text."""
    return isinstance(pattern, str) and pattern.strip("^$().*+?") != ""


def _says_nothing(output: JsonObject) -> bool:
    """Whether it is `{}`, or an object with any keys and any values; words do not count."""
    rest = {key: value for key, value in output.items() if key not in ("title", "description", "$schema")}
    if rest.get("additionalProperties") in (True, {}):
        del rest["additionalProperties"]
    return rest in ({}, {"type": "object"})


def _no_output_schema(contract: Contract) -> Iterator[Finding]:
    if "programmatic" not in contract.allowed_callers:
        return
    if contract.output_schema is not None and not _says_nothing(contract.output_schema):
        return
    yield Finding(
        "programmatic-without-output-schema",
        contract.qualified_name,
        "$.output_schema",
        "programs may call it, but its output schema says nothing",
        "a program is written before the result is seen: it computes with fields that may not exist",
        "annotate the return type: -> Inventory, a TypedDict or a dataclass",
    )


def _undescribed(contract: Contract) -> Iterator[Finding]:
    if not contract.description.strip():
        yield Finding(
            "tool-without-description",
            contract.qualified_name,
            "$.description",
            "has no description",
            "a model chooses tools by what they say about themselves",
            "a docstring: what it does, what it returns, when not to use it",
        )
    for name, schema in _properties(contract).items():
        if "$ref" in schema:
            continue
        words = str(schema.get("description", ""))
        if not re.sub(r"Default: .*\.$", "", words).strip():
            yield Finding(
                "parameter-without-description",
                contract.qualified_name,
                f"$.parameters.{name}",
                f"parameter {name!r} has no description",
                "what is not said is guessed, and a wrong guess looks like a right call",
                'an "Args:" line in the docstring, or Annotated[…, Field(description="…")]',
            )


_RULES: tuple[Callable[[Contract], Iterator[Finding]], ...] = (
    _universal,
    _two_commitments,
    _unbounded,
    _unsafe_mutation,
    _no_commitment,
    _no_effects,
    _no_output_schema,
    _undescribed,
)


def _missing_reads(contracts: list[Contract]) -> Iterator[Finding]:
    names = {contract.qualified_name for contract in contracts}
    for contract in contracts:
        if contract.reconciliation is not None and contract.reconciliation.tool not in names:
            yield Finding(
                "reconciliation-missing",
                contract.qualified_name,
                "$.reconciliation",
                f"its reconciliation read {contract.reconciliation.tool} is not among these tools",
                "who is told that a change is uncertain is told to call a tool that does not exist",
                "offer the read wherever the mutation is offered",
            )


_WORD = re.compile(r"\w+")
_ENDING = re.compile(r"(?<=...)(es|s|e)$")
_COMMON = frozenset({"a", "an", "and", "as", "by", "for", "from", "in", "is", "it", "its", "of", "on", "one",
                     "or", "return", "returns", "that", "the", "this", "to", "with"})  # fmt: skip
_ALIKE = 0.8
_FEWEST_WORDS = 3


def _words(contract: Contract) -> frozenset[str]:
    text = contract.description.split("\n\n")[0].lower()
    return frozenset(_ENDING.sub("", word) for word in _WORD.findall(text) if word not in _COMMON)


def _near_duplicates(contracts: list[Contract]) -> Iterator[Finding]:
    """Pairs whose descriptions share nearly all their words; not found by trying all pairs.

    Two sets that share four fifths of their words share one of the rarest words of each, so only tools that
    have such a word in common are compared.
    """
    bags = [_words(contract) for contract in contracts]
    common = Counter(word for bag in bags for word in bag)
    by_rare_word: dict[str, list[int]] = {}
    for index, bag in enumerate(bags):
        if len(bag) < _FEWEST_WORDS:
            continue
        rarest = sorted(bag, key=lambda word: (common[word], word))[
            : len(bag) - math.ceil(_ALIKE * len(bag)) + 1
        ]
        others = sorted({other for word in rarest for other in by_rare_word.get(word, ())})
        for word in rarest:
            by_rare_word.setdefault(word, []).append(index)
        for other in others:
            if len(bag & bags[other]) / len(bag | bags[other]) >= _ALIKE:
                yield Finding(
                    "near-duplicate",
                    contracts[index].qualified_name,
                    "$.description",
                    f"is described almost like {contracts[other].qualified_name}",
                    "a model cannot tell the two apart and will take either",
                    "say in each what the other is not for, or make one tool of both",
                )


def _path(where: str, pointer: str) -> str:
    """A JSON pointer into a schema as the path of the value that it describes."""
    steps, path, index = pointer.split("/")[1:], f"$.{where}", 0
    while index < len(steps):
        step = steps[index]
        if step == "properties" and index + 1 < len(steps):
            path += f".{steps[index + 1]}"
            index += 1
        elif step in ("items", "prefixItems"):
            path += "[*]"
        elif step in ("$defs", "definitions") and index + 1 < len(steps):
            path += f".{step}.{steps[index + 1]}"
            index += 1
        index += 1
    return path
