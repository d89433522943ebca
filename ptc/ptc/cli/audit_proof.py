"""`ptc audit verify`, `prove`, `replay` and `keys`: what can be proven about a log, and with which keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptc.cli.audit_options import Anchors, AsJson, Keys, Log, TrustedKeys, dump

if TYPE_CHECKING:
    from ptc.audit.verification import Verification
    from ptc_tools.call import JsonObject

INTACT, TAMPERED, INCOMPLETE = 0, 1, 2
PROVEN, DIVERGED, NOT_PROVABLE = 0, 1, 2

keys_app = typer.Typer(
    help=(
        "The audit keys: digests, checkpoints, journals.\n\nUse it where several machines or services are to share"
        " keys, or to change a key. Without it a keyring is made at first use.\n\n\b\nExamples:\n"
        "  ptc audit keys new /etc/ptc/keys.json\n  ptc audit keys show audit.db"
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def verify(
    log: Log, key: TrustedKeys = None, anchor: Anchors = None, keys: Keys = None, as_json: AsJson = False
) -> None:
    """Check a log. Exit status: 0 intact, 1 tampered, 2 incomplete (or it cannot be read).

    Use it before you rely on a log, and regularly. It says which guarantee held, and up to which record.

    \b
    Examples:
      ptc audit verify audit.db
      ptc audit verify audit.db --key KEY --anchor checkpoints.txt
    """
    from ptc.audit.verify import verify as check
    from ptc.cli.audit_options import read_anchors, verifier_for

    report = check(
        log,
        verifier_keys=key or (),
        verifier_for=None if key else verifier_for(keys),
        anchors=read_anchors(anchor),
    )
    if as_json:
        dump(verification_object(report))
    else:
        _print_verification(report)
    raise typer.Exit({"intact": INTACT, "tampered": TAMPERED, "incomplete": INCOMPLETE}[report.verdict])


def prove(log: Log, seq: Annotated[int, typer.Argument(metavar="SEQ", help="Number of a record.")]) -> None:
    """Print an inclusion proof for one record, and consistency proofs between the checkpoints, as JSON.

    Use it to show one record to somebody who has a checkpoint and is not to see the rest.

    \b
    Example:
      ptc audit prove audit.db 12
    """
    from ptc.audit.proofs import prove as make

    dump(make(log, seq))


def replay(
    log: Log,
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run id.")],
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Run a run's local programs again and say whether the log explains what they gave.

    Use it to prove that the recorded answers lead to the recorded result. No tool is called. It needs what a
    log keeps with journals=True, or at the level full.

    Exit status: 0 proven, 1 diverged, 2 not provable.

    \b
    Example:
      ptc audit replay audit.db run_4f0c…
    """
    import asyncio

    from ptc.audit.replay import overall
    from ptc.audit.replay import replay as run_again
    from ptc.cli.audit_options import keyring
    from ptc.cli.console import stdout, text

    proofs = asyncio.run(run_again(log, run, keyring(keys)))
    verdict = overall(proofs)
    if as_json:
        dump({"verdict": verdict, "programs": [proof.to_json() for proof in proofs]})
    else:
        out = stdout()
        style = {"proven": "bold green", "diverged": "bold red", "not provable": "bold yellow"}[verdict]
        out.print(text(verdict if proofs else "not provable: the run has no program", style))
        for proof in proofs:
            where = f" (record {proof.seq})" if proof.seq is not None else ""
            calls = f", {proof.calls} call{'' if proof.calls == 1 else 's'}" if proof.calls else ""
            out.print(
                text(f"  program {proof.program}{calls}: {proof.verdict}{where}: {proof.why}"),
                soft_wrap=True,
            )
    raise typer.Exit({"proven": PROVEN, "diverged": DIVERGED, "not provable": NOT_PROVABLE}[verdict])


@keys_app.command("new")
def keys_new(path: Annotated[Path, typer.Argument(help="The keyring file to make.")]) -> None:
    """Make a keyring, for its owner alone to read. Keep it away from the logs.

    Use it before the first log, where the default place (your configuration folder) will not do.

    \b
    Example:
      ptc audit keys new /etc/ptc/keys.json
    """
    from ptc.audit.errors import AuditKeyError
    from ptc.audit.keys import Keyring
    from ptc_tools.command_line import ptc_command

    if path.exists():
        raise AuditKeyError(f"{path} exists already: `{ptc_command()} audit keys rotate` adds keys to it")
    Keyring.generate().save(path)
    typer.echo(f"made {path}; use it with PTC_AUDIT_KEYS={path} or --keys {path}")


@keys_app.command("show")
def keys_show(log: Log, keys: Keys = None) -> None:
    """Print the ids of the keys, and the verifier keys for a log, which are public.

    Use it to get the key that others verify your log with.

    \b
    Example:
      ptc audit keys show audit.db
    """
    from ptc.audit.errors import RecordNotFound
    from ptc.audit.notes import verifier_key
    from ptc.audit.reader import records
    from ptc.cli.audit_options import keyring

    ring = keyring(keys)
    first = next(records(log), None)
    if first is None:
        raise RecordNotFound(
            f"{log} holds no record yet: its verifier keys belong to its id, which that says"
        )
    log_id = str(first.get("log"))
    for key in ring.of("signing"):
        typer.echo(f"verifier key ({key.id}): {verifier_key(log_id, key)}")
    typer.echo(f"digest keys: {', '.join(key.id for key in ring.of('digest'))}")
    typer.echo(f"journal keys: {', '.join(key.id for key in ring.of('journal'))}")


@keys_app.command("rotate")
def keys_rotate(
    purpose: Annotated[str, typer.Argument(help="digest, signing or journal.")], keys: Keys = None
) -> None:
    """Add a new key. Logs use it from when they are opened next; older keys stay for looking things up.

    Use it on a schedule, or when a key may have been seen.

    \b
    Example:
      ptc audit keys rotate signing
    """
    from typing import get_args

    from ptc.audit.errors import AuditKeyError
    from ptc.audit.keys import Purpose
    from ptc.cli.audit_options import keyring

    for known in get_args(Purpose):
        if purpose == known:
            typer.echo(f"the {purpose} key is now {keyring(keys).rotate(known).id}")
            return
    raise AuditKeyError(f"a key is for digest, signing or journal, not for {purpose!r}")


def verification_object(report: Verification) -> JsonObject:
    """A verification as `--json` prints it."""
    from dataclasses import asdict

    return {"verdict": report.verdict, "guarantee": report.guarantee(), **asdict(report)}


def _print_verification(report: Verification) -> None:
    from ptc.cli.console import stdout, text

    out = stdout()
    style = {"intact": "bold green", "tampered": "bold red", "incomplete": "bold yellow"}[report.verdict]
    out.print(text(f"{report.verdict}: {report.records} records of log {report.log or '?'}", style))
    for finding in report.findings:
        where = f"{Path(finding.file).name}:{finding.number}" if finding.number else Path(finding.file).name
        seq = f" record {finding.seq}" if finding.seq is not None else ""
        out.print(text(f"  {finding.kind} at {where}{seq}: {finding.what}"), soft_wrap=True)
    for call in report.indeterminate[:20]:
        state = "in flight" if report.live else "indeterminate: it may or may not have run to its end"
        out.print(
            text(f"  call {call['call']} of {call['tool']} in {call['run']}, record {call['seq']}: {state}"),
            soft_wrap=True,
        )
    if len(report.indeterminate) > 20:
        out.print(text(f"  and {len(report.indeterminate) - 20} more calls without an end"))
    for note in report.notes:
        out.print(text(f"  note: {note}", "dim"), soft_wrap=True)
    reaches = (("chained", report.chained_to), ("signed", report.signed_to), ("anchored", report.anchored_to))
    reach = [f"{name} to record {seq}" for name, seq in reaches if seq is not None]
    if reach:
        less = ", with exceptions" if report.unsigned and report.signed_to is not None else ""
        out.print(text(f"  {', '.join(reach)}{less}"), soft_wrap=True)
    out.print(text(f"  {report.guarantee()}"), soft_wrap=True)
