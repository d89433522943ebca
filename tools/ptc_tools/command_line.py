"""Names our command line as it can be typed here: messages that say what to do must name what works.

A virtual environment that is not activated has no `ptc` on the PATH. It looks at the running interpreter and
the PATH, and never starts anything.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def ptc_command() -> str:
    """`ptc` where the PATH leads to this interpreter's, else its path, else `PYTHON -m ptc`; quoted for a shell.

    The path is relative where the command lies below the current directory: `.venv/bin/ptc`.
    """
    found = shutil.which("ptc")
    if not sys.executable:
        return "ptc"
    ours = Path(sys.executable).with_name("ptc")
    if not ours.is_file():
        return "ptc" if found else f"{shlex.quote(_short(Path(sys.executable)))} -m ptc"
    if found and os.path.realpath(found) == os.path.realpath(ours):
        return "ptc"
    return shlex.quote(_short(ours))


def _short(path: Path) -> str:
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return str(path)
    if here == here.parent or not path.is_relative_to(here):
        return str(path)
    short = str(path.relative_to(here))
    return short if os.sep in short else f"./{short}"  # a bare name would be looked for on the PATH
