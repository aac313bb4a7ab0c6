"""Temporary files: written data is read back, no file is left, a full disk is reported."""

from __future__ import annotations

import errno
import gzip
import io
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources import EncodedRows
from recordsmith.sources.files.text_file import inflated
from recordsmith.stores import ScratchFile, as_location

from ..raising import raises


def test_payloads_come_back_from_any_thread() -> None:
    source = random.Random(0)
    payloads = [source.randbytes(source.choice((0, 1, 50, 700_000))) for _ in range(40)]
    rows = EncodedRows()
    for payload in payloads:
        rows.append(payload)
    rows.finish()
    assert len(rows) == len(payloads)
    assert rows.sizes.tolist() == list(map(len, payloads))
    order = source.sample(range(40), 40)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(rows.read, order)) == [payloads[number] for number in order]


def test_frames_are_records_in_any_order() -> None:
    rows = EncodedRows()
    payloads = [bytes([n]) * n for n in range(200)]
    for payload in payloads:
        rows.append(payload)
    rows.finish()
    order = np.random.default_rng(0).permutation(200)
    frames, lengths = rows.read_frames(order)
    assert lengths.tolist() == order.tolist()
    found = rs.read_records(io.BytesIO(frames.tobytes()))
    assert list(map(bytes, found)) == [payloads[number] for number in order]


def test_a_damaged_temporary_file_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = EncodedRows()
    rows.append(b"x" * 100)
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda file, data: write(file, bytes(data)[:-9] + b"y" * 9))
        rows.finish()
    with raises(rs.CorruptDataError, record=0, defect=rs.Defect.PAYLOAD_CRC):
        rows.read(0)


@pytest.mark.posix
def test_nothing_is_left_of_a_job_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, recordsmith as rs\n"
        "source = rs.Rows({'x': b'x' * 1000} for _ in range(5000))\n"
        "assert len(source.list_samples().samples) == 5000\n"
        "print('listed', flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, env=environment, stdout=subprocess.PIPE
    )
    assert (done.returncode, done.stdout) == (-9, b"listed\n")
    assert list(tmp_path.iterdir()) == []


def test_full_disk_names_the_folder_and_tmpdir(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    rows = EncodedRows()
    rows.append(b"x")
    with monkeypatch.context() as patched, pytest.raises(rs.FileAccessError) as caught:
        patched.setattr(os, "write", write)
        rows.finish()
    assert caught.value.errno == errno.ENOSPC
    words = str(caught.value)
    assert tempfile.gettempdir() in words
    assert "TMPDIR" in caught.value.remedy


def test_files_are_closed_when_unused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_files: Any
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file = ScratchFile([b"x"])
    assert len(open_files(tmp_path)) == 1
    del file
    for _ in range(50):
        ScratchFile([b"x"]).read_at(0, 1)
    assert not open_files(tmp_path)


def test_inflated(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(3_000_000)
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(data[:5]) + gzip.compress(data[5:]))
    assert b"".join(inflated(as_location(path))) == data
    path.write_bytes(gzip.compress(data)[:-20])
    with raises(rs.CorruptDataError, path=tmp_path / "x.gz") as caught:
        list(inflated(as_location(path)))
    assert caught.value.defect == rs.Defect.TRUNCATED_COMPRESSION
