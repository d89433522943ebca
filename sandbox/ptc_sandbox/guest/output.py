"""Where a program writes: its output, or what it put in the place of a stream by `redirect_stdout`.

`sys.stdout` and `sys.stderr` both end in the program's output. Nothing here writes anywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class Output:
    """One of the two streams: what is written goes to `target`, and to the program's output while that is None."""

    __slots__ = ("_write", "target")

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self.target: Any = None

    def write(self, text: str) -> None:
        """Write an exact str."""
        if self.target is None:
            self._write(text)
        else:
            self.target.write(text)


class Stream:
    """A stream as programs hold it."""

    __slots__ = ("_output", "name")

    encoding = "utf-8"

    def __init__(self, name: str, output: Output) -> None:
        self.name = f"<{name}>"
        self._output = output

    def write(self, text: str) -> int:
        """Write text; gives the number of characters."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        plain = str.__str__(text)
        self._output.write(plain)
        return len(plain)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of the lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing waits."""

    def isatty(self) -> bool:
        """No."""
        return False


class Redirection:
    """The context manager that `redirect_stdout` gives; may be entered again, also within itself."""

    __slots__ = ("_before", "_output", "_target")

    def __init__(self, output: Output, target: Any) -> None:
        self._output = output
        self._target = (
            None if type(target) is Stream else target
        )  # the program's own streams end there anyway
        self._before: list[Any] = []

    def __enter__(self) -> Any:
        self._before.append(self._output.target)
        self._output.target = self._target
        return self._target

    def __exit__(self, *exc_info: object) -> None:
        self._output.target = self._before.pop()
