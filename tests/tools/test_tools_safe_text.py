"""What of an exception is shown: its words, never where the host keeps things."""

import pytest

from ptc_tools.safe_text import describe_exception, safe_text


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/home/ada/app/secrets.json",
        "~/.ssh/id_rsa",
        "C:\\Users\\ada\\x.ini",
        "c:/Users/ada/x.ini",
        "\\\\server\\share\\x.ini",
        "file:///srv/app/x",
        "/opt/venv/lib/python3.11/site-packages/ptc/run.py",
    ],
)
@pytest.mark.parametrize(
    "around", ["{}", "cannot open '{}'", 'File "{}", line 3', "path={} is bad", "({})", "{}: no"]
)
def test_a_path_is_never_shown(path: str, around: str) -> None:
    """However it is quoted."""
    shown = safe_text(around.format(path))
    assert path not in shown
    assert "ada" not in shown
    assert "<path>" in shown


@pytest.mark.parametrize(
    "text",
    [
        "GET https://example.org/a/b failed",
        "3/4 of it",
        "and/or",
        "text/html; charset=utf-8",
        "10:30/11:30",
        "a\\b",
    ],
)
def test_what_is_no_path_stays(text: str) -> None:
    """An address, a fraction and a media type are words."""
    assert safe_text(text) == text


@pytest.mark.parametrize(
    "text",
    ["Traceback (most recent call last):\n  File x", "  \n\n", "\x1b[31m\u202e", "\ud800"],
)
def test_what_would_act_on_its_reader_is_left_out(text: str) -> None:
    """A traceback, terminal escapes, bidirectional controls, lone surrogates."""
    shown = safe_text(text)
    assert "Traceback" not in shown
    assert shown.isprintable()
    shown.encode()


def test_only_the_first_line_is_shown_and_it_is_bounded() -> None:
    """An exception may carry a page of HTML."""
    assert describe_exception(ValueError("one\ntwo")) == "ValueError: one"
    assert len(describe_exception(ValueError("x" * 10_000))) < 500
    assert (
        describe_exception(FileNotFoundError(2, "No such file", "/srv/x/y"))
        == "FileNotFoundError: No such file"
    )
    assert describe_exception(ExceptionGroup("g", [KeyError("k")])) == "KeyError: 'k'"
