from __future__ import annotations

import io
import sys

import pytest

from recordsmith.cli import console
from recordsmith.cli.parsing import parse_counts, parse_numbers, parse_shares, parse_size
from recordsmith.support.errors import OptionError

from ..raising import raises


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("256MB", 256_000_000),
        ("1.5 GiB", 3 << 29),
        ("500000B", 500_000),
        ("10k", 10_000),
        ("10 Kib", 10_240),
        ("7b", 7),
    ],
)
def test_parse_size(text: str, size_bytes: int) -> None:
    assert parse_size(text, "shard_size_bytes") == size_bytes


@pytest.mark.parametrize(
    "text", ["", "MB", "10", "1.5 ", "-5", "1.5.2", "5 XB", "5i", "0x10", "9" * 400]
)
def test_parse_size_refuses(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_size(text, "shard_size_bytes")
    assert caught.value.option == "shard_size_bytes"
    assert caught.value.value == f"{text!r:.80}"


def test_parse_shares_and_counts() -> None:
    assert parse_shares("train=0.7, validation=30%", "x") == {"train": 0.7, "validation": 0.3}
    assert parse_counts("8", "x") == 8
    assert parse_counts("train=8, validation=2", "x") == {"train": 8, "validation": 2}
    for text in ("", "x", "a=1,b", "a=x"):
        with raises(OptionError, option="shards"):
            parse_counts(text, "shards")


def test_parse_numbers() -> None:
    assert parse_numbers("3", "x") == [3]
    assert parse_numbers("0,2, 5-7", "x") == [0, 2, 5, 6, 7]
    for text in ("", "x", "1-", "-1", "7-5", "1,,2", "9" * 5000):
        with pytest.raises(OptionError) as caught:
            parse_numbers(text, "only")
        assert (caught.value.option, caught.value.value) == ("only", f"{text!r:.80}")
    with pytest.raises(OptionError) as caught:
        parse_numbers("0-999999999999", "only")
    assert "million" in caught.value.expected


def test_lines_of_a_megabyte_are_cut() -> None:
    assert console.shortened("x" * 2000) == "x" * 2000
    assert console.shortened("x" * 1_000_000) == "x" * 2000 + "… (998,000 characters more)"


@pytest.mark.parametrize(
    ("most", "number", "expected"),
    [
        (10, None, "seen:\n  a\n  b\n  c\n"),
        (2, None, "seen:\n  a\n  b\n  … and 1 more (all of them with --json)\n"),
        (2, 3, "seen:\n  a\n  b\n  … and 1 more (all of them with --json)\n"),
        (2, 9, "seen:\n  a\n  b\n  … and 7 more (the first 3 with --json)\n"),
        (10, 9, "seen:\n  a\n  b\n  c\n  … and 6 more\n"),
    ],
)
def test_lists_print_how_many_lines_are_left_out(
    most: int, number: int | None, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    console.print_list("seen", ["a", "b", "c"], most, number=number)
    assert capsys.readouterr().out == expected


def test_lines_are_wrapped_at_words_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "`a command that is copied`"
    text = f"a sentence of words and {command} and a\x1b-long-word-that-stays whole"
    for stream in (io.StringIO(), _Terminal()):
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("COLUMNS", "40")
        console.print_line(text, "  ", title="no such")
        console.print_line(f"note: {text}", title="note")
        console.print_error(text)
        lines = stream.getvalue().replace("\x1b[1m", "").replace("\x1b[1;31m", "")
        lines = lines.replace("\x1b[0m", "").splitlines()
        printed = text.replace("\x1b", "\\x1b")
        if not stream.isatty():
            assert lines == [f"  {printed}", f"note: {printed}", f"error: {printed}"]
            continue
        assert max(map(len, lines)) <= 40
        assert sum(command in line for line in lines) == 3
        whole = " ".join(line.strip() for line in lines)
        assert whole == f"{printed} note: {printed} error: {printed}"
        starts = [line for line in lines if line.startswith(("note:", "error:"))]
        assert len(starts) == 2
        assert lines[1].startswith("    ")  # two more than the line itself


def test_styles_can_be_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", _Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert console.bold("x") == "\x1b[1mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert console.bold("x") == "x"
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert console.bold("x") == "x"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.posix
def test_tables_do_not_wrap_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    console.print_table(["name", "values"], [["a long name " * 4, "1,234.5678 to 98,765.4321"]])
    assert "1,234.5678 to 98,765.4321" in terminal.getvalue()


def test_a_corrected_total_keeps_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", _Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with console.progress_bar("verifying", of_bytes=True) as progress:
        progress(40, 40)
        progress(60, 60)
    assert "60/60 bytes" in sys.stderr.getvalue()
