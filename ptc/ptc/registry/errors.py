"""The errors of a registry over HTTP, beside those that every registry has (`ptc_tools.errors`).

PtcError
 └── RegistryError              a registry could not do what it was asked; the code is the server's
      ├── RegistryForbidden     the key is missing, unknown, or not for this
      ├── RegistryUnreachable   no answer from the registry                     (also a TransportError)
      └── RegistryStoreUnreadable   a file that is no registry, or of another version
"""

from __future__ import annotations

from ptc_tools.errors import PtcError
from ptc_tools.mutation import TransportError


class RegistryError(PtcError):
    """A registry refused a request, or could not carry it out. `status` is that of HTTP, 0 where there is none."""

    code = "registry_error"

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class RegistryForbidden(RegistryError):
    """The key is missing, unknown, or not for this toolset: ask whoever runs the registry."""

    code = "registry_forbidden"


class RegistryUnreachable(RegistryError, TransportError):
    """The registry did not answer. A call may have been published all the same: asking again is safe.

    `sent` False: no connection was made, so it heard nothing of the request.
    """

    code = "registry_unreachable"

    def __init__(self, message: str, *, status: int = 0, sent: bool = True) -> None:
        super().__init__(message, status=status)
        self.sent = sent


class RegistryStoreUnreadable(RegistryError):
    """The file is no registry, is damaged, or is of another version: give the registry a file of its own."""

    code = "registry_store_unreadable"
