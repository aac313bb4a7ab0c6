"""All commands: help, exit codes, and output for pipes."""

from __future__ import annotations

import errno
import gzip
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.cli import COMMANDS, load_command

from ..places import IS_ROOT

CONTROL = re.compile(r"[^\x20-\x7e\n\u00a0-\U0010ffff]")


def test_help_names_every_command_and_loads_nothing_heavy(tmp_path: Path) -> None:
    program = (
        "import sys; sys.argv = ['recordsmith', '--help']\n"
        "from recordsmith.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "print('loaded:', *sorted({'numpy', 'cv2', 'PIL'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", result.stdout)
    assert result.stdout.rstrip().endswith("loaded:")


def test_version(run) -> None:
    import recordsmith

    assert run("--version").out == f"recordsmith {recordsmith.__version__}\n"


@pytest.mark.parametrize("flag", ["-q", "--quiet"])
def test_quiet_prints_errors_only(run, packed: Path, images: Path, flag: str) -> None:
    out = images.parent / "quiet"
    assert run("pack", images, out, flag) == (0, "", "")
    assert run("pack", images, out, flag, "--json").document["samples"] == 9
    assert run("inspect", packed, flag).out == run("inspect", packed).out
    outcome = run("pack", images, out, "--seed", "3", flag)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")
    assert "packed" in run("pack", images, images.parent / "loud").out


def test_completion_of_commands() -> None:
    variables = {"_RECORDSMITH_COMPLETE": "complete_bash", "COMP_WORDS": "recordsmith sal",
                 "COMP_CWORD": "1"}  # fmt: skip
    program = "import sys; sys.argv = ['recordsmith']; from recordsmith.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert result.stdout.split() == ["salvage"]


FOREIGN = {
    "page.tfrecord": (b"<!DOCTYPE html><html>404</html>", "HTML page"),
    "pointer.tfrecord": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
                         "git lfs pull"),
    "other.tfrecord.gz": (gzip.compress(b"no records at all" * 9), "gzip"),
    "short.tfrecord": (b"\x05\0\0", "header"),
    "noise.tfrecord": (bytes(range(7, 207)), "checksum"),
    "photo.tfrecord": (b"\xff\xd8\xff\xe0" + bytes(99), "JPEG"),
}  # fmt: skip
"""Files that are not TFRecords, each with a word that its error must contain."""


@pytest.mark.parametrize("command", ["inspect", "verify", "head"])
def test_foreign_files_are_one_paragraph(run, tmp_path: Path, command: str) -> None:
    for name, (data, word) in FOREIGN.items():
        path = tmp_path / name
        path.write_bytes(data)
        outcome = run(command, path)
        printed = outcome.out if command == "verify" else outcome.err
        assert outcome.code == 1, path
        assert str(path) in printed
        assert word.lower() in printed.lower()
        assert "Traceback" not in outcome.out + outcome.err
        if command != "verify":
            assert len(outcome.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["inspect", "verify", "head", "index", "bench"])
def test_missing_paths(run, tmp_path: Path, command: str) -> None:
    (tmp_path / "empty folder").mkdir()
    for path, word in (
        (tmp_path / "nothing", "no such file"),
        (tmp_path / "empty folder", "no TFRecord"),
        (tmp_path / "*.none", "no file matches"),
        (tmp_path / ("x" * 300), "too long"),
        (tmp_path / "emty folder", f"Did you mean {tmp_path / 'empty folder'}?"),
    ):
        outcome = run(command, path)
        assert outcome.code == 2
        assert word in outcome.err
        assert outcome.out == ""


@pytest.mark.posix
@pytest.mark.skipif(IS_ROOT, reason="root may read all files")
def test_a_forbidden_file(run, tmp_path: Path) -> None:
    path = tmp_path / "secret.tfrecord"
    path.write_bytes(b"x")
    path.chmod(0)
    outcome = run("verify", path)
    assert outcome.code in (1, 2)
    assert "permission" in outcome.out + outcome.err


def test_a_full_disk_is_reported(
    run, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    outcome = run("pack", images, tmp_path / "out")
    assert outcome.code == 2
    assert "space" in outcome.err
    assert not list((tmp_path / "out").glob("*"))


def test_odd_names(run, images: Path, tmp_path: Path) -> None:
    source = tmp_path / "Bilder aus Zürich 花"
    images.rename(source)
    (source / "cat").rename(source / "Katze & Ölbild")
    out = tmp_path / "aus gabe ✓"
    assert run("pack", source, out).code == 0
    assert "Katze & Ölbild" in run("inspect", out).out
    assert run("verify", out).code == 0
    assert "Katze & Ölbild/0.jpg" in run("head", out, "-n", 9).out
    assert run("verify", f"{out}/*.tfrecord").code == 0


@pytest.mark.slow
def test_piped_output_has_no_control_characters(run_process, images: Path) -> None:
    out = images.parent / "out"
    for arguments in (
        ("pack", images, out),
        ("inspect", out),
        ("head", out),
        ("verify", out),
        ("verify", out / "nothing"),
        ("index", out, "--format", "dali"),
        ("inspect", out, "--reader", "tf"),
        ("bench", out, "--size", "8", "--seconds", "0.1"),
        ("pack", "--help"),
        ("pack", "--wrong"),
    ):
        outcome = run_process(*arguments)
        assert not CONTROL.search(outcome.out), arguments
        assert not CONTROL.search(outcome.err), arguments
        assert "Traceback" not in outcome.err


def test_a_terminal_gets_a_progress_bar(images: Path, terminal: Any) -> None:
    """The bar goes away when the job is done."""
    code, shown, _ = terminal.run(
        [sys.executable, "-m", "recordsmith", "pack", images, images.parent / "out"]
    )
    assert code == 0
    assert "packing" in shown
    assert "━" in shown
    assert "\x1b[1mpacked 9 images" in shown
    assert "next:" in shown
    assert "--reader tf`" in shown


def run_signalled(name: str, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that a program changes: it has `send(pause)`, the signal."""
    head = (
        "import os, signal, sys, time\n"
        "from recordsmith.cli import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"def send(pause): os.kill(os.getpid(), signal.{name}); time.sleep(pause)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", f"{head}{textwrap.dedent(program)}\nmain()", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


SIGNALS = pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])


@pytest.mark.posix
@SIGNALS
def test_signals_leave_no_partial_output(images: Path, name: str, code: int) -> None:
    """The signal comes while the fourth sample is read."""
    out = images.parent / "out"
    program = """
        import recordsmith.sources.files.images as folder
        probe, seen = folder.probe_image, []
        def probing(data):
            seen.append(1)
            if len(seen) == 4: send(0.5)
            return probe(data)
        folder.probe_image = probing
    """
    result = run_signalled(name, program, "pack", images, out)
    assert result.returncode == code
    assert "Traceback" not in result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith("interrupted; ")
    assert "rerun the command" in last
    # a complete shard is kept for resuming
    assert not out.exists() or [path.name for path in out.iterdir()] == [".recordsmith"]


@pytest.mark.posix
@pytest.mark.slow
@SIGNALS
def test_renaming_is_finished_before_a_signal_ends_the_job(
    images: Path, name: str, code: int
) -> None:
    """The signal comes with the first renamed file; over a dataset that says nothing of this."""
    out = images.parent / "out"
    program = """
        from recordsmith.stores.local.store import LocalStore
        move = LocalStore.move
        def moving_one(*keys):
            move(*keys)
            send(0.01)
        LocalStore.move = moving_one
    """
    for options in (["--shards", "3"], ["--overwrite"]):
        result = run_signalled(name, program, "pack", images, out, *options)
        assert result.returncode == code
        assert result.stderr.splitlines()[-1].startswith("interrupted; ")
        assert not rs.verify(out).defects
        assert len(rs.open(out)) == 9


@pytest.mark.posix
@SIGNALS
def test_a_signal_in_a_finalizer_is_not_lost(images: Path, name: str, code: int) -> None:
    """Python ignores all exceptions there; the job would go on."""
    program = """
        import recordsmith as rs
        class Freed:
            def __del__(self): send(0.01)
        def stats(*_, **__):
            Freed()
            time.sleep(60)
        rs.stats = stats
    """
    result = run_signalled(name, program, "stats", images)
    assert result.returncode == code
    assert result.stderr.splitlines() == ["interrupted"]


@pytest.mark.posix
def test_interrupted_while_it_loads() -> None:
    """No traceback before a command has begun."""
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from recordsmith.__main__ import main\n"
        "main()\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.posix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_output_that_cannot_be_written(packed: Path, options: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "recordsmith", "inspect", packed, *options],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode == 2
    assert result.stderr.startswith("error: cannot write ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_output_that_was_closed(packed: Path, closed: str) -> None:
    command = [sys.executable, "-m", "recordsmith", "inspect", str(packed), "--json"]
    result = subprocess.run(
        f"{shlex.join(command)} {closed}",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_several_paths(run, packed: Path) -> None:
    shards = sorted(packed.glob("*.tfrecord"))
    assert run("verify", *shards, "--json").document["records"] == 9
    assert run("inspect", *shards[:2], "--json").document["records"] == 6
    assert len(run("head", *shards, "-n", 99, "--json").document["records"]) == 9


def test_a_closed_pipe_is_not_an_error(packed: Path) -> None:
    result = subprocess.run(
        f"{shlex.join([sys.executable, '-m', 'recordsmith', 'head', str(packed)])} -n 9 | true",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stderr == ""


@pytest.mark.parametrize("command", ["reshard", "salvage", "append"])
def test_a_single_path_is_not_taken_for_the_output(run, packed: Path, command: str) -> None:
    outcome = run(command, packed, "--json")
    assert outcome.code == 2
    assert outcome.err.startswith("error: missing argument ")
    assert f"{command} [OPTIONS] PATH... OUT" in outcome.err
    assert run(command, packed, "--help").code == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("pack a b --seed abc", "--seed must be an integer, got 'abc'"),
        ("pack a b --threads -1", "--threads must be a positive integer, got '-1'"),
        ("pack a b --split a=1", "no option --split. Did you mean --splits?"),
        ("pack a b --zyx", "no option --zyx. `recordsmith pack --help`"),
        ("pack a b --seed", "--seed needs a value: `--seed N`"),
        ("pack a b --overwrite=3", "--overwrite takes no value"),
        ("pack a b --overwrite yes", "--overwrite takes no value"),
        ("pack a", "missing argument 'OUT'. Usage: `recordsmith pack [OPTIONS] SOURCE OUT`"),
        ("pack a b c", "unexpected argument: c."),
        ("pack a b c d", "unexpected argument: c d."),
        ("sheet a b.png --where x == 3", "Put the condition in quotes"),
        ("head a --where x == 3", "cannot read a"),
        ("verfy", "Did you mean verify?"),
        ("pakc a b", "Did you mean pack?"),
        ("xyz", "`recordsmith --help`"),
        ("--xyz", "no option --xyz. `recordsmith --help`"),
        ("--vesrion", "Did you mean --version?"),
    ],
)
def test_an_error_in_what_was_typed_is_one_line(run, arguments: str, expected: str) -> None:
    outcome = run(*arguments.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    assert expected in outcome.err


def test_a_condition_without_quotes(run, packed: Path) -> None:
    outcome = run("head", packed, "--where", "image/class/label", "==", "1")
    assert outcome.code == 2
    assert "Put the condition in quotes" in outcome.err


def test_out_of_memory_is_one_line(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhaust(*_: object, **__: object) -> None:
        raise MemoryError

    load_command("detect")  # with the options of the function
    monkeypatch.setattr(rs, "detect", exhaust)
    outcome = run("detect", tmp_path)
    assert (outcome.code, outcome.err) == (2, "error: out of memory\n")
