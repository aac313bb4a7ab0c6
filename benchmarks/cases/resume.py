"""A pack that was stopped, run again: with half of its shards done, with all, with none.

Shards that are done are read and their checksums compared, so a job that is run again costs the
listing, that check, and the shards that are missing. Stopping is done by writing some of the
shards as another machine would: what then lies in the folder is what a killed job leaves there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from case import OURS, Case, Peer, Task
from cases.pack import packing_task
from inputs import Inputs

_SHARDS = 8


def _resumed(root_name: str, done: int, options: dict[str, Any]) -> Callable[[Inputs], Task]:
    def prepare(inputs: Inputs) -> Task:
        import recordsmith as rs

        source = rs.ImageFiles(inputs.path(root_name))
        out = inputs.out(f"resume-{root_name}-{done}")
        plan = rs.plan(source, out, shards=_SHARDS, **_made(rs, options))

        def run(folder: Path) -> None:
            rs.pack(source, folder, shards=_SHARDS, threads=1, **_made(rs, options))

        task = packing_task(out, len(source.list_samples().samples), run)

        def before() -> None:
            assert task.before is not None
            task.before()
            for shard in plan.tasks(range(done)):
                rs.run(shard)

        return replace(task, before=before)

    return prepare


def _made(rs: Any, options: dict[str, Any]) -> dict[str, Any]:
    if not options:
        return {}
    import cv2

    cv2.setNumThreads(1)  # one thread is one thread
    return {"image_options": rs.ImageOptions(**options)}


def _checking(root_name: str, options: dict[str, Any]) -> Callable[[Inputs], Task]:
    """Listing the source, and a checksum over every shard: what has to be done at least."""

    def prepare(inputs: Inputs) -> Task:
        import recordsmith as rs
        from recordsmith.format.wire import crc32c

        source = rs.ImageFiles(inputs.path(root_name))
        out = inputs.out(f"resume-{root_name}-checked")
        made = _made(rs, options)
        count = rs.pack(source, out, shards=_SHARDS, overwrite=True, **made).sample_count
        paths = sorted(out.glob("*.tfrecord"))
        buffer = bytearray(1 << 20)
        view = memoryview(buffer)

        def run() -> None:
            source.list_samples()
            for path in paths:
                checksum = 0
                with open(path, "rb", buffering=0) as file:
                    while size := file.readinto(buffer):
                        checksum = crc32c(view[:size], checksum)

        return Task(run, count)

    return prepare


def _case(name: str, title: str, what: str, root_name: str, **options: Any) -> Case:
    return Case(
        name=name,
        title=title,
        what=(
            f"{what}, {_SHARDS} shards; one thread. The first row is a job that was stopped when "
            "half of its shards were done, run again."
        ),
        unit="image",
        peers=(
            Peer(OURS, _resumed(root_name, _SHARDS // 2, options)),
            Peer("recordsmith, from the start", _resumed(root_name, 0, options)),
            Peer("recordsmith, all shards were done", _resumed(root_name, _SHARDS, options)),
            Peer("listing, and checksums of all shards", _checking(root_name, options)),
        ),
        inputs=(root_name,),
    )


CASES = (
    _case("resume", "Resume a pack", "Photographs as they are", "photographs"),
    _case(
        "resume-encoded",
        "Resume a pack that encodes",
        "Photographs made smaller",
        "few-photographs",
        shorter_side=256,
    ),
)
