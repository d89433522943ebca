"""The key of the peer's state: where it comes from, who may read it, and that two peers make one only."""

from __future__ import annotations

import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from ptc.gateway.seal import Seal, StateKeyError, load_key

SECRET = "a secret of more than sixteen characters"


def test_a_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    """Whoever reads the key can make up programs that the peer then takes for its own."""
    directory = tmp_path / "state"
    first = load_key(directory, {})
    assert load_key(directory, {}) == first
    assert [entry.name for entry in directory.iterdir()] == ["state.key"]
    assert stat.S_IMODE((directory / "state.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_two_directories_have_two_keys(tmp_path: Path) -> None:
    """A key is random: it cannot be guessed from the place."""
    assert load_key(tmp_path / "a", {}) != load_key(tmp_path / "b", {})


def test_the_environments_key_is_taken_before_any_file(tmp_path: Path) -> None:
    """Peers on several machines share a key that way; nothing is written then."""
    assert load_key(tmp_path, {"PTC_STATE_KEY": SECRET}) == load_key(
        tmp_path / "b", {"PTC_STATE_KEY": SECRET}
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", ["", "short"])
def test_a_key_that_is_too_short_is_refused(given: str, tmp_path: Path) -> None:
    """And not made longer in silence; the text says how to make one."""
    with pytest.raises(StateKeyError, match="shorter than 16"):
        load_key(tmp_path, {"PTC_STATE_KEY": given})


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o604])
def test_a_file_that_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    """It may have been read already."""
    load_key(tmp_path, {})
    (tmp_path / "state.key").chmod(mode)
    with pytest.raises(StateKeyError, match="0600"):
        load_key(tmp_path, {})


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Somebody else may have put it there, to a file that they know."""
    load_key(tmp_path / "theirs", {})
    (tmp_path / "state.key").symlink_to(tmp_path / "theirs" / "state.key")
    with pytest.raises(StateKeyError):
        load_key(tmp_path, {})


@pytest.mark.parametrize("content", [b"", b"\n", b"short"])
def test_a_file_without_a_key_is_refused(content: bytes, tmp_path: Path) -> None:
    """An empty key would be one that everybody knows."""
    path = tmp_path / "state.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(StateKeyError, match="holds no key"):
        load_key(tmp_path, {})


def _load(directory: Path, keys: multiprocessing.Queue[bytes]) -> None:
    keys.put(load_key(directory, {}))


def test_peers_that_start_at_once_have_one_key(tmp_path: Path) -> None:
    """Of several writers the first one wins, and no reader sees half a file."""
    context = multiprocessing.get_context("spawn")
    keys = context.Queue()
    peers = [context.Process(target=_load, args=(tmp_path, keys)) for _ in range(4)]
    for peer in peers:
        peer.start()
    found = {keys.get(timeout=60) for _ in peers}
    for peer in peers:
        peer.join(60)
    keys.close()
    keys.join_thread()
    assert len(found) == 1
    assert os.listdir(tmp_path) == ["state.key"]


def test_the_key_is_in_nothing_that_is_sealed(tmp_path: Path) -> None:
    """A sealed text goes to the client."""
    key = load_key(tmp_path, {})
    text = Seal(key).seal("a purpose", {"a": 1})
    for form in (key.hex(), (tmp_path / "state.key").read_text()):
        assert form not in text
