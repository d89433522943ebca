"""How the language wall says no.

    PolicyViolation                 the program was refused, before it ran or while it ran
    ├── RefusedAttribute            also an AttributeError, so that hasattr() and getattr(…, default) stay ordinary
    ├── RefusedImport               also an ImportError, so that `try: from math import …` works
    │   └── RefusedModule           also a ModuleNotFoundError with its `name`, so that `try: import numpy` works
    └── RefusedCall                 also a RuntimeError: eval(), open(), type(name, bases, namespace), …

`code` is one of forbidden_import, forbidden_name, forbidden_attribute, forbidden_syntax, forbidden_call,
forbidden_class, too_complex. Messages are for the model that wrote the program: they say what to do instead.
"""

from __future__ import annotations


class PolicyViolation(Exception):
    """The program does what programs may not do. `line` and `column` (from 0) are known before it runs."""

    def __init__(self, code: str, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.column = column


class RefusedAttribute(PolicyViolation, AttributeError):
    """An attribute that programs may not read or write."""

    def __init__(self, message: str) -> None:
        super().__init__("forbidden_attribute", message)


class RefusedImport(PolicyViolation, ImportError):
    """A name of a module, or a module, that programs may not import."""

    def __init__(self, message: str) -> None:
        super().__init__("forbidden_import", message)


class RefusedModule(RefusedImport, ModuleNotFoundError):
    """A module that is not there for programs."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


class RefusedCall(PolicyViolation, RuntimeError):
    """A function that programs may not call, or not in this way."""

    def __init__(self, message: str, code: str = "forbidden_call") -> None:
        super().__init__(code, message)
