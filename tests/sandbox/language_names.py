"""Calls every member of every stand-in with a name that no library has, and prints who read or wrote an attribute
of that name. Runs as the guest does, under `python -s -S -P`.
"""

# ruff: noqa: E402, BLE001

from __future__ import annotations

import sys

sys.path[:0] = sys.argv[1:3]

from ptc_sandbox.guest.guards_identity import install

install()

import asyncio
import builtins
import functools
import itertools
import json
import random
import signal

from ptc_sandbox.guest.builtins import make_globals, prepare
from ptc_sandbox.guest.facades import table
from ptc_sandbox.guest.facades.module import Facade, facade

NAME = "zq_given"
GUARDED = {"getattr", "hasattr", "setattr", "delattr", "operator.attrgetter", "operator.methodcaller"}
"""What takes a name and checks it; `test_policy_properties` and the attacks try these."""

PASSED_BY = {
    "asyncio",
    "time.sleep",
    "random.randbytes",
    "random.getrandbits",
    "print",
    "exit",
    "quit",
    "copy",
}
CONTROLS = {
    "control.getattr": builtins.getattr,
    "control.setattr": builtins.setattr,
    "control.cached_property": functools.cached_property,
}
"""The real ones, which have to be found."""

touched: list[str] = []


class Probe:
    """Remembers that it was asked for the name, or that it was set."""

    def __getattr__(self, name):
        if NAME in name:
            touched.append(f"read {name}")
        raise AttributeError(name)

    def __setattr__(self, name, value):
        if NAME in str(name):
            touched.append(f"wrote {name}")

    def __call__(self, *args, **kwargs):
        return self

    def __iter__(self):
        return iter([NAME])

    def __len__(self):
        return 1

    def __getitem__(self, key):
        if key != 0 and key != NAME:
            raise IndexError
        return NAME

    def keys(self):
        return [NAME]


PROBE = Probe()


def traces():
    """What was done to the probe by the name, since the last look."""
    done = [*touched]
    done += [f"wrote {NAME} into a namespace" for space in (vars(PROBE), vars(Probe)) if NAME in space]
    touched.clear()
    vars(PROBE).clear()
    if NAME in vars(Probe):
        delattr(Probe, NAME)
    return done


class World:
    random = random.Random(1)

    def now_us(self):
        return 1_700_000_000_000_000

    monotonic_us = now_us

    def sleep(self, seconds):
        pass

    def random_bytes(self, n):
        return b"x"

    def write_output(self, text):
        pass


def members(namespace):
    own = namespace["__builtins__"]
    for name, value in own.items():
        if name.isidentifier() and not name.startswith("__"):
            yield name, value
    for module in table.modules():
        loaded = own["__import__"](module, {}, {}, None, 0)
        for part in module.split(".")[1:]:
            loaded = getattr(loaded, part)
        for name in dir(loaded):
            value = getattr(loaded, name)
            if not isinstance(value, Facade):
                yield f"{module}.{name}", value


def attempts(value):
    pool = [PROBE, NAME, [NAME], {NAME: 1}, Probe, [(NAME, 1)]]
    for count in (1, 2, 3):
        for args in itertools.product(pool, repeat=count):
            yield value, args, {}
    yield value, (PROBE,), {NAME: 1}
    yield value, ("X",), {NAME: 1}


def follow(made, probe):
    """What comes back is used as a descriptor, a function and a decorator."""
    for use in (
        lambda: made.__set_name__(Probe, NAME),
        lambda: made.__get__(probe, Probe),
        lambda: made.__get__(None, Probe),
        lambda: made(probe),
        lambda: made(Probe),
        lambda: made(probe, NAME),
        lambda: type(made).__get__(made, probe, Probe),
        lambda: getattr(made, "format", None)(NAME, probe),
    ):
        with_limit(use)


def with_limit(call):
    try:
        return call()
    except BaseException:
        return None


def main() -> None:
    prepare()
    namespace = make_globals(World(), {}, facade("asyncio", {"sleep": asyncio.sleep}))
    found = []
    tried = 0
    for path, value in (*CONTROLS.items(), *members(namespace)):
        if path in GUARDED or path in PASSED_BY or path.split(".")[0] in PASSED_BY or not callable(value):
            continue
        signal.alarm(60)
        for function, args, named in attempts(value):
            tried += 1
            made = with_limit(lambda f=function, a=args, n=named: f(*a, **n))
            if made is not None and not isinstance(made, (str, int, float, bytes, Probe)):
                follow(made, PROBE)
            if done := traces():
                found.append(f"{path}: {done[0]}")
                break
    print(json.dumps({"tried": tried, "found": found}))


if __name__ == "__main__":
    main()
