"""What the columns of an SQLite log must say, by the record beside them: a search must not be led astray."""

from __future__ import annotations

from typing import Any

from ptc_tools.call import JsonObject


def call_of(record: dict[str, Any]) -> JsonObject:
    identity, tool = record.get("identity", {}), record.get("tool", {})
    name = f"{tool['namespace']}.{tool['name']}" if "namespace" in tool else tool.get("name")
    return {"seq": record["seq"], "run": identity.get("run"), "call": identity.get("call"), "tool": name}


def columns_agree(columns: tuple[object, ...], record: dict[str, Any]) -> bool:
    seq, at, type, run, tool, caller, status, arguments = columns
    told = call_of(record)
    origin_of = record.get("origin", {}).get("caller")
    if seq != record["seq"] or at != record.get("at") or _text(type) != record["type"]:
        return False
    if _text(run) != told["run"] or _text(tool) != told["tool"]:
        return False
    if _text(caller) != {"program": "programmatic", "direct": "direct"}.get(origin_of):
        return False
    outcome = record.get("outcome", {}).get("status")
    data = record.get("data")
    if outcome is None and isinstance(data, dict) and told["run"] is not None:
        outcome = data.get("status")
    digest = record.get("content", {}).get("arguments_digest")
    return _text(status) == (outcome if isinstance(outcome, str) else None) and _text(arguments) == digest


def _text(value: object) -> object:
    return value.decode() if isinstance(value, bytes) else value
