"""The policy as a value: named levels, derivations, JSON, digest. Nothing here touches the kernel."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptc_sandbox.confine import LAYERS, NAMESPACES, Confinement, LayerReport, LayerUnavailable, Resources

wants = st.sampled_from(["off", "if-available", "required"])


@st.composite
def confinements(draw: st.DrawFn) -> Confinement:
    layers = {layer: draw(wants) for layer in LAYERS}
    if layers["no_new_privs"] == "off":
        layers["seccomp"] = layers["landlock"] = "off"
    return Confinement(
        draw(st.text(max_size=20)),
        **layers,
        namespace_kinds=tuple(draw(st.lists(st.sampled_from(NAMESPACES), unique=True))),
        landlock_abi=draw(st.integers(1, 9)),
        uid=draw(st.none() | st.integers(1, 2**31)),
        cgroup_parent=draw(st.none() | st.text(max_size=20)),
        cgroup_memory=draw(st.none() | st.integers(1, 2**40)),
    )


@given(confinements())
def test_a_policy_survives_its_json(confinement: Confinement) -> None:
    """The fork server enforces what the host was given, to the letter."""
    assert Confinement.from_json(confinement.to_json()) == confinement


@given(confinements(), confinements())
def test_equal_digests_mean_equal_enforcement(one: Confinement, other: Confinement) -> None:
    """A journal or an audit record that names a digest names one policy, whatever it was called."""
    same = dataclasses.replace(one, name="") == dataclasses.replace(other, name="")
    assert (one.digest == other.digest) is same


def test_the_digest_is_stable() -> None:
    """Records made by an earlier run can be compared with today's; a change of the format must be meant."""
    assert Confinement.none().digest == Confinement("another name").digest
    assert Confinement.standard().digest != Confinement.strict().digest


@pytest.mark.parametrize(
    ("level", "promised"),
    [
        (Confinement.strict(), set(LAYERS) - {"cgroup"}),
        (Confinement.standard(), set(LAYERS) - {"cgroup", "namespaces"}),
        (Confinement.minimal(), {"user", "rlimits", "no_new_privs", "seccomp", "descriptors"}),
        (Confinement.none(), set()),
    ],
    ids=lambda value: value.name if isinstance(value, Confinement) else "",
)
def test_each_level_promises_its_layers(level: Confinement, promised: set[str]) -> None:
    """A level's promise is what its documentation says, and what makes a machine unfit for it."""
    assert {layer for layer in LAYERS if level.want(layer) == "required"} == promised


def test_the_default_is_a_level_with_a_kernel_wall() -> None:
    """Nobody gets the level without a wall by leaving the argument out."""
    assert Confinement.default() == Confinement.standard()
    assert Confinement.default().seccomp == "required"


def test_derivations_leave_the_original_and_say_so_in_the_name() -> None:
    """An operator's weaker level is visible in every record that names it."""
    weaker = Confinement.standard().with_layer("landlock", "off")
    assert Confinement.standard().landlock == "required"
    assert (weaker.landlock, weaker.name) == ("off", "standard+landlock=off")
    assert Confinement.standard().with_namespaces("net").namespace_kinds == ("net",)
    assert Confinement.standard().with_landlock_abi(4).landlock_abi == 4
    assert Confinement.standard().with_uid(4000).uid == 4000
    assert Confinement.standard().with_cgroup("/x").cgroup_parent == "/x"


@pytest.mark.parametrize(
    "fields",
    [
        {"seccomp": "sometimes"},
        {"seccomp": "required"},
        {"landlock": "required"},
        {"namespace_kinds": ("net", "time")},
        {"uid": 0},
        {"uid": -1},
        {"landlock_abi": 0},
        {"cgroup_memory": 0},
    ],
    ids=str,
)
def test_a_policy_that_cannot_be_meant_is_refused(fields: dict[str, object]) -> None:
    """Misspelt or impossible policies fail where they are written, not as a weaker wall."""
    with pytest.raises(ValueError):
        Confinement("x", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"name":"x"}',
        '{"version":2,"name":"x"}',
        '{"version":1}',
        '{"version":1,"name":"x","seccomb":"required"}',
        '{"version":1,"name":"x","seccomp":"yes"}',
    ],
)
def test_foreign_json_is_refused(text: str) -> None:
    """A field that this version does not know may be a layer that it would not enforce."""
    with pytest.raises(ValueError):
        Confinement.from_json(text)


@pytest.mark.parametrize("fields", [{"memory": 0}, {"cpu_s": 0}, {"stack": -1}, {"programs": 0}], ids=str)
def test_resources_are_positive(fields: dict[str, int]) -> None:
    """Zero would be read as no limit by somebody."""
    with pytest.raises(ValueError):
        Resources(**fields)


def test_a_report_survives_its_json_and_knows_whether_a_promise_is_broken() -> None:
    """Reports cross from the fork server to the host."""
    report = LayerReport("landlock", "required", False, "no Landlock", "use Linux 5.13")
    assert LayerReport.from_json(json.loads(json.dumps(report.to_json()))) == report
    assert report.missing
    assert not dataclasses.replace(report, want="if-available").missing
    assert not dataclasses.replace(report, holds=True).missing


def test_an_unavailable_layer_says_which_why_and_what_to_do() -> None:
    """The operator reads this message, not the code."""
    error = LayerUnavailable(LayerReport("landlock", "required", False, "no Landlock", "use Linux 5.13"))
    assert error.layer == "landlock"
    assert str(error) == "no Landlock. use Linux 5.13"
