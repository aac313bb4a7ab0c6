"""Jobs that are killed and run again: before each change of the file system, or at random moments.

Also a program, as it takes a process without threads to be copied at random moments:
`interruptions` runs it.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import recordsmith as rs

_JOBS: dict[str, Callable[..., Any]] = {
    "pack": lambda source, folder, options: rs.pack(rs.ImageFolder(source), folder, **options),
    "reshard": lambda source, folder, options: rs.reshard(source, folder, **options),
}


_CHANGES = frozenset(
    ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate", "fcntl.flock")
)


def killed_before(step: int, action: Callable[[], Any]) -> bool:
    """Run it in a child that kills itself before its `step`-th change of the file system.

    Returns:
        False if it makes fewer changes, and ended well.
    """
    child = os.fork()
    if child == 0:
        left = step

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if event in _CHANGES or writes:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            action()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or status == 0
    return os.WIFSIGNALED(status)


def interruptions(
    job: str, source: Path, out: Path, options: Mapping[str, Any], *, folders: int, kills: int
) -> tuple[int, int]:
    """How often a job was really killed, and how often something was wrong afterwards.

    Each of `folders` in `out` is written by a job that is killed `kills` times, and then is not.
    """
    arguments = [job, str(source), str(out), json.dumps(options), str(folders), str(kills)]
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        check=True, capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    killed, wrong = map(int, done.stdout.split())
    return killed, wrong


def _main(job: str, source: str, out: Path, options: Any, folders: int, kills: int) -> None:
    _import_all()

    def run(folder: Path) -> int:
        child = os.fork()
        if child == 0:
            _JOBS[job](source, folder, options)
            os._exit(0)
        return child

    seconds = float("inf")
    for number in range(3):  # the quickest: if the disk is slow for once, all kills come too late
        started = time.perf_counter()
        os.waitpid(run(out / f"undisturbed-{number}"), 0)
        seconds = min(seconds, time.perf_counter() - started)
    wanted = _hashes(out / "undisturbed-0")
    assert len(wanted) > 4  # shards, and the files next to them
    moments = random.Random(0)
    killed = wrong = 0
    for number in range(folders):
        folder = out / str(number)
        for _ in range(kills):
            child = run(folder)
            time.sleep(moments.random() * seconds)
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            killed += os.WIFSIGNALED(status)
            if folder.exists():
                found = _hashes(folder)
                # what has its final name is whole, whenever the job was killed
                wrong += any(found[name] != wanted[name] for name in found)
        _, status = os.waitpid(run(folder), 0)
        wrong += status != 0 or _hashes(folder) != wanted or not rs.verify(folder).is_good
        hidden = {path.suffix for path in (folder / ".recordsmith").iterdir()}
        wrong += hidden != {".index"}
    print(killed, wrong)


def _import_all() -> None:
    """Before the first copy is made, so that each of them spends its time on the job."""
    import PIL.Image  # noqa: F401

    import recordsmith.image.formats.probe  # noqa: F401

    for name in ("pack", "reshard", "open", "verify"):
        getattr(rs, name)


def _hashes(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if not path.name.startswith(".")
    }


if __name__ == "__main__":
    _main(
        sys.argv[1],
        sys.argv[2],
        Path(sys.argv[3]),
        json.loads(sys.argv[4]),
        *map(int, sys.argv[5:]),
    )
