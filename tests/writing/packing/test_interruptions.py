"""Jobs that are killed at random moments or run out of disk, and are rerun."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import recordsmith as rs

pytestmark = pytest.mark.posix

OPTIONS = {"splits": {"train": 0.7, "validation": 0.3}, "shards": 4, "seed": 1, "threads": 2}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, images: ModuleType) -> Path:
    """Enough images that most kills fall into the writing."""
    root = tmp_path_factory.mktemp("many") / "flowers"
    for name in ("daisy", "rose"):
        (root / name).mkdir(parents=True)
        for number in range(150):
            (root / name / f"{number}.png").write_bytes(
                images.encode(images.noise(60, 40, seed=number), "PNG")
            )
    return root


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("simultaneous_packs", 30), ("killed_exports", 12)])
def test_a_few_of_the_long_trials(name: str, count: int) -> None:
    program = Path(__file__).parents[2] / "soak" / f"{name}.py"
    done = subprocess.run(
        [sys.executable, program, "--count", str(count), "--seed", "0"],
        check=False, capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_full_disk_and_then_a_larger_one(many: Path, small_disk: Path, tmp_path: Path) -> None:
    out = small_disk / "out"
    with pytest.raises(rs.FileAccessError) as caught:
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
