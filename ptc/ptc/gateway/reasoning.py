"""Reasoning in a request's input: its content is ours and unchanged, and it keeps what follows it."""

from __future__ import annotations

from collections.abc import Callable

from ptc.gateway.ids import Place, place_of
from ptc.gateway.rejection import Rejected, invalid
from ptc.gateway.seal import Seal, SealError
from ptc_tools.call import JsonObject

ENCRYPTED_REASONING = "encrypted reasoning"


def encrypt(seal: Seal, item_id: str) -> str:
    """The `encrypted_content` of a reasoning item: there is no thought in it, only whose it is."""
    return seal.seal(ENCRYPTED_REASONING, {"id": item_id})


def check_content(seal: Seal, item: JsonObject, where: str, is_stored: Callable[[str], bool]) -> None:
    """Raise `Rejected` unless the item carries its own content, or is stored with the peer."""
    sealed = item.get("encrypted_content")
    if sealed is None:
        if not is_stored(str(item["id"])):
            raise Rejected(
                f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to "
                "false. Try again with `store` set to true, or remove this item from your input.",
                param="input",
                status=404,
            )
        return
    try:
        content = seal.open(ENCRYPTED_REASONING, str(sealed))
    except SealError as error:
        raise invalid(
            f"{where}.encrypted_content",
            f"The encrypted content for item {item['id']} could not be verified. Reason: Encrypted "
            "content could not be decrypted or parsed.",
            code="invalid_encrypted_content",
        ) from error
    if content.get("id") != item["id"]:
        raise invalid(f"{where}.encrypted_content", "Encrypted content item_id did not match the item id.")


def check_order(before: JsonObject | None, item: JsonObject, *, by_model: bool) -> None:
    """Raise `Rejected` where reasoning is parted from what follows it, either way (wire.md, rule 9).

    `by_model`: whether an item of this type is the model's; an id may be left out where the API has it
    optional, and then that is all that can be judged.
    """
    place = place_of(item.get("id"))
    reasoned = before is not None and before.get("type") == "reasoning"
    if before is not None and reasoned and (start := place_of(before.get("id"))) is not None:
        expected = Place(start.turn, start.ordinal + 1, after_reasoning=True)
        if place != expected and (place is not None or not by_model):
            raise without_following(before)
    if place is not None and place.after_reasoning and not reasoned:
        raise invalid(
            "input",
            f"Item '{item['id']}' of type '{item['type']}' was provided without its required "
            "'reasoning' item.",
        )


def without_following(item: JsonObject) -> Rejected:
    return invalid(
        "input",
        f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
    )
