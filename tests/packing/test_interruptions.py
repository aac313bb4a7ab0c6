"""Jobs that are killed at any moment, or run out of disk, and are run again."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import recordsmith as rs

OPTIONS = {"splits": {"train": 0.7, "validation": 0.3}, "shards": 4, "seed": 1, "threads": 2}
KILLS = 50

_KILLER = """
import hashlib, os, random, signal, sys, time
from pathlib import Path
import recordsmith as rs
root, out, kills, options = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), eval(sys.argv[4])
rs.pack, rs.open, rs.verify
import PIL.Image, recordsmith.image.probe

def hashes(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.iterdir()) if not path.name.startswith(".")}

def run(folder):
    child = os.fork()
    if child == 0:
        rs.pack(rs.ImageFolder(root), folder, **options)
        os._exit(0)
    return child

started = time.perf_counter()
os.waitpid(run(out / "undisturbed"), 0)
seconds = time.perf_counter() - started
wanted = hashes(out / "undisturbed")
moments = random.Random(0)
killed = wrong = 0
for number in range(kills):
    folder = out / str(number)
    child = run(folder)
    time.sleep(moments.random() * seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    killed += os.WIFSIGNALED(status)
    if folder.exists():
        found = hashes(folder)
        # what has its final name is whole, whenever the job was killed
        wrong += any(found[name] != wanted[name] for name in found)
    _, status = os.waitpid(run(folder), 0)
    wrong += status != 0 or hashes(folder) != wanted or not rs.verify(folder).is_good
print(killed, wrong)
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, pictures: ModuleType) -> Path:
    """Enough pictures that most kills fall into the writing."""
    root = tmp_path_factory.mktemp("many") / "flowers"
    for name in ("daisy", "rose"):
        (root / name).mkdir(parents=True)
        for number in range(150):
            (root / name / f"{number}.png").write_bytes(
                pictures.encode(pictures.noise(60, 40, seed=number), "PNG")
            )
    return root


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills copies of a process")
def test_killed_at_random_moments(many: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _KILLER, str(many), str(tmp_path), str(KILLS), repr(OPTIONS)],
        check=True, capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    killed, wrong = map(int, done.stdout.split())
    assert wrong == 0
    assert killed > 0  # how many, and whether work was kept, hangs on the machine


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A disk of 1 MiB; only root can make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("a small disk cannot be made here")
    try:
        yield folder  # type: ignore[misc]
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_full_disk_and_then_a_larger_one(many: Path, small_disk: Path, tmp_path: Path) -> None:
    out = small_disk / "out"
    with pytest.raises(rs.FileAccessError, match="no space is left on the disk") as caught:
        rs.pack(rs.ImageFolder(many), out, **{**OPTIONS, "threads": 1})  # type: ignore[arg-type]
    assert caught.value.errno == errno.ENOSPC
    assert not [path for path in out.iterdir() if not path.name.startswith(".")]
    done = list((out / ".recordsmith").glob("*.done"))
    assert done
    subprocess.run(
        ["mount", "-o", "remount,size=20m", str(small_disk)],
        check=True,
    )
    rs.pack(rs.ImageFolder(many), out, **OPTIONS)  # type: ignore[arg-type]
    rs.pack(rs.ImageFolder(many), tmp_path / "plain", **OPTIONS)  # type: ignore[arg-type]
    for path in (tmp_path / "plain").iterdir():
        if path.is_file():
            assert (out / path.name).read_bytes() == path.read_bytes()
