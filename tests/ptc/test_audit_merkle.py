"""Roots and proofs against a second implementation, written from the text of RFC 6962 and C2SP's notes."""

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from ptc.audit.errors import AuditKeyError
from ptc.audit.merkle import (
    Frontier,
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    root,
)
from ptc.audit.notes import Checkpoint, Signer, Verifier, parse

LEAVES = [hashlib.sha256(b"\x00" + str(n).encode()).digest() for n in range(70)]


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def split(n: int) -> int:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def mth(d: list[bytes]) -> bytes:
    """RFC 6962, 2.1: the Merkle tree hash, over leaf hashes."""
    if not d:
        return sha(b"")
    if len(d) == 1:
        return d[0]
    k = split(len(d))
    return sha(b"\x01" + mth(d[:k]) + mth(d[k:]))


def path(m: int, d: list[bytes]) -> list[bytes]:
    """RFC 6962, 2.1.1."""
    if len(d) == 1:
        return []
    k = split(len(d))
    if m < k:
        return [*path(m, d[:k]), mth(d[k:])]
    return [*path(m - k, d[k:]), mth(d[:k])]


def subproof(m: int, d: list[bytes], b: bool) -> list[bytes]:
    """RFC 6962, 2.1.2."""
    if m == len(d):
        return [] if b else [mth(d)]
    k = split(len(d))
    if m <= k:
        return [*subproof(m, d[:k], b), mth(d[k:])]
    return [*subproof(m - k, d[k:], False), mth(d[:k])]


def root_from_path(m: int, n: int, leaf: bytes, proof: list[bytes]) -> bytes:
    """The root that an audit path leads to, followed from the top as the path was made."""
    if n == 1:
        return leaf
    k = split(n)
    if m < k:
        return sha(b"\x01" + root_from_path(m, k, leaf, proof[:-1]) + proof[-1])
    return sha(b"\x01" + proof[-1] + root_from_path(m - k, n - k, leaf, proof[:-1]))


@pytest.mark.parametrize("size", range(len(LEAVES)))
def test_roots_are_those_of_the_rfc(size: int) -> None:
    """Grown one by one, in groups, or computed at once."""
    leaves = LEAVES[:size]
    grown = Frontier()
    grown.extend(leaves[: size // 3])
    for leaf in leaves[size // 3 :]:
        grown.add(leaf)
    assert grown.root() == root(leaves) == mth(leaves)
    assert Frontier(size, grown.roots).root() == mth(leaves)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 31, 32, 33, 64, 69])
def test_inclusion_proofs_are_those_of_the_rfc(size: int) -> None:
    leaves = LEAVES[:size]
    for index in range(size):
        proof = inclusion_proof(leaves, index)
        assert proof == path(index, leaves)
        assert root_from_path(index, size, leaves[index], proof) == mth(leaves)
        assert check_inclusion(leaves[index], index, size, proof, mth(leaves))
        assert not check_inclusion(LEAVES[69], index, size, proof, mth(leaves)) or size == 70
        assert not check_inclusion(leaves[index], index, size, [*proof, LEAVES[0]], mth(leaves))


@pytest.mark.parametrize("size", [2, 3, 5, 8, 13, 31, 32, 33, 64])
def test_consistency_proofs_are_those_of_the_rfc(size: int) -> None:
    leaves = LEAVES[:size]
    for old in range(1, size + 1):
        proof = consistency_proof(leaves, old)
        assert proof == ([] if old == size else subproof(old, leaves, True))
        assert check_consistency(old, mth(leaves[:old]), size, mth(leaves), proof)
        if old < size:
            assert not check_consistency(old, LEAVES[69], size, mth(leaves), proof)
            assert not check_consistency(old, mth(leaves[:old]), size, LEAVES[69], proof)
            assert not check_consistency(old, mth(leaves[:old]), size, mth(leaves), proof[:-1])


@given(st.integers(1, 69), st.integers(0, 68), st.lists(st.sampled_from(LEAVES), max_size=8))
def test_made_up_proofs_prove_nothing(size: int, index: int, proof: list[bytes]) -> None:
    leaves = LEAVES[:size]
    true = index < size and proof == path(index, leaves)
    assert check_inclusion(LEAVES[index], index, size, proof, mth(leaves)) == true


@pytest.mark.parametrize("bad", [(0, -1), (3, 3), (3, -1)])
def test_there_is_no_proof_of_what_is_not_there(bad: tuple[int, int]) -> None:
    size, index = bad
    with pytest.raises(ValueError, match="no such leaf"):
        inclusion_proof(LEAVES[:size], index)


SECRET = bytes(range(32))


def test_a_note_is_what_c2sp_says() -> None:
    """Text, an empty line, a dash, the key's name, and base64 of key hash and Ed25519 signature."""
    signer = Signer("ptc-audit/abc", SECRET)
    note = signer.sign(Checkpoint("ptc-audit/abc", 5, LEAVES[0]))
    text, _, signatures = note.partition("\n\n")
    assert text == f"ptc-audit/abc\n5\n{base64.b64encode(LEAVES[0]).decode()}"
    dash, name, encoded = signatures.rstrip("\n").split(" ")
    assert (dash, name) == ("\u2014", "ptc-audit/abc")
    blob = base64.b64decode(encoded)
    name, hash_text, key_text = signer.verifier_key.split("+", 2)
    key = base64.b64decode(key_text)
    assert key[0] == 1
    assert blob[:4].hex() == hash_text == sha(name.encode() + b"\n" + key)[:4].hex()
    Ed25519PublicKey.from_public_bytes(key[1:]).verify(blob[4:], (text + "\n").encode())


def test_a_note_that_was_changed_is_not_believed() -> None:
    signer = Signer("ptc-audit/abc", SECRET)
    verifier = Verifier(signer.verifier_key)
    note = signer.sign(Checkpoint("ptc-audit/abc", 5, LEAVES[0]))
    assert verifier.check(note) == Checkpoint("ptc-audit/abc", 5, LEAVES[0])
    assert Verifier(Signer("ptc-audit/abc", b"x" * 32).verifier_key).check(note) is None
    for position in range(len(note)):
        changed = note[:position] + ("A" if note[position] != "A" else "B") + note[position + 1 :]
        assert verifier.check(changed) is None or changed.rstrip() == note.rstrip(), position


@pytest.mark.parametrize(
    "text", ["", "a\n5\n", "a\n05\n" + "A" * 44, "a\n-1\n" + "A" * 44, "a\n5\nnot base64"]
)
def test_what_is_no_checkpoint_is_not_one(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize("text", ["", "a", "a+b+c", "a+00000000+AQ==", "a+0000000g+" + "A" * 44])
def test_what_is_no_verifier_key_is_refused(text: str) -> None:
    with pytest.raises(AuditKeyError):
        Verifier(text)
