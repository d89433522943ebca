"""`python -m benchmarks`: run every benchmark and rewrite the tables of docs/performance.md.

Each table stands between `<!-- NAME -->` and `<!-- /NAME -->`; what is outside those lines is prose and stays.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.harness import Figure, table

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if "report(" in path.read_text())


def main() -> int:
    """Run what is named on the command line, or all; a benchmark that fails leaves its table as it was."""
    names = [name for name in (sys.argv[1:] or NAMES) if name != "harness"]
    failed = 0
    for name in names:
        print(f"== {name}", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}", "--json"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(done.stderr[-2000:], file=sys.stderr)
            failed += 1
            continue
        _write(name, json.loads(done.stdout))
    return failed


def _write(name: str, data: dict[str, object]) -> None:
    listed = data["figures"]
    assert isinstance(listed, list)
    fields = Figure.__dataclass_fields__
    text = table(Figure(**{key: value for key, value in item.items() if key in fields}) for item in listed)
    print(text, flush=True)
    page = PAGE.read_text()
    block = f"<!-- {name} -->\n\n{text}\n\nMeasured on: {json.dumps(data['machine'])}\n\n<!-- /{name} -->"
    pattern = re.compile(rf"<!-- {name} -->.*?<!-- /{name} -->", re.DOTALL)
    page = (
        pattern.sub(lambda _: block, page)
        if pattern.search(page)
        else f"{page.rstrip()}\n\n## {name}\n\n{block}\n"
    )
    PAGE.write_text(page)


if __name__ == "__main__":
    sys.exit(main())
