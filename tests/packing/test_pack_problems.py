"""Pack: samples that cannot be read, and disks that are full."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import recordsmith as rs
from recordsmith.dataset import read_manifest
from recordsmith.sources import Listing

from .flower_jobs import OPTIONS, files_of

# -- pictures that cannot be read ----------------------------------------------------------------


def test_stop_lists_every_bad_picture_and_leaves_nothing(
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
    assert files_of(tmp_path / "out") == {}


@pytest.mark.parametrize("threads", [1, 3])
def test_skip_reports_them_and_packs_the_rest(
    spoiled: tuple[Path, list[str]], tmp_path: Path, threads: int
) -> None:
    root, bad = spoiled
    out = tmp_path / "out"
    for is_new in (True, False):
        report = rs.pack(rs.ImageFolder(root), out, shards=3, on_error="skip", threads=threads)
        assert report.is_new is is_new
        assert [problem.partition(": ")[0] for problem in report.skipped] == bad
        assert (report.sample_count, report.shard_count) == (16, 3)
        assert len(report.notices) == 1
        assert report.notices[0].endswith("README.txt")
    assert len(rs.open(out)) == 16
    assert rs.verify(out).is_good
    manifest = read_manifest(out)
    assert manifest is not None
    assert len(manifest.made_from["skipped"]) == len(bad)


def test_picture_that_vanishes_meanwhile_is_like_one_that_cannot_be_read(
    tmp_path: Path, pictures: ModuleType
) -> None:
    class Vanishing(rs.ImageFolder):
        def list_samples(self) -> Listing:
            listing = super().list_samples()
            (self.root / listing.samples[1].name).unlink(missing_ok=True)
            return listing

    root = pictures.make_folder(tmp_path / "in", {"a": 4})
    report = rs.pack(Vanishing(root), tmp_path / "out", on_error="skip")
    assert report.sample_count == 3
    assert "a/001.jpg" in report.skipped[0]


def test_unknown_on_error_is_refused(flowers: Path, tmp_path: Path) -> None:
    with pytest.raises(rs.OptionError, match="'ignore'; expected 'stop' or 'skip'"):
        rs.pack(rs.ImageFolder(flowers), tmp_path / "out", on_error="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [-1, -8])
def test_number_of_threads_that_makes_no_sense(flowers: Path, tmp_path: Path, threads: int) -> None:
    with pytest.raises(rs.OptionError, match="threads"):
        rs.pack(rs.ImageFolder(flowers), tmp_path / "out", threads=threads)


def test_source_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(rs.SourceError):
        rs.pack(rs.ImageFolder(tmp_path / "in"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


# -- a disk that is full -------------------------------------------------------------------------


def test_disk_that_is_full_at_the_sync(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(rs.FileAccessError, match="no space is left on the disk") as caught:
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    assert caught.value.errno == errno.ENOSPC
    assert f"cannot write {tmp_path}" in str(caught.value)
    assert files_of(tmp_path) == {}


def test_file_that_may_not_grow(flowers: Path, tmp_path: Path, pictures: ModuleType) -> None:
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
    assert files_of(tmp_path / "out") == {}


def test_bytes_that_come_back_otherwise_are_noticed(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that loses a bit: what was written is read back before it gets its name."""
    fsync = os.fsync

    def spoil(descriptor: int) -> None:
        fsync(descriptor)
        os.pwrite(descriptor, b"\xff", 40)

    monkeypatch.setattr(os, "fsync", spoil)
    with pytest.raises(rs.CorruptDataError):
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    assert files_of(tmp_path) == {}
