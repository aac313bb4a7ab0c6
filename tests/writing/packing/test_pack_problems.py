"""Packing with unreadable samples and full disks."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import recordsmith as rs
from recordsmith.dataset import read_manifest
from recordsmith.sources import Listing
from recordsmith.support.problems import MAX_PROBLEMS

from ...places import contents
from ...raising import raises
from ...reading import read_sample
from .flower_jobs import OPTIONS

# -- unreadable images ------------------------------------------------------------------------


def test_error_lists_every_bad_image_and_nothing_is_packed(
    spoiled: tuple[Path, list[str]], tmp_path: Path
) -> None:
    root, bad = spoiled
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(rs.ImageFolder(root), tmp_path / "out", shards=3)
    assert len(caught.value.problems) == len(bad)
    for path, problem in zip(bad, caught.value.problems, strict=True):  # in the listing's order
        assert problem.startswith(f"{path}: unreadable-image: ")
        assert problem in str(caught.value)
    assert f"{len(bad)} of {len(bad) + 16} samples" in str(caught.value)
    assert contents(tmp_path / "out") == {}


@pytest.mark.parametrize("threads", [1, 3])
def test_skip_errors_reports_bad_images_and_packs_the_rest(
    spoiled: tuple[Path, list[str]], tmp_path: Path, threads: int
) -> None:
    root, bad = spoiled
    out = tmp_path / "out"
    for is_new in (True, False):
        report = rs.pack(rs.ImageFolder(root), out, shards=3, skip_errors=True, threads=threads)
        assert report.is_new is is_new
        assert [problem.partition(": ")[0] for problem in report.skipped] == bad
        assert (report.sample_count, report.shard_count) == (16, 3)
        assert len(report.notices) == 1
        assert report.notices[0].endswith("README.txt")
    assert len(rs.open(out)) == 16
    assert rs.verify(out).is_good
    manifest = read_manifest(out)
    assert manifest is not None
    assert len(manifest.provenance["skipped"]) == len(bad)


@pytest.mark.parametrize("bad_count", [MAX_PROBLEMS, 1000])
def test_first_bad_rows_are_listed_and_all_are_counted(tmp_path: Path, bad_count: int) -> None:
    table = tmp_path / "a.csv"
    table.write_text("a,b\n" + "1,2\n" * 30 + "1,1e39\n" * bad_count)
    first = [f"{table}, line {line}" for line in range(32, 32 + MAX_PROBLEMS)]
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(rs.Table(table), tmp_path / "out", shards=3)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == first
    assert caught.value.problem_count == bad_count
    for is_new in (True, False):  # the first from the notes of shards, the second from the manifest
        report = rs.pack(rs.Table(table), tmp_path / "out", shards=3, skip_errors=True)
        assert (report.is_new, report.sample_count) == (is_new, 30)
        assert [problem.partition(":")[0] for problem in report.skipped] == first
        assert report.skipped_count == report.to_json()["skipped_count"] == bad_count
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(rs.Table(table), tmp_path / "out", shards=3)
    assert caught.value.problem_count == bad_count


def test_many_bad_cells_of_one_row_are_counted(tmp_path: Path) -> None:
    names = [f"a{number}" for number in range(1000)]
    table = tmp_path / "a.csv"
    table.write_text("\n".join([",".join(names), ",".join("1" * 1000), ",".join("x" * 1000)]))
    source = rs.Table(table, kinds=dict.fromkeys(names, "int64"))
    with pytest.raises(rs.SourceError) as caught:
        read_sample(source, source.list_samples().samples[1])
    assert (len(caught.value.problems), caught.value.problem_count) == (MAX_PROBLEMS, 1000)
    assert len(str(caught.value)) < 10_000


def test_image_removed_during_the_job_is_unreadable(tmp_path: Path, images: ModuleType) -> None:
    class Vanishing(rs.ImageFolder):
        def list_samples(self) -> Listing:
            listing = super().list_samples()
            (self.root / listing.samples[1].name).delete()
            return listing

    root = images.make_folder(tmp_path / "in", {"a": 4})
    report = rs.pack(Vanishing(root), tmp_path / "out", skip_errors=True)
    assert report.sample_count == 3
    assert "a/001.jpg" in report.skipped[0]


def test_skip_errors_is_a_bool(flowers: Path, tmp_path: Path) -> None:
    with pytest.raises(rs.OptionError) as caught:
        rs.pack(rs.ImageFolder(flowers), tmp_path / "out", skip_errors="ignore")  # type: ignore[arg-type]
    error = caught.value
    assert (error.option, error.value, error.expected) == (
        "skip_errors",
        "'ignore'",
        "True or False",
    )


@pytest.mark.parametrize("threads", [-1, -8])
def test_invalid_number_of_threads(flowers: Path, tmp_path: Path, threads: int) -> None:
    with raises(rs.OptionError, option="threads"):
        rs.pack(rs.ImageFolder(flowers), tmp_path / "out", threads=threads)


def test_empty_source(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(rs.SourceError):
        rs.pack(rs.ImageFolder(tmp_path / "in"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


# -- full disks ----------------------------------------------------------------------------------


def test_disk_full_at_sync(flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(rs.FileAccessError) as caught:
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.operation == "write"
    assert str(caught.value.path).startswith(str(tmp_path))
    assert contents(tmp_path) == {}


@pytest.mark.posix
@pytest.mark.parametrize("number", [1, 2])
def test_failed_sync_of_a_folder(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """What a folder lists is on the disk before anything relies on it."""
    rs.pack(rs.ImageFolder(flowers), tmp_path / "expected", **OPTIONS)
    fsync, left = os.fsync, [number]

    def fail(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            left[0] -= 1
            if left[0] == 0:
                raise OSError(errno.EIO, "")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(rs.FileAccessError) as caught:
        rs.pack(rs.ImageFolder(flowers), tmp_path / "out", **OPTIONS)
    assert caught.value.errno == errno.EIO
    assert caught.value.operation == "write"
    rs.pack(rs.ImageFolder(flowers), tmp_path / "out", **OPTIONS)
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")


@pytest.mark.posix
def test_file_size_limit(flowers: Path, tmp_path: Path, images: ModuleType) -> None:
    """A limit of the system: writing stops in the middle of a shard."""
    pytest.importorskip("resource")
    script = (
        "import resource, signal, sys, recordsmith as rs\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "try: rs.pack(rs.ImageFolder(sys.argv[1]), sys.argv[2])\n"
        "except rs.FileAccessError as error: print(error.errno, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(flowers), str(tmp_path / "out")],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert "train-00000-of-00001.tfrecord" in done.stdout
    assert str(errno.EFBIG) in done.stdout
    assert contents(tmp_path / "out") == {}


@pytest.mark.posix
def test_disk_that_returns_other_bytes_is_detected(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards are read back before they are published."""
    fsync = os.fsync

    def spoil(descriptor: int) -> None:
        fsync(descriptor)
        os.pwrite(descriptor, b"\xff", 40)

    monkeypatch.setattr(os, "fsync", spoil)
    with pytest.raises(rs.CorruptDataError):
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    assert contents(tmp_path) == {}
