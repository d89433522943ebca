"""What confining a child costs, level by level, beside a forked child that is not confined.

The time is taken inside the child, from before its first layer to after its last; forking itself is not in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.harness import Figure, median, p99, report
from ptc_sandbox.confine import Confinement
from ptc_sandbox.confine import __file__ as confine_file

ROUNDS = 60

_SERVER = """
import gc, json, os, socket, sys, time
sys.path.insert(0, sys.argv[1])
from ptc_sandbox.confine import Confinement, LayerUnavailable, Resources, enter_namespaces, leave_namespaces, prepare
confinement = Confinement.from_json(sys.argv[2])
try:
    enter_namespaces(confinement)
    prepared = prepare(confinement, Resources())
except LayerUnavailable as error:
    print(json.dumps({"unavailable": str(error)}))
    sys.exit()
prepared.settle()
gc.collect()
gc.freeze()
samples = []
for _ in range(int(sys.argv[3])):
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        fd = theirs.detach()
        started = time.perf_counter_ns()
        prepared.confine_child(fd)
        os.write(fd, str(time.perf_counter_ns() - started).encode())
        os._exit(0)
    theirs.close()
    samples.append(int(ours.recv(100)) / 1000)
    ours.close()
    os.waitpid(pid, 0)
leave_namespaces()
print(json.dumps({"samples": samples}))
"""


def measure(level: Confinement) -> list[float] | str:
    """Microseconds for each of some children, or why this machine cannot confine so."""
    root = str(Path(confine_file).parents[2])
    done = subprocess.run(
        [sys.executable, "-s", "-S", "-P", "-c", _SERVER, root, level.to_json(), str(ROUNDS)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "0"},
    )
    answer = json.loads(done.stdout)
    return (
        str(answer["unavailable"]) if "unavailable" in answer else [float(each) for each in answer["samples"]]
    )


def run() -> list[Figure]:
    """One figure for each level; the goal is the design's: well under a millisecond."""
    figures = []
    bare = measure(Confinement.none())
    assert not isinstance(bare, str)
    for level in (Confinement.strict(), Confinement.standard(), Confinement.minimal()):
        samples = measure(level)
        name = f"confine a child, {level.name}"
        if isinstance(samples, str):
            figures.append(Figure(name, None, "µs", note=samples))
        else:
            figures.append(
                Figure(name, median(samples), "µs", "no confinement", median(bare), p99=p99(samples))
            )
    return figures


if __name__ == "__main__":
    report("What confining a child costs", run)
