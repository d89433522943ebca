"""The public API as types: what users write has no fault for a type checker, and their mistakes have one."""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLES = [Path("tests/typing/public_api.py"), Path("tests/typing/mistakes.py")]
_ERROR = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: .*\[(?P<code>[a-z-]+)\]$")
_MARK = re.compile(r"# error: (?P<codes>[a-z, -]+)$")


@pytest.mark.timeout(300)
def test_a_type_checker_finds_the_mistakes_and_nothing_else() -> None:
    """A tool keeps its function's signature, options are words of a list, outcomes have to be told apart."""
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", *map(str, SAMPLES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        error = _ERROR.match(line)
        if error is not None and Path(error["file"]) in SAMPLES:
            found[error["file"], int(error["line"])].add(error["code"])
    expected = {
        (str(path), number): set(mark["codes"].split(", "))
        for path in SAMPLES
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if (mark := _MARK.search(line))
    }
    assert done.returncode == 1, done.stderr
    assert dict(found) == expected, done.stdout
