"""Advice about tools: what makes one hard to choose, easy to stretch, or unsafe to repeat.

Findings are advice from the contract alone, by rules of thumb where words are concerned; registration has
refused already what cannot work. Each finding says why it matters and shows a way out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ptc_tools.applied import expanded
from ptc_tools.call import JsonObject
from ptc_tools.contract import Contract
from ptc_tools.lint_bounds import path_of, types_of, unbounded
from ptc_tools.lint_words import alike, two_changes
from ptc_tools.schema import escape, walk


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


_THING = r"object|entity|resource|record|model|table|collection|document"
_SUBJECT = re.compile(rf"(({_THING})(_?(type|name|kind|class))?|type|kind|target_?(type|kind))")
_OPERATION = re.compile(r"(op|operation|action|method|verb|command|do|perform|crud)(_?(type|name|kind))?")
_FREE_TEXT = re.compile(
    r"(\w+_)?(json|payload|fields|attributes|properties|params|parameters|arguments|args|kwargs|data|body|values)"
    r"(_(json|str|string|text))?"
)
_KEYS = frozenset({"key", "name", "field", "attribute", "property", "column"})
_VALUES = frozenset({"value", "val", "content", "data"})
_NAMED = 5
_NAME_AND = re.compile(r"_(and|then)_")


def _properties(contract: Contract) -> dict[str, JsonObject]:
    named = contract.parameters.get("properties")
    if not isinstance(named, dict):
        return {}
    return {name: schema for name, schema in named.items() if isinstance(schema, dict)}


def _all_properties(contract: Contract) -> dict[str, JsonObject]:
    """The parameters; of a tool that wraps all of them in one object, those in it."""
    names = _properties(contract)
    for _ in range(3):
        if len(names) != 1:
            break
        inner: dict[str, JsonObject] = {}
        for part in expanded(list(names.values()), contract.parameters):
            named = part.get("properties")
            if isinstance(named, dict):
                inner |= {name: schema for name, schema in named.items() if isinstance(schema, dict)}
        if not inner:
            break
        names = inner
    return names


def _takes_more(contract: Contract) -> bool:
    return contract.parameters.get("additionalProperties") is not False


def _is_free(name: str, schema: JsonObject, root: JsonObject) -> bool:
    """An object that takes any key, a list of keys and values, or text that is said to hold one."""
    if "string" in types_of(schema) and "enum" not in schema and _FREE_TEXT.fullmatch(_snake(name)):
        return True
    return any(_takes_any_key(member) or _is_pair(member) for member in _reachable(schema, root))


def _takes_any_key(schema: JsonObject) -> bool:
    closed = schema.get("additionalProperties") is False and "properties" in schema
    return "object" in types_of(schema) and not closed


def _is_pair(schema: JsonObject) -> bool:
    named = schema.get("properties")
    names = {_snake(name) for name in named} if isinstance(named, dict) else set()
    return len(names) == 2 and bool(names & _KEYS) and bool(names & _VALUES)


def _reachable(schema: JsonObject, root: JsonObject) -> Iterator[JsonObject]:
    """Every part of a schema, and of what it refers to."""
    waiting, seen = [schema], set[int]()
    while waiting:
        for _, member in walk(waiting.pop()):
            yield member
            for target in expanded([member], root):
                if target is not member and id(target) not in seen:
                    seen.add(id(target))
                    waiting.append(target)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _universal(contract: Contract) -> Iterator[Finding]:
    names = _all_properties(contract)
    subject = [name for name in names if _SUBJECT.fullmatch(_snake(name))]
    operation = [name for name in names if _OPERATION.fullmatch(_snake(name))]
    free = [name for name, schema in names.items() if _is_free(name, schema, contract.parameters)]
    if not (subject and operation and (free or _takes_more(contract))):
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
    # A short commitment does not make a description true that promises two.
    said = (contract.commitment, contract.description.split("\n\n")[0])
    found = next((words for text in said if text and (words := two_changes(text)) is not None), None)
    if found is None:
        if not (_NAME_AND.search(contract.name) and contract.mutates):
            return
        found = contract.name
    yield Finding(
        "two-commitments",
        contract.qualified_name,
        "$.commitment",
        f"seems to commit to two things: {found!r}",
        "if the second fails, the first has happened: no answer to such a call is true",
        "two tools, each with one commitment; a program calls one after the other",
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
    for pointer, member in walk(contract.parameters):
        named = member.get("properties")
        for name, schema in named.items() if isinstance(named, dict) else ():
            if not isinstance(schema, dict) or _is_described(schema, contract.parameters):
                continue
            yield Finding(
                "parameter-without-description",
                contract.qualified_name,
                path_of("parameters", f"{pointer}/properties/{escape(name)}"),
                f"parameter {name!r} has no description",
                "what is not said is guessed, and a wrong guess looks like a right call",
                'an "Args:" line in the docstring, or Annotated[…, Field(description="…")]',
            )


def _is_described(schema: JsonObject, root: JsonObject) -> bool:
    """Whether it, or what it refers to, says more than its default; a constant says all by itself."""
    return "const" in schema or any(
        re.sub(r"(Default|Usually): .*\.$|Usually .*\.$", "", str(part.get("description", ""))).strip()
        for part in expanded([schema], root)
    )


def _unbounded(contract: Contract) -> Iterator[Finding]:
    for place in unbounded(contract):
        yield Finding(
            f"unbounded-{place.what}",
            contract.qualified_name,
            place.path,
            f"a {place.what} without a bound",
            "what has no bound is bounded by the model's context, or by what somebody wants to push through it",
            place.fix,
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


def _near_duplicates(contracts: list[Contract]) -> Iterator[Finding]:
    """One finding for a family of tools, however large it is."""
    for first, others in alike([contract.description for contract in contracts]):
        names = [contracts[index].qualified_name for index in others]
        if len(others) == 1:
            tool, said = names[0], f"is described almost like {contracts[first].qualified_name}"
        else:
            tool = contracts[first].qualified_name
            listed = f"{', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''}"
            said = f"{len(names)} other tools are described almost like it: {listed}"
        yield Finding(
            "near-duplicate",
            tool,
            "$.description",
            said,
            "a model cannot tell them apart and will take either",
            "say in each what the others are not for, or make one tool of them",
        )
