"""Secrets stay out of the log: by schema, by path, by name, by detector; and equal values can be matched."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import ptc
from ptc.audit import Redaction, Sensitive
from ptc.audit.errors import AuditKeyError, InvalidAuditConfig
from ptc.audit.keys import Keyring
from ptc.audit.redact import Redactor
from ptc.audit.sensitive import NOTHING, Sensitivity
from ptc.testing import ScriptedModel, in_process, say
from ptc_tools.call import JsonValue
from ptc_tools.outcome import Denied, Failure, Success
from ptc_tools.provenance import Provenance, Source
from tests.ptc.audit_support import FORMS, KEYS, RUN, call, contract, of_type, open_log, read, record_call

KEY = KEYS.active("digest")


def shown(value: JsonValue, schema: JsonValue = None, **options: Any) -> Any:
    return Redactor(Redaction(**options), KEY).shown(value, Sensitivity.of(schema))


def reason(value: Any) -> str:
    return str(value["$redacted"])


class Account(BaseModel):
    name: str
    pin: Annotated[int, Sensitive]
    notes: list[Annotated[str, Sensitive]] = []


def test_a_type_marked_sensitive_is_marked_in_its_schema() -> None:
    """One mark beside the type; the schema carries it to whoever records."""
    properties = Account.model_json_schema()["properties"]
    assert properties["pin"]["x-sensitive"] is True
    assert properties["notes"]["items"]["x-sensitive"] is True
    assert "x-sensitive" not in properties["name"]


def test_what_a_schema_marks_is_replaced_wherever_it_stands() -> None:
    """Members, items, references, branches: a mark in one of several branches is enough."""
    schema = {
        "$defs": {"secret": {"type": "string", "x-sensitive": True}},
        "properties": {
            "ref": {"$ref": "#/$defs/secret"},
            "list": {"items": {"$ref": "#/$defs/secret"}},
            "pair": {"prefixItems": [{"type": "string"}, {"x-sensitive": True}]},
            "either": {"anyOf": [{"type": "null"}, {"properties": {"x": {"x-sensitive": True}}}]},
            "open": {"type": "string"},
        },
        "patternProperties": {"^s_": {"x-sensitive": True}},
        "additionalProperties": {"properties": {"deep": {"x-sensitive": True}}},
    }
    value: JsonValue = {
        "ref": "a",
        "list": ["b", "c"],
        "pair": ["d", "e"],
        "either": {"x": 1, "y": 2},
        "other": {"deep": 3, "flat": 4},
    }
    got = shown(value, schema)
    assert reason(got["ref"]) == "schema"
    assert [reason(item) for item in got["list"]] == ["schema", "schema"]
    assert reason(got["pair"][1]) == "schema"
    assert (reason(got["either"]["x"]), got["either"]["y"]) == ("schema", 2)
    assert (reason(got["other"]["deep"]), got["other"]["flat"]) == ("schema", 4)


def test_a_schema_that_refers_to_itself_ends() -> None:
    """Trees are ordinary schemas; walking one must follow the value and not the schema."""
    schema: JsonValue = {
        "$defs": {"node": {"properties": {"key": {"x-sensitive": True}, "next": {"$ref": "#/$defs/node"}}}},
        "$ref": "#/$defs/node",
    }
    value: JsonValue = {"key": 0}
    for number in range(1, 50):
        value = {"key": number, "next": value}
    got = shown(value, schema)
    while got:
        assert reason(got["key"]) == "schema"
        got = got.get("next")
    loop: JsonValue = {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}, "c": {"x-sensitive": True}},
        "$ref": "#/$defs/a",
    }
    assert shown({"k": "v"}, loop) == {"k": "v"}


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("customer.ssn", ["ssn"]),
        ("customer.*", ["ssn", "name"]),
        ("**.name", ["name"]),
        ("rows.*.iban2", []),
        ("other", []),
    ],
)
def test_a_path_names_what_to_hide(path: str, hidden: list[str]) -> None:
    value: JsonValue = {"customer": {"ssn_": 1, "ssn": "078", "name": "n"}}
    got = shown(value, paths=(path,), names=False, detectors=())["customer"]
    assert {name for name, item in got.items() if isinstance(item, dict)} == set(hidden) | (
        {"ssn_"} if path == "customer.*" else set()
    )


def test_paths_reach_into_arrays() -> None:
    got = shown({"rows": [{"iban": "x", "n": 1}, {"iban": "y", "n": 2}]}, paths=("rows.*.iban",), names=False)
    assert [reason(row["iban"]) for row in got["rows"]] == ["path", "path"]
    assert [row["n"] for row in got["rows"]] == [1, 2]
    with pytest.raises(InvalidAuditConfig):
        Redaction(paths=("a..b",))


SECRETS = {
    "api_key": [
        "sk-" + "a1B2" * 8,
        "sk-proj-" + "a1B2" * 8,
        "AKIA" + "ABCDEFGH12345678",
        "ghp_" + "a" * 36,
        "xoxb-1234567890-abc",
        "xapp-1-A012-123456-" + "ab01" * 4,
        "npm_" + "a1B2" * 9,
        "pypi-AgEIcHlwaS5vcmc" + "a1B2" * 4,
        "whsec_" + "a1B2" * 8,
    ],
    "token": [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijk",
        "Bearer abcdefghijklmnop.qrstuv",
        "Authorization: Basic dXNlcjpodW50ZXIy",
        "'authorization': 'basic dXNlcjpwdw=='",
        "Basic dXNlcjpodW50ZXIyaA==",
        "https://x.blob.core.windows.net/c?sv=2020&sig=AbCdEf0123456789AbCdEf%3D",
        "ya29.a0AfH6SMB" + "a1B2" * 8,
    ],
    "credential": [
        "password=hunter22",
        "postgres://user:s3cret@db/x",
        "AccountKey=abcd1234==",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "SECRET_KEY: 'abcd1234'",
        "signingKey=abcd1234",
        "DB_PASSWORD=hunter22",
    ],
    "private_key": ["-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"],
    "card_number": [
        "4111 1111 1111 1111",
        "5555555555554444",
        "4111.1111.1111.1111",
        "3782.822463.10005",
        "4111\u00a01111\u00a01111\u00a01111",
        "4111\u202f1111\u202f1111\u202f1111",
    ],
    "email": ["alice@example.com", "a.b+c@sub.example.co.uk"],
}


@pytest.mark.parametrize(
    ("detector", "secret"), [(name, text) for name, texts in SECRETS.items() for text in texts]
)
def test_well_known_secrets_are_found_alone_in_text_in_keys_and_deep_inside(
    detector: str, secret: str
) -> None:
    """A model puts what it was told anywhere."""
    for value in (secret, f"use {secret} now", {"a": [{"b": secret}]}, {secret: 1}):
        got = shown(value)
        assert secret not in json.dumps(got)
    assert reason(shown(secret)) == f"detector:{detector}"


@pytest.mark.parametrize(
    "text",
    [
        "sku_123",
        "4111 1111 1111 1112",
        "2026-11-30 12:00:00",
        "task-runner-service-with-long-name",
        "a @ b",
        "1234567890123",
        "basic understanding of the authorization: see below",
        "Basic authorization",
        "the secret key to success",
        "4111.1111.1111.1112",
        "192.168.1001.2002",
        "sig=short",
        "pypi-server-in-the-next-room",
        "access keys are rotated monthly",
    ],
)
def test_ordinary_texts_are_left_alone(text: str) -> None:
    """A log that hides everything answers nothing."""
    assert shown(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "passwords",
        "secrets",
        "api_key",
        "apiKeys",
        "x-auth-token",
        "clientSecret",
        "Authorization",
        "secret_key",
        "secretKey",
        "aws_secret_access_key",
        "access_key",
        "AccessKeys",
        "pwd",
        "signingKey",
        "encryption-key",
        "connectionString",
        "jwt",
    ],
)
def test_members_called_like_secrets_are_hidden(name: str) -> None:
    assert reason(shown({name: "anything"})[name]) == "name"
    assert reason(shown({name: 123456})[name]) == "name"
    assert shown({name: None}) == {name: None}
    assert shown({"tokens": 5, "passage": "x"}) == {"tokens": 5, "passage": "x"}


@pytest.mark.parametrize("name", ["tokens", "access_tokens", "refreshTokens"])
def test_tokens_are_secrets_where_they_are_texts(name: str) -> None:
    """What a model used is counted in tokens too."""
    for value in ("abc", ["abc", "def"], {"a": "abc"}):
        assert reason(shown({name: value})[name]) == "name"
    for count in (5, [1, 2], {"input": 5}):
        assert shown({name: count}) == {name: count}
    assert shown({"max_tokens": "12", "total_tokens": 5}) == {"max_tokens": "12", "total_tokens": 5}


def test_a_card_number_may_be_a_number() -> None:
    assert reason(shown({"card": 4111111111111111})["card"]) == "detector:card_number"
    assert reason(shown({"card": 4111111111111111.0})["card"]) == "detector:card_number"
    assert shown([4111111111111112.0, 1e300, 1.5e12]) == [4111111111111112.0, 1e300, 1.5e12]


HEX = st.sampled_from((8, 16, 20, 32, 64)).flatmap(lambda size: st.binary(min_size=size, max_size=size))
WORD = st.text("abcdefgh ,;:()", max_size=20)


def luhn_number(body: str) -> str:
    """The digits with the check digit that makes a card number of them."""
    doubled = [int(digit) * (2 if index % 2 == 0 else 1) for index, digit in enumerate(reversed(body))]
    return body + str(-sum(value - 9 if value > 9 else value for value in doubled) % 10)


def grouped(number: str, separator: str, sizes: tuple[int, ...]) -> str:
    parts, start = [], 0
    for size in sizes:
        parts.append(number[start : start + size])
        start += size
    return separator.join(part for part in [*parts, number[start:]] if part)


@given(HEX, WORD, WORD, st.booleans())
def test_no_digest_is_taken_for_a_secret(data: bytes, before: str, after: str, upper: bool) -> None:
    """One SHA-256 in two hundred holds digits that fit a card: a log of such redactions proves nothing."""
    digest = "d" + data.hex() if data.hex().isdigit() else data.hex()
    text = f"{before} {digest.upper() if upper else digest} {after}"
    assert shown(text) == text


@given(st.uuids(), WORD)
def test_no_uuid_is_taken_for_a_secret(value: UUID, before: str) -> None:
    for text in (str(value), f"{before} {value}", f"run_{value.hex}", f"id={value}, 5", f"5 {value}"):
        assert shown(text) == text or value.hex.isdigit()


@pytest.mark.parametrize(
    "text",
    [
        "a" * 20 + "4111111111111111" + "b" * 28,
        "12345678-1234-4234-8234-123456789012",
        "45aaaf63-cfb3-4dae-9464-159141726020",
        "5 41111111-1111-4111-8111-111111111111",
        "at 1796056149000000 us, 1796056149007 ms",
        "0.4111111111111111",
        "4111111111111111.25",
        "sku4111111111111111",
    ],
)
def test_digits_that_are_part_of_something_are_no_card(text: str) -> None:
    """Inside a word, a decimal, a UUID or a time, digits mean something else."""
    assert shown(text) == text


@given(
    st.sampled_from(((4, 15), (51, 14), (2221, 12), (34, 13), (6011, 12), (30, 12), (62, 17))),
    st.data(),
    st.sampled_from(("", " ", "-")),
    st.sampled_from(
        (("pay ", " now"), ("(", ")"), ("card:", "."), ("card_", "_x"), ("no. ", " 12/27"), ("", ""))
    ),
)
def test_a_card_number_in_free_text_is_hidden(
    kind: tuple[int, int], data: st.DataObject, separator: str, around: tuple[str, str]
) -> None:
    """Alone, in groups, at the end of a sentence, before its expiry date."""
    issuer, more = kind
    body = f"{issuer}{data.draw(st.text('0123456789', min_size=more - 1, max_size=more - 1))}"
    number = luhn_number(body)
    written = grouped(number, separator, (4, 6) if issuer in (34, 30) else (4, 4, 4, 4))
    got = shown(around[0] + written + around[1])
    assert reason(got) == "detector:card_number"
    if around not in (("", ""), ("no. ", " 12/27")):  # with two more digits it may pass for a longer number
        assert got["found"] == [{"detector": "card_number", "hmac": KEY.digest(written)}]


def test_equal_values_correlate_and_different_types_do_not() -> None:
    """The digest is over type and canonical value: that is how one secret is followed through a log."""
    a, b = shown({"password": 1234})["password"], shown({"password": 1234.0})["password"]
    c, d = shown({"password": "1234"})["password"], shown({"password": [1234]})["password"]
    assert a["hmac"] == b["hmac"]
    assert len({a["hmac"], c["hmac"], d["hmac"]}) == 3
    inside = shown("my mail is alice@example.com, ok")
    assert inside["found"] == [{"detector": "email", "hmac": KEY.digest("alice@example.com")}]


def test_another_key_gives_another_digest() -> None:
    """Without the key nobody can try values against the log."""
    other = Keyring.generate().active("digest")
    assert KEY.digest("a").partition(":")[2] != other.digest("a").partition(":")[2]


def test_a_tools_own_object_does_not_pass_for_a_redaction() -> None:
    """A result that says `$redacted` must not look like something the log left out."""
    assert shown({"$redacted": "level", "bytes": 3}) == {"$quoted": {"$redacted": "level", "bytes": 3}}


def test_texts_too_long_to_search_are_left_out_whole() -> None:
    """What was not looked through is not shown."""
    assert reason(shown("x" * 1_000_001)) == "size"


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_redaction_changes_nothing_that_it_is_given(value: JsonValue) -> None:
    """The value goes on to the tool; a redaction works on a copy."""
    before = json.dumps(value)
    shown(value, {"x-sensitive": False, "properties": {"a": {"x-sensitive": True}}})
    assert json.dumps(value) == before


def test_detectors_stay_fast_on_texts_made_to_slow_them() -> None:
    """A model chooses the text: no pattern may take time that grows with its square."""
    for text in (
        "a" * 200_000,
        "a@" * 100_000,
        "eyJ" * 70_000,
        "password" * 25_000,
        "1 " * 100_000,
        "a." * 100_000,
        "-----BEGIN " * 20_000,
        "http://" + "a:" * 100_000,
        "a.a@" * 50_000,
    ):
        shown(text)


def test_a_keyring_is_kept_from_others(tmp_path: Path) -> None:
    """Keys that others can read prove nothing."""
    path = tmp_path / "keys" / "ring.json"
    ring = Keyring.open(path, create=True)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Keyring.open(path).active("digest") == ring.active("digest")
    assert "secret" not in repr(ring.active("digest"))
    path.chmod(0o644)
    with pytest.raises(AuditKeyError, match="chmod 600"):
        Keyring.open(path)
    path.chmod(0o600)
    path.write_text("{}")
    with pytest.raises(AuditKeyError, match="not a keyring"):
        Keyring.open(path)
    with pytest.raises(AuditKeyError, match="no keyring"):
        Keyring.open(tmp_path / "none.json")


def test_old_keys_stay_for_looking_up(tmp_path: Path) -> None:
    ring = Keyring.open(tmp_path / "ring.json", create=True)
    old = ring.active("digest")
    new = ring.rotate("digest")
    again = Keyring.open(tmp_path / "ring.json")
    assert (again.active("digest"), again.get(old.id)) == (new, old)
    assert [key.id for key in again.of("digest")] == [old.id, new.id]


def test_no_key_that_somebody_added_is_lost_when_another_is_rotated(tmp_path: Path) -> None:
    """A log may be signed with it by now, and it cannot be made again."""
    file = tmp_path / "keys.json"
    rings = [Keyring.open(file, create=True) for _ in range(2)]
    added = [rings[0].rotate("signing"), rings[1].rotate("digest"), rings[0].rotate("journal")]
    saved = Keyring.open(file)
    assert [saved.get(key.id) for key in added] == added
    assert rings[0].get(added[1].id) == added[1]
    code = (
        "import sys\nfrom ptc.audit import Keyring\nring = Keyring.open(sys.argv[1])\n"
        "print(*(ring.rotate('digest').id for _ in range(10)))"
    )
    at_once = [
        subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    made = [name for process in at_once for name in process.communicate()[0].split()]
    assert len(made) == 30
    assert not set(made) - {key.id for key in Keyring.open(file).of("digest")}
    assert [path.name for path in tmp_path.iterdir()] == ["keys.json"]


def test_a_keyring_that_cannot_be_written_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: said in one line, and no key is in use that is nowhere on the disk."""
    file = tmp_path / "keys.json"
    ring = Keyring.open(file, create=True)
    before, active = file.read_bytes(), ring.active("signing")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AuditKeyError, match="No space left"):
        ring.rotate("signing")
    assert (file.read_bytes(), ring.active("signing")) == (before, active)
    assert [path.name for path in tmp_path.iterdir()] == ["keys.json"]


CANARIES = {
    place: f"canary-{place}-7f3a9c"
    for place in (
        "argument",
        "result",
        "error",
        "program",
        "input",
        "output",
        "denial",
        "environment",
        "extra",
    )
}


def everything_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("level", "allowed"),
    [
        ("metadata", set()),
        ("request", {"argument", "program", "input", "denial"}),
        ("full", set(CANARIES) - {"environment"}),
    ],
)
async def test_canaries_are_nowhere_below_the_level_that_shows_them(
    tmp_path: Path, form: str, level: str, allowed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments, results, errors, environment, program text: in no file of the log, page, export or message."""
    monkeypatch.setenv("PTC_TEST_SECRET", CANARIES["environment"])
    path = tmp_path / f"a.{form}"
    async with open_log(path, levels=level) as log:
        await log.event("run.started", {"model": "m", "input": CANARIES["input"]}, RUN)
        await log.event("program.started", {"call_id": "prog_1", "code": f"x = '{CANARIES['program']}'"}, RUN)
        await record_call(
            log, 1, arguments={"sku": CANARIES["argument"]}, outcome=Success({"v": CANARIES["result"]})
        )
        await record_call(
            log, 2, outcome=Failure("tool_error", CANARIES["error"], ValueError(CANARIES["error"]))
        )
        await log.denied(
            call(3, arguments=f'{{"sku":"{CANARIES["argument"]}"'),
            None,
            Denied("malformed_arguments", CANARIES["denial"]),
            RUN,
        )
        end = {
            "call_id": "prog_1",
            "status": "raised",
            "output": CANARIES["output"],
            "error_type": "E",
            "message": CANARIES["error"],
        }
        replay = {"code": CANARIES["program"], "stubs": [], "journal": {"a": list(CANARIES.values())}}
        await log.event("program.finished", {**end, "replay": replay}, RUN)
        await log.event("custom.event", {"field": CANARIES["extra"]}, RUN)
        await log.event(
            "run.finished",
            {"status": "failed", "message": CANARIES["error"], "output_text": CANARIES["result"]},
            RUN,
        )
    from tests.ptc.test_audit_view import page_of

    page = page_of(path)
    files = everything_in(tmp_path)
    for place, canary in CANARIES.items():
        assert (canary.encode() in files) == (place in allowed), place
        if place not in allowed:
            assert canary not in page


@pytest.mark.parametrize("level", ["metadata", "request", "full"])
async def test_what_the_schema_marks_is_nowhere_at_any_level(tmp_path: Path, level: str) -> None:
    """Valid, invalid or not even JSON: the secret argument of a tool is never shown."""
    path = tmp_path / "a.jsonl"
    of = contract(
        "login",
        secret=True,
        output_schema={"type": "object", "properties": {"sid": {"type": "string", "x-sensitive": True}}},
        strict=False,
    )
    async with open_log(path, levels=level) as log:
        await record_call(
            log, 1, of=of, arguments={"sku": "s3cr3t-one"}, outcome=Success({"sid": "s3cr3t-two"})
        )
        for text in ('{"sku":"s3cr3t-one","x":1}', '{"sku":"s3cr3t-one"'):
            await log.denied(call(2, "login", arguments=text), of, Denied("invalid_arguments", "no"), RUN)
        await log.denied(
            call(2, "login", arguments={"sku": "s3cr3t-one"}), of, Denied("not_authorized", "no"), RUN
        )
    assert b"s3cr3t" not in path.read_bytes()
    marks = [r["content"] for r in read(path) if "content" in r]
    assert all("$redacted" in json.dumps(mark) for mark in marks)
    if level == "full":
        assert of_type(read(path), "tool.finished")[0]["content"]["result"]["sid"]["hmac"] == KEY.digest(
            "s3cr3t-two"
        )
    assert NOTHING.member("x") is NOTHING


@pytest.mark.parametrize("form", FORMS)
async def test_what_the_log_and_the_runtime_made_is_never_redacted(tmp_path: Path, form: str) -> None:
    """An id or a hash that looks like a secret is a link: without it an honest run could not be proven."""
    odd = "a" * 20 + " 4111 1111 1111 1111 alice@example.com"
    link: JsonValue = {"file": f"{odd}.journal", "sha256": odd, "bytes": 4111111111111111, "key": odd}
    async with open_log(tmp_path / f"audit.{form}", levels="full", redact=Redaction(paths=("**",))) as log:
        await log.event(
            "program.started", {"call_id": odd, "policy_hash": odd, "seed": 4111111111111111}, RUN
        )
        await log.event("program.finished", {"call_id": odd, "journal": link, "output": odd}, RUN)
    started, finished = (
        record["data"] for record in read(tmp_path / f"audit.{form}") if "program." in record["type"]
    )
    assert started == {"call_id": odd, "policy_hash": odd, "seed": 4111111111111111}
    assert (finished["call_id"], finished["journal"]) == (odd, link)
    assert reason(finished["output"]) == "path"


async def test_a_secret_in_the_name_of_a_tool_that_is_none_is_not_shown(tmp_path: Path) -> None:
    """The model made the name up, and it may have made it of what it had read."""
    path = tmp_path / "a.jsonl"
    secret = "sk-live_abcdefghijklmnop1234"
    async with open_log(path) as log:
        await log.denied(call(1, f"send_{secret}"), None, Denied("unknown_tool", "no"), RUN)
        await log.denied(call(2, f"send {secret}"), None, Denied("unknown_tool", "no"), RUN)
    names = [record["tool"]["name"] for record in of_type(read(path), "tool.denied")]
    assert [name.rpartition(" ")[0] for name in names] == ["$redacted api_key"] * 2


async def test_what_a_wall_refused_is_shown_at_full_alone(tmp_path: Path) -> None:
    """A program can put a result into the name that it is refused."""
    path = tmp_path / "a.jsonl"
    async with open_log(path, levels="request") as log:
        await log.event("sandbox.violation", {"call_id": "p", "detail": "a result"}, RUN)
    assert "a result" not in path.read_text()


async def test_the_name_of_an_exception_is_shown_at_full_alone(tmp_path: Path) -> None:
    """`X.__name__ = result` is a program's way to put a result where only a class was expected."""
    path = tmp_path / "a.jsonl"
    async with open_log(path, levels="request") as log:
        await log.event("program.finished", {"call_id": "p", "error_type": "a result"}, RUN)
    assert "a result" not in path.read_text()
    assert of_type(read(path), "program.finished")[0]["data"]["error_type_digest"] == KEY.digest("a result")


async def test_where_a_result_came_from_is_searched_for_secrets(tmp_path: Path) -> None:
    """A record's id in another system may be somebody's address."""
    path = tmp_path / "a.jsonl"
    origin = Provenance((Source("crm", "alice@example.com", "3"),))
    async with open_log(path) as log:
        await record_call(log, 1, outcome=Success(1, provenance=origin))
    assert b"alice@" not in path.read_bytes()
    told = of_type(read(path), "tool.finished")[0]["outcome"]["provenance"]["sources"][0]
    assert (told["system"], reason(told["record"])) == ("crm", "detector:email")


@pytest.mark.parametrize("path", ["**.nr", "**.**.nr", "a.**.**.nr"])
def test_any_number_of_steps_may_be_said_twice(path: str) -> None:
    """Who writes `**.**` means any number of steps, and must not be left with a path that matches nothing."""
    hidden = shown({"a": {"nr": "1", "b": {"nr": "2"}}}, paths=(path,))
    assert reason(hidden["a"]["nr"]) == reason(hidden["a"]["b"]["nr"]) == "path"


def test_what_is_unevaluated_may_be_sensitive_too() -> None:
    """JSON Schema has two more words for what no other keyword names."""
    mark: JsonValue = {"x-sensitive": True}
    assert reason(shown({"a": "hidden"}, {"type": "object", "unevaluatedProperties": mark})["a"]) == "schema"
    assert reason(shown(["hidden"], {"type": "array", "unevaluatedItems": mark})[0]) == "schema"


_PIN: dict[str, JsonValue] = {"type": "string", "x-sensitive": True}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (
            {"properties": {"a": {"$ref": "#pin"}}, "$defs": {"p": {"$anchor": "pin", **_PIN}}},
            {"a": "canary"},
        ),
        (
            {"properties": {"a": {"$dynamicRef": "#p"}}, "$defs": {"p": {"$dynamicAnchor": "p", **_PIN}}},
            {"a": "canary"},
        ),
        ({"properties": {"a": {"$ref": "https://x.test/s#/$defs/p"}}, "$defs": {"p": _PIN}}, {"a": "canary"}),
        ({"properties": {"a": {"$ref": "p"}}, "$defs": {"p": {"$id": "p", **_PIN}}}, {"a": "canary"}),
        ({"properties": {"a": {"$id": "t", "$ref": "#/$defs/p", "$defs": {"p": _PIN}}}}, {"a": "canary"}),
        ({"properties": {"a": _PIN, "b": {"$recursiveRef": "#"}}}, {"b": {"a": "canary"}}),
        ({"dependencies": {"b": {"properties": {"a": _PIN}}}}, {"a": "canary", "b": 1}),
        ({"items": [{}], "additionalItems": _PIN}, [1, "canary"]),
        ({"propertyNames": _PIN}, {"canary": 1}),
        ({"properties": {"a": {"contentSchema": {"properties": {"p": _PIN}}}}}, {"a": '{"p":"canary"}'}),
        ({"properties": {"a": {"x-of-tomorrow": {"then": [_PIN]}}}}, {"a": "canary"}),
    ],
)
def test_a_mark_in_a_way_that_cannot_be_followed_hides_what_stands_there(
    schema: JsonValue, value: JsonValue
) -> None:
    """A validator may understand what a log does not: nothing is shown because its mark was not found."""
    assert "canary" not in json.dumps(shown(value, schema))


def test_a_value_in_a_schema_that_is_called_like_a_mark_marks_nothing() -> None:
    """A default is a value: what is called so in it is none of the schema's words."""
    schema: JsonValue = {"properties": {"a": {"default": {"x-sensitive": True}}, "b": _PIN}}
    assert shown({"a": "shown"}, schema) == {"a": "shown"}


@pytest.mark.parametrize("level", ["request", "full"])
async def test_arguments_that_no_schema_was_found_for_are_not_shown(tmp_path: Path, level: str) -> None:
    """`logni(pin=…)` holds the same secret as `login(pin=…)`, and so does `login(account={"pni": …})`."""
    path = tmp_path / "a.jsonl"
    of = contract("login", secret=True, strict=False)
    async with open_log(path, levels=level) as log:
        for arguments in ('{"sku":"canary"}', {"sku": "canary"}, "canary"):
            made = call(1, "logni", arguments=arguments)
            await log.denied(made, None, Denied("unknown_tool", "no tool is called 'logni'"), RUN)
        made = call(2, "login", arguments={"uks": "canary"})
        for code in ("invalid_arguments", "caller_not_allowed", "program_not_open"):
            await log.denied(made, of, Denied(code, "no"), RUN)  # type: ignore[arg-type]
        await log.denied(made, contract(), Denied("invalid_arguments", "no"), RUN)
    assert path.read_text().count("canary") == 1, "a tool that marks nothing shows what it was called with"
    told = [record["content"]["arguments"] for record in of_type(read(path), "tool.denied")][:-1]
    assert {shown["$redacted"] for shown in told} == {"unchecked"}
    assert told[1]["bytes"] == len('{"sku":"canary"}')


class _Refused(Exception):
    """An application's own, which keeps something private under a name that libraries use."""

    code = "canary in a code"


async def test_only_codes_of_ours_are_metadata(tmp_path: Path) -> None:
    """Below `full` a run's end says a stable word, or the exception's class: never what an exception keeps."""
    path = tmp_path / "a.jsonl"

    def compact(*_: object) -> None:
        raise _Refused("canary in a message")

    async with open_log(path) as log, in_process(ScriptedModel(say("."))) as client:
        runner = ptc.Runner(client=client, model="m", audit=log, compact=compact)  # type: ignore[arg-type]
        with pytest.raises(_Refused):
            await runner.run("Hello.")
    (end,) = of_type(read(path), "run.finished")
    assert end["data"]["error"] == "_Refused"
    assert "canary" not in path.read_text()
