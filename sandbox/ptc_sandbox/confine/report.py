"""The host's side of the kernel wall: what this machine enforces, layer by layer, found by attacking it.

`probe` starts throw-away processes and changes nothing in the caller; it is what `ptc doctor` prints. It
never takes a layer's word: a layer holds when, alone, it stopped every attack that it has to stop.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from ptc_sandbox.confine.attacks import ATTACKS
from ptc_sandbox.confine.cgroup import find_parent
from ptc_sandbox.confine.landlock import abi as landlock_abi
from ptc_sandbox.confine.levels import LAYERS, Confinement, Layer, LayerReport, LayerUnavailable, Want
from ptc_sandbox.confine.trial import Answer, Outcome, Request
from ptc_sandbox.errors import ConfinementUnavailable

TOGETHER: Final = "together"
"""The name of the last report: every layer of the policy at once."""

_BOOT: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); from ptc_sandbox.confine.trial import main; main()"
)
_ROOT: Final = str(Path(__file__).parents[2])
_PATIENCE_S: Final = 120
_ORDINARY: Final = 65534

_NOT_TRIED: Final[tuple[Layer, ...]] = ("cgroup",)  # the host's own layer: looked at, not attacked


def run_trial(request: Request, *, under: Sequence[str] = ()) -> Answer:
    """Try one request in a process of its own. RuntimeError with what it said if that process breaks.

    `under` is a command that the trial is started by, to try what a container would leave of us.
    """
    with tempfile.TemporaryDirectory(prefix="ptc-trial-", dir=_for_anybody()) as directory:
        os.chmod(directory, 0o777)  # noqa: S103 - a trial of another user shall be able to write, unconfined
        finished = subprocess.run(  # noqa: S603 - our own interpreter and our own code
            [*under, sys.executable, "-s", "-S", "-P", "-c", _BOOT, _ROOT],
            input=dataclasses.replace(request, directory=directory).to_json(),
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            env={"PYTHONHASHSEED": "0", "PATH": os.defpath},
            check=False,
        )
    if finished.returncode:
        raise RuntimeError(f"the trial ended with {finished.returncode}: {finished.stderr[-2000:]}")
    return Answer.from_json(finished.stdout)


def _for_anybody() -> str | None:
    """A place that every user reaches, unlike the host's TMPDIR perhaps: what is out of reach proves nothing."""
    return next((place for place in ("/tmp", "/var/tmp") if os.access(place, os.W_OK)), None)  # noqa: S108


def alone(layer: Layer) -> Confinement:
    """A policy of one layer, required, and nothing else (but no_new_privs, where the kernel insists on
    it)."""
    bare = Confinement(f"{layer} alone")
    if layer in ("seccomp", "landlock"):
        bare = dataclasses.replace(bare, no_new_privs="required")
    return dataclasses.replace(bare, **{layer: "required"})  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True, slots=True)
class LevelReport:
    """Whether a named level can be had here; `missing` are the layers it promises that do not hold."""

    name: str
    reachable: bool
    missing: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Examination:
    """All that `ptc doctor` knows: each layer of the strictest level, and which levels can be had.

    `together` is every attack against the strongest level that can be had; None if none can.
    """

    machine: dict[str, str]
    layers: tuple[LayerReport, ...]
    levels: tuple[LevelReport, ...]
    together: LayerReport | None

    def to_json(self) -> dict[str, object]:
        """A plain object for `ptc doctor --json`."""
        return {
            "machine": self.machine,
            "layers": [layer.to_json() for layer in self.layers],
            "levels": [dataclasses.asdict(level) for level in self.levels],
            "default": Confinement.default().name,
            "together": self.together and self.together.to_json(),
        }


def examine() -> Examination:
    """Try every layer there is, whatever the policy, and say which named levels this machine reaches."""
    layers = tuple(_probe_layers(Confinement.strict()))
    holds = {report.layer: report.holds for report in layers}
    levels: list[LevelReport] = []
    reached: Confinement | None = None
    for level in (Confinement.strict(), Confinement.standard(), Confinement.minimal()):
        missing = tuple(layer for layer in LAYERS if level.want(layer) == "required" and not holds[layer])
        levels.append(LevelReport(level.name, not missing, missing))
        reached = reached or (None if missing else level)
    together = _probe_together(reached) if reached is not None else None
    return Examination(_machine(), layers, tuple(levels), together)


def probe(confinement: Confinement) -> list[LayerReport]:
    """What of `confinement` this machine enforces: a report for each layer, and one for all of them together.

    Each layer is tried alone, by every attack that it has to stop; takes a few seconds. A report with
    `.missing` is a promise that cannot be kept here; `require` raises for it.
    """
    return [*_probe_layers(confinement), _probe_together(confinement)]


def _probe_layers(confinement: Confinement) -> list[LayerReport]:
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        baselines = {uid: pool.submit(_possible, uid) for uid in _users()}
        trials = [pool.submit(_probe_layer, confinement, layer) for layer in LAYERS]
        possible = {uid: future.result() for uid, future in baselines.items()}
        return [_judge(confinement, *trial.result(), possible) for trial in trials]


def _machine() -> dict[str, str]:
    system = os.uname()
    return {
        "kernel": f"{system.sysname} {system.release}",
        "machine": system.machine,
        "python": platform.python_version(),
        "user": "root" if os.geteuid() == 0 else f"uid {os.geteuid()}",
    }


def require(reports: Iterable[LayerReport]) -> None:
    """Raise `ConfinementUnavailable` for the first layer that is promised and does not hold."""
    for report in reports:
        if report.missing:
            raise ConfinementUnavailable(report.layer, f"{report.evidence}. {report.advice}".rstrip(" ."))


_Trials = dict[int | None, Answer]


def _users() -> tuple[int | None, ...]:
    """As whom to try: as we are, and for root as an ordinary user too, since root is exempt from some
    limits."""
    return (None, _ORDINARY) if os.geteuid() == 0 else (None,)


def _must_stop(layer: Layer, uid: int | None) -> tuple[str, ...]:
    as_root = uid is None and os.geteuid() == 0
    have = landlock_abi()
    return tuple(
        name
        for name, attack in ATTACKS.items()
        if attack.is_stopped_by(layer, as_root=as_root, landlock_abi=have) and _is_possible_at_all(name)
    )


def _is_possible_at_all(name: str) -> bool:
    """32-bit calls and x32 exist on x86-64 only."""
    return os.uname().machine == "x86_64" or name not in ("call_by_x32", "call_by_foreign_architecture")


def _possible(uid: int | None) -> dict[str, Outcome]:
    """What comes of every attack without any confinement; what fails even then proves nothing about a
    layer."""
    unconfined = Confinement.none()
    names = tuple(name for name in ATTACKS if name != "spin")
    return {outcome.attack: outcome for outcome in run_trial(Request(unconfined, names, as_uid=uid)).outcomes}


def _probe_layer(confinement: Confinement, layer: Layer) -> tuple[Layer, _Trials]:
    if confinement.want(layer) == "off" or layer in _NOT_TRIED:
        return layer, {}
    policy = dataclasses.replace(
        alone(layer),
        namespace_kinds=confinement.namespace_kinds,
        landlock_abi=confinement.landlock_abi,
        uid=confinement.uid,
    )
    return layer, {uid: run_trial(Request(policy, _must_stop(layer, uid), as_uid=uid)) for uid in _users()}


def _judge(
    confinement: Confinement, layer: Layer, trials: _Trials, possible: dict[int | None, dict[str, Outcome]]
) -> LayerReport:
    want = confinement.want(layer)
    if layer == "cgroup":
        try:
            return find_parent(confinement)[1]
        except LayerUnavailable as error:
            return error.report
    if not trials:
        return LayerReport(layer, want, False, "off")
    tried: set[str] = set()
    open_: list[str] = []
    said = ""
    for uid, answer in trials.items():
        if answer.unavailable is not None:
            return dataclasses.replace(answer.unavailable, want=want)
        said = said or next(report.evidence for report in answer.layers if report.layer == layer)
        for outcome in answer.outcomes:
            without = possible[uid].get(outcome.attack)
            if without is None or not without.stopped or ATTACKS[outcome.attack].fatal:
                tried.add(outcome.attack)
                open_ += [] if _is_stopped(layer, outcome) else [f"{outcome.attack} ({outcome.how})"]
    if open_:
        return LayerReport(
            layer, want, False, f"{said}; but alone it did not stop {', '.join(open_)}", _REPORT_IT
        )
    return LayerReport(layer, want, True, f"{said}; alone it stopped {_attacks(len(tried))}")


_REPORT_IT: Final = (
    "this contradicts what the kernel says of itself: please report it with `ptc doctor --json`"
)


def _attacks(count: int) -> str:
    return (
        "its one attack"
        if count == 1
        else f"all of {count} attacks"
        if count
        else "no attack (none is possible)"
    )


def _is_stopped(layer: Layer, outcome: Outcome) -> bool:
    if layer == "seccomp" and ATTACKS[outcome.attack].fatal:
        return outcome == Outcome(outcome.attack, "killed", "SIGSYS")
    return outcome.stopped


def _probe_together(confinement: Confinement) -> LayerReport:
    """Every attack there is against the whole policy, as the host is."""
    want: Want = "off" if all(confinement.want(layer) == "off" for layer in LAYERS) else "required"
    # The trial's process is in no group of ours, and no attack is stopped by one.
    attacked = dataclasses.replace(confinement, cgroup="off")
    answer = run_trial(Request(attacked, tuple(name for name in ATTACKS if _is_possible_at_all(name))))
    if answer.unavailable is not None:
        return LayerReport(
            TOGETHER, want, False, f"{confinement.name} cannot be had here", "see the layer above"
        )
    through = [outcome.attack for outcome in answer.outcomes if not outcome.stopped]
    stopped = f"{len(answer.outcomes) - len(through)} of {len(answer.outcomes)} attacks stopped"
    if through:
        evidence = f"{stopped}; open: {', '.join(through)}"
        return LayerReport(TOGETHER, want, False, evidence, "name a stronger level")
    return LayerReport(TOGETHER, want, True, stopped)
