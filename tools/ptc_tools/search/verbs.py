"""What tools are called for what people say: those who name tools choose among a few verbs, those who ask among many.

It knows verbs of every trade alone (remove, show, change) and no noun: what a server is called is a catalog's own
matter. A verb that is asked for finds its neighbours as well, for less than itself.
"""

from __future__ import annotations

from typing import Final

from ptc_tools.search.text import stem

_SAID: Final = {
    "add": "create put",
    "make": "create",
    "new": "create",
    "set": "put update",
    "create": "add",
    "delete": "remove",
    "remove": "delete",
    "erase": "delete",
    "drop": "delete remove",
    "purge": "delete",
    "destroy": "delete terminate",
    "rid": "delete",
    "list": "describe get",
    "show": "list describe get",
    "display": "list describe get",
    "view": "list describe get",
    "see": "list describe get",
    "which": "list",
    "check": "get describe",
    "look": "get describe search",
    "fetch": "get",
    "read": "get",
    "retrieve": "get describe",
    "get": "describe list",
    "describe": "get",
    "status": "get describe",
    "details": "get describe",
    "find": "search list",
    "search": "list query",
    "change": "update modify put",
    "edit": "update modify",
    "alter": "update modify",
    "modify": "update",
    "update": "modify put",
    "rename": "update modify",
    "replace": "put update",
    "switch": "update modify",
    "cancel": "stop",
    "abort": "cancel stop",
    "halt": "stop",
    "kill": "terminate stop",
    "stop": "cancel",
    "pause": "stop",
    "start": "run",
    "begin": "start",
    "launch": "run start create",
    "run": "start invoke execute",
    "execute": "run start invoke",
    "call": "invoke",
    "trigger": "start invoke",
    "send": "publish put",
    "publish": "send put",
    "post": "send publish put",
    "upload": "put",
    "download": "get",
    "activate": "enable",
    "deactivate": "disable",
    "enable": "activate",
    "disable": "deactivate",
    "link": "associate attach",
    "connect": "associate attach",
    "unlink": "disassociate detach",
    "disconnect": "disassociate detach",
    "attach": "associate",
    "detach": "disassociate",
    "allow": "authorize add",
    "grant": "authorize add",
    "revoke": "remove",
}

RELATED: Final = {stem(said): tuple(stem(verb) for verb in verbs.split()) for said, verbs in _SAID.items()}
"""Stem of what is said to the stems of what it may be called."""
