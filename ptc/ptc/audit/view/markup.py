"""HTML that is escaped by construction: only what `tag` made is markup, every other text is text."""

from __future__ import annotations

from html import escape

from ptc.audit.visible import visible

_VOID = frozenset({"br", "input", "link", "meta", "rect", "line", "circle"})


class Markup(str):
    """Text that is HTML already. Made by `tag` and `join` alone, and by page.py for its own style and script."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """One element. `class_` is `class`, `aria_label` is `aria-label`; None and False leave an attribute out."""
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        parts.append(f" {attribute}" if value is True else f' {attribute}="{escape(visible(str(value)))}"')
    if name in _VOID:
        return Markup("".join(parts) + ">")
    return Markup("".join(parts) + ">" + join(children) + f"</{name}>")


def join(children: tuple[object, ...] | list[Markup]) -> Markup:
    """Several nodes in a row; None is nothing."""
    return Markup("".join(_node(child) for child in children))


def _node(child: object) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return str(child)
    if isinstance(child, (list, tuple)):
        return str(join(tuple(child)))
    return escape(visible(str(child)))
