"""RFC 6962's Merkle tree over the records: roots, inclusion proofs, consistency proofs, and their checks.

Leaves are the records' hashes (`lines.leaf_hash`), in the log's order. `Frontier` grows with the log at one
hash a record; the proofs are made from all leaves when somebody asks, which is seldom.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class Frontier:
    """The roots of the full subtrees of a growing tree, largest first: all that growing on needs."""

    __slots__ = ("roots", "size")

    def __init__(self, size: int = 0, roots: Iterable[bytes] = ()) -> None:
        self.size = size
        self.roots = list(roots)
        if len(self.roots) != size.bit_count():
            raise ValueError("a frontier has one root for each bit of its size")

    def add(self, leaf: bytes) -> None:
        self.extend((leaf,))

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Adds leaves in their order. Written out, since it runs once for every record."""
        roots, size, sha256 = self.roots, self.size, hashlib.sha256
        for node in leaves:
            full = size
            while full & 1:
                node = sha256(b"\x01" + roots.pop() + node).digest()
                full >>= 1
            roots.append(node)
            size += 1
        self.size = size

    def root(self) -> bytes:
        """The tree head; of an empty tree, the hash of nothing."""
        if not self.roots:
            return hashlib.sha256(b"").digest()
        node = self.roots[-1]
        for left in reversed(self.roots[:-1]):
            node = node_hash(left, node)
        return node


def root(leaves: Sequence[bytes]) -> bytes:
    frontier = Frontier()
    frontier.extend(leaves)
    return frontier.root()


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The audit path for the leaf at `index` (from 0) in the tree of all `leaves`."""
    if not 0 <= index < len(leaves):
        raise ValueError("no such leaf")
    path: list[bytes] = []
    start, end = 0, len(leaves)
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(root(leaves[middle:end]))
            end = middle
        else:
            path.append(root(leaves[start:middle]))
            start = middle
    return path[::-1]


def consistency_proof(leaves: Sequence[bytes], old_size: int) -> list[bytes]:
    """Shows that the tree of the first `old_size` leaves is the beginning of the tree of all of them."""
    if not 0 < old_size <= len(leaves):
        raise ValueError("no such size")
    if old_size == len(leaves):
        return []
    path: list[bytes] = []
    start, end, known = 0, len(leaves), True
    while old_size != end - start:
        middle = _split(end - start)
        if old_size <= middle:
            path.append(root(leaves[start + middle : end]))
            end = start + middle
        else:
            path.append(root(leaves[start : start + middle]))
            start, old_size, known = start + middle, old_size - middle, False
    if not known:
        path.append(root(leaves[start:end]))
    return path[::-1]


def check_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], head: bytes) -> bool:
    """RFC 9162, 2.1.3.2: whether the proof ties the leaf at `index` to the tree head of that size."""
    if not 0 <= index < size:
        return False
    node, last, here = leaf, size - 1, index
    for sibling in proof:
        if last == 0:
            return False
        if here & 1 or here == last:
            node = node_hash(sibling, node)
            while not here & 1 and here:
                here, last = here >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        here, last = here >> 1, last >> 1
    return last == 0 and node == head


def check_consistency(old_size: int, old_head: bytes, size: int, head: bytes, proof: Sequence[bytes]) -> bool:
    """RFC 9162, 2.1.4.2: whether the proof shows the old tree to be the beginning of the new one."""
    if old_size == size:
        return not proof and old_head == head
    if not 0 < old_size < size or not proof:
        return False
    path = list(proof)
    if old_size.bit_count() == 1:
        path.insert(0, old_head)
    here, last = old_size - 1, size - 1
    while here & 1:
        here, last = here >> 1, last >> 1
    old_node = new_node = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if here & 1 or here == last:
            old_node, new_node = node_hash(sibling, old_node), node_hash(sibling, new_node)
            while not here & 1 and here:
                here, last = here >> 1, last >> 1
        else:
            new_node = node_hash(new_node, sibling)
        here, last = here >> 1, last >> 1
    return last == 0 and old_node == old_head and new_node == head


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << ((size - 1).bit_length() - 1)
