"""Folders of LeRobot v3.0, written without it; `tests/lerobot` compares with the package."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

FPS = 10
HEIGHT, WIDTH = 48, 64
LENGTHS = (5, 7, 4, 6)
TASKS = ("pick", "pläce")


def grey_of(episode: int, step: int) -> int:
    """The brightness of the frames of a step, so that frames cannot be confused."""
    return 20 + 60 * episode + 8 * step


def frame(episode: int, step: int) -> npt.NDArray[np.uint8]:
    texture = np.random.default_rng(0).integers(-15, 16, (HEIGHT, WIDTH // 2, 3))
    pixels: Any = grey_of(episode, step) + np.concatenate([texture, -texture], axis=1)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def columns_of(episode: int, length: int) -> dict[str, Any]:
    """The numbers of an episode, (steps, values)."""
    random = np.random.default_rng(episode)
    return {
        "observation.state": random.random((length, 3), np.float32),
        "action": random.random((length, 2), np.float32),
        "next.reward": random.random(length, np.float32),
        "next.done": np.arange(length) == length - 1,
        "count": random.integers(-9, 9, length),
    }


def feature(dtype: str, *shape: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "names": None}


def info_of(kind: str, lengths: Sequence[int]) -> dict[str, Any]:
    path = "chunk-{chunk_index:03d}/file-{file_index:03d}"
    return {
        "codebase_version": "v3.0",
        "robot_type": "arm",
        "total_episodes": len(lengths),
        "total_frames": sum(lengths),
        "fps": FPS,
        "splits": {"train": f"0:{len(lengths)}"},
        "data_path": f"data/{path}.parquet",
        "video_path": f"videos/{{video_key}}/{path}.mp4",
        "features": {
            "observation.images.front": feature(kind, HEIGHT, WIDTH, 3),
            "observation.state": feature("float32", 3),
            "action": feature("float32", 2),
            "next.reward": feature("float32", 1),
            "next.done": feature("bool", 1),
            "count": feature("int64", 1),
            "note": feature("string", 1),
            "timestamp": feature("float32", 1),
            "frame_index": feature("int64", 1),
            "episode_index": feature("int64", 1),
            "index": feature("int64", 1),
            "task_index": feature("int64", 1),
        },
    }


def write(
    root: Path,
    kind: str = "video",
    *,
    files: Sequence[Sequence[int]] = ((0, 1), (2, 3)),
    row_group: int = 100,
    gop: int = 12,
    lengths: Sequence[int] = LENGTHS,
) -> Path:
    """Write a dataset; `files` are the episodes of each file of data and of videos."""
    rows: list[dict[str, Any]] = []
    start = 0
    for number, episodes in enumerate(files):
        place = {"chunk_index": number // 2, "file_index": number % 2}
        name = f"chunk-{number // 2:03d}/file-{number % 2:03d}"
        tables, frames = [], 0
        for episode in episodes:
            length = lengths[episode]
            tables.append(_table(episode, length, start, kind))
            row = {
                "episode_index": episode,
                "tasks": [TASKS[episode % 2]],
                "length": length,
                "dataset_from_index": start,
                "dataset_to_index": start + length,
            }
            row |= {f"data/{key}": value for key, value in place.items()}
            if kind == "video":
                prefix = "videos/observation.images.front"
                row |= {f"{prefix}/{key}": value for key, value in place.items()}
                row[f"{prefix}/from_timestamp"] = frames / FPS
                row[f"{prefix}/to_timestamp"] = (frames + length) / FPS
                frames += length
            rows.append(row)
            start += length
        parquet(root / f"data/{name}.parquet", pa.concat_tables(tables), row_group)
        if kind == "video":
            path = root / f"videos/observation.images.front/{name}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            video(path, [frame(e, s) for e in episodes for s in range(lengths[e])], gop)
    parquet(root / "meta/episodes/chunk-000/file-000.parquet", pa.Table.from_pylist(rows))
    parquet(root / "meta/tasks.parquet", pa.table({"task_index": [1, 0], "task": TASKS[::-1]}))
    (root / "meta/info.json").write_text(json.dumps(info_of(kind, lengths)))
    return root


def _table(episode: int, length: int, first: int, kind: str) -> pa.Table:
    steps = np.arange(length)
    columns: dict[str, Any] = {
        "timestamp": (steps / FPS).astype(np.float32),
        "frame_index": steps,
        "episode_index": np.full(length, episode),
        "index": first + steps,
        "task_index": np.full(length, episode % 2),
        "note": [f"{episode}.{step}" for step in range(length)],
    }
    for name, values in columns_of(episode, length).items():
        columns[name] = list(values) if values.ndim > 1 else values
    if kind == "image":
        files = [{"bytes": png(frame(episode, s)), "path": f"{s}.png"} for s in range(length)]
        columns["observation.images.front"] = files
    return pa.table(columns)


def parquet(path: Path, table: pa.Table, row_group: int = 100) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=row_group)


def change_episodes(root: Path, **values: Any) -> None:
    """Replace columns of `meta/episodes`; dots in names are slashes."""
    path = root / "meta/episodes/chunk-000/file-000.parquet"
    columns = pq.read_table(path).to_pydict()
    pq.write_table(pa.table(columns | {k.replace("__", "/"): v for k, v in values.items()}), path)


def change_info(root: Path, **values: Any) -> None:
    path = root / "meta/info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def video(
    path: Path, frames: Sequence[npt.NDArray[np.uint8]], gop: int = 12, form: str = "mp4"
) -> None:
    """A file of H.264, with frames that depend on others before and after them."""
    import av

    faststart = {"movflags": "faststart"} if form == "mp4" else {}
    with av.open(str(path), "w", format=form, options=faststart) as container:
        options = {"crf": "10", "g": str(gop), "bf": "2"}
        stream: Any = container.add_stream("libx264", rate=Fraction(FPS), options=options)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for pixels in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
