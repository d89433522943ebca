"""What the kernel must enforce around a program: named levels, each a frozen value.

A `Confinement` may be told which layers are off, wanted or required; it crosses to the fork server as JSON
and its digest goes into journals and the audit log. It enforces nothing itself and asks nothing of the
machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any, Final, Literal

Want = Literal["off", "if-available", "required"]
"""`if-available` layers are used where the machine has them and reported either way; only `required` ones
are promised, and a machine that cannot give one refuses to run programs."""

Layer = Literal[
    "namespaces", "user", "rlimits", "no_new_privs", "landlock", "seccomp", "descriptors", "cgroup"
]
LAYERS: Final[tuple[Layer, ...]] = (
    "namespaces",
    "user",
    "rlimits",
    "no_new_privs",
    "landlock",
    "seccomp",
    "descriptors",
    "cgroup",
)

Namespace = Literal["net", "ipc", "uts", "mnt", "pid"]
NAMESPACES: Final[tuple[Namespace, ...]] = ("net", "ipc", "uts", "mnt", "pid")

_WANTS: Final = ("off", "if-available", "required")
_VERSION: Final = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Confinement:
    """Which kernel layers hold a program. Take a named level and derive from it; frozen, comparable,
    hashable.

    `strict()`    every layer, namespaces required too
    `standard()`  the default: uid drop (when root), rlimits, no_new_privs, Landlock, seccomp are required;
                  namespaces and cgroups are used where the machine has them
    `minimal()`   rlimits, no_new_privs, seccomp and the uid drop: for kernels without Landlock
    `none()`      no kernel wall at all: only for tests of the language wall alone

    A required layer that the machine cannot give is an error (`ConfinementUnavailable` at the host), never a
    weaker run: the operator passes the weaker level by its name.
    """

    name: str
    namespaces: Want = "off"
    user: Want = "off"
    rlimits: Want = "off"
    no_new_privs: Want = "off"
    landlock: Want = "off"
    seccomp: Want = "off"
    descriptors: Want = "off"
    cgroup: Want = "off"
    namespace_kinds: tuple[Namespace, ...] = NAMESPACES
    landlock_abi: int = 1
    """The least Landlock ABI that counts as having the layer; what a newer kernel has is used anyway."""
    uid: int | None = None
    """The id to run programs as when the host is root. None: one that no account has, for each program
    anew."""
    cgroup_parent: str | None = None
    """A cgroup v2 directory that was delegated to us. None: the one the host is in, or the one above."""
    cgroup_memory: int | None = None
    """Bytes for all programs of a sandbox together. None: what each may have, times how many may run."""

    def __post_init__(self) -> None:
        for layer in LAYERS:
            if self.want(layer) not in _WANTS:
                raise ValueError(f"{layer} is {self.want(layer)!r}: must be one of {', '.join(_WANTS)}")
        unknown = set(self.namespace_kinds) - set(NAMESPACES)
        if unknown:
            raise ValueError(f"unknown namespaces {sorted(unknown)}: know {', '.join(NAMESPACES)}")
        if self.no_new_privs == "off" and (self.seccomp != "off" or self.landlock != "off"):
            raise ValueError("seccomp and Landlock need no_new_privs: the kernel refuses them without it")
        if self.uid is not None and not 0 < self.uid < 0xFFFF_FFFF:
            raise ValueError(f"uid {self.uid} is not an unprivileged user id")
        if self.landlock_abi < 1:
            raise ValueError("landlock_abi starts at 1")
        if self.cgroup_memory is not None and self.cgroup_memory <= 0:
            raise ValueError("cgroup_memory is positive")

    @classmethod
    def default(cls) -> Confinement:
        """The level used when none is named: `standard()`."""
        return cls.standard()

    @classmethod
    def strict(cls) -> Confinement:
        """Every layer required, namespaces too; cgroups where they are delegated."""
        return dataclasses.replace(cls.standard(), name="strict", namespaces="required")

    @classmethod
    def standard(cls) -> Confinement:
        """What any Linux since 5.13 gives without configuration; namespaces and cgroups where it has them."""
        return dataclasses.replace(
            cls.minimal(),
            name="standard",
            landlock="required",
            namespaces="if-available",
            cgroup="if-available",
        )

    @classmethod
    def minimal(cls) -> Confinement:
        """For kernels without Landlock, or where namespaces do harm: the uid drop, rlimits and seccomp."""
        return cls(
            name="minimal",
            user="required",
            rlimits="required",
            no_new_privs="required",
            seccomp="required",
            descriptors="required",
        )

    @classmethod
    def none(cls) -> Confinement:
        """No kernel wall. For tests of the language wall alone; must be asked for by this name."""
        return cls(name="none")

    def want(self, layer: Layer) -> Want:
        """How much this policy wants `layer`."""
        value: Want = getattr(self, layer)
        return value

    def with_layer(self, layer: Layer, want: Want) -> Confinement:
        """The same policy with one layer wanted differently; its name says so."""
        if layer not in LAYERS:
            raise ValueError(f"unknown layer {layer!r}: know {', '.join(LAYERS)}")
        return self._derive(f"{layer}={want}", **{layer: want})

    def with_namespaces(self, *kinds: Namespace, want: Want = "required") -> Confinement:
        """The same policy with just these namespaces."""
        return self._derive(f"namespaces={','.join(kinds)}", namespaces=want, namespace_kinds=kinds)

    def with_landlock_abi(self, least: int) -> Confinement:
        """The same policy, where a kernel whose Landlock is older than ABI `least` does not count."""
        return self._derive(f"landlock>={least}", landlock="required", landlock_abi=least)

    def with_uid(self, uid: int) -> Confinement:
        """The same policy with a fixed user and group id for programs (used when the host is root)."""
        return self._derive(f"uid={uid}", uid=uid)

    def with_cgroup(self, parent: str, want: Want = "required", *, memory: int | None = None) -> Confinement:
        """The same policy with the cgroup v2 directory that was delegated to this host, and what all programs of
        a sandbox may take together, in bytes."""
        return self._derive("cgroup", cgroup=want, cgroup_parent=parent, cgroup_memory=memory)

    def _derive(self, suffix: str, **changes: Any) -> Confinement:
        return dataclasses.replace(self, name=f"{self.name}+{suffix}", **changes)

    def to_json(self) -> str:
        """One line of JSON with a version, for the fork server and for records."""
        return json.dumps(
            {"version": _VERSION, **dataclasses.asdict(self)}, sort_keys=True, separators=(",", ":")
        )

    @classmethod
    def from_json(cls, text: str) -> Confinement:
        """The inverse of `to_json`. ValueError for another version, unknown fields or unknown values."""
        data = json.loads(text)
        if not isinstance(data, dict) or data.pop("version", None) != _VERSION:
            raise ValueError("not a confinement of this version")
        unknown = set(data) - {field.name for field in dataclasses.fields(cls)}
        if unknown or "name" not in data:
            raise ValueError(f"not a confinement: unknown or missing fields {sorted(unknown) or ['name']}")
        data["namespace_kinds"] = tuple(data.get("namespace_kinds", NAMESPACES))
        return cls(**data)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what is enforced; the name does not count, so equal policies have equal
        digests."""
        anonymous = dataclasses.replace(self, name="")
        return hashlib.sha256(anonymous.to_json().encode()).hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class Resources:
    """What one program may take, in bytes and seconds, enforced by rlimits (the host bounds wall clock)."""

    memory: int = 256 * 1024 * 1024
    """Bytes of private memory beyond what the interpreter has mapped already."""
    cpu_s: float = 10.0
    """CPU seconds; rounded up to whole ones (RLIMIT_CPU), so the host keeps the finer account."""
    stack: int = 8 * 1024 * 1024
    """Bytes of C stack."""
    programs: int = 64
    """How many children there may be at once: bounds the control group, where there is one."""

    def __post_init__(self) -> None:
        if min(self.memory, self.cpu_s, self.stack, self.programs) <= 0:
            raise ValueError("memory, cpu_s, stack and programs are positive")


@dataclasses.dataclass(frozen=True, slots=True)
class LayerReport:
    """Whether one layer holds here, by what evidence, and what an operator can do if it does not."""

    layer: str
    want: Want
    holds: bool
    evidence: str
    advice: str = ""

    @property
    def missing(self) -> bool:
        """Whether the policy promises this layer and the machine does not give it."""
        return self.want == "required" and not self.holds

    def to_json(self) -> dict[str, str | bool]:
        """A plain object, for the wire and for `ptc doctor --json`."""
        return {
            "layer": self.layer,
            "want": self.want,
            "holds": self.holds,
            "evidence": self.evidence,
            "advice": self.advice,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LayerReport:
        """The inverse of `to_json`."""
        return cls(
            layer=str(data["layer"]),
            want=data["want"],
            holds=bool(data["holds"]),
            evidence=str(data["evidence"]),
            advice=str(data.get("advice", "")),
        )


class LayerUnavailable(Exception):
    """A required layer cannot be had. Raised on the fork server's side, where only the standard library is;
    its `report` crosses to the host, which raises `ConfinementUnavailable` (a `PtcError`) from it."""

    def __init__(self, report: LayerReport) -> None:
        super().__init__(f"{report.evidence}. {report.advice}".rstrip(" ."))
        self.report = report

    @property
    def layer(self) -> str:
        """Which one."""
        return self.report.layer
