"""LeRobot v3.0: the steps of episodes as Parquet, and their images as a video for each camera.

    data/chunk-000/file-000.parquet, …
    videos/<camera>/chunk-000/file-000.mp4, …
    meta/info.json, meta/stats.json, meta/tasks.parquet, meta/episodes/chunk-000/file-000.parquet

`steps/observation/state` becomes `observation.state`; an image of the observation that is not
called `image` becomes `observation.images.NAME`. Images are encoded as LeRobot does: AV1, which
loses details. Memory holds an episode. Needs pyarrow and PyAV.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterator
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import Dataset, find_layout, import_pyarrow
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.exporter import FolderExporter
from recordsmith.format.example import Features
from recordsmith.format.example.feature_values import all_floats, all_texts, first_text
from recordsmith.image import decode_image, find_image_header
from recordsmith.sources import EPISODES_FOLDER, LEROBOT_INFO_NAME, POSITIONS, TASKS_NAME, VERSION
from recordsmith.support.errors import DataError, OptionError, SourceError, option

_STEPS, _EPISODE = "steps/", "episode_metadata/"
_FPS, _ROBOT = f"{_EPISODE}fps", f"{_EPISODE}robot_type"
_TASKS = tuple(
    f"{prefix}{name}"
    for prefix in (_STEPS, f"{_STEPS}observation/", _EPISODE)
    for name in ("language_instruction", "natural_language_instruction", "task")
)
"""Keys of the task; the first that a record has."""

_IMPLIED = {f"{_STEPS}{name}" for name in ("is_first", "is_last", *POSITIONS)}
_IMPLIED |= {*_TASKS, _FPS, _ROBOT, f"{_EPISODE}episode_index"}
_PATH = "chunk-{chunk_index:03d}/file-{file_index:03d}"
_FILES_IN_CHUNK = 1000
_DATA_MB, _VIDEO_MB = 100, 200
_EPISODES_AT_ONCE = 100
_CODEC = "libsvtav1"
_CODEC_OPTIONS = {"crf": "30", "g": "2", "preset": "12"}  # the defaults of LeRobot
_SAMPLED_FRAMES, _SAMPLED_SIDE = 100, 150  # for the statistics of images
_QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}

_Stats = dict[str, npt.NDArray[Any]]


class _Feature(NamedTuple):
    """A feature of steps: its key, its name and type in LeRobot, and the shape of a step."""

    key: str
    name: str
    dtype: str
    shape: tuple[int, ...]


class LeRobotFiles(FolderExporter):
    options = ("fps",)
    _files: tuple[_Tables | _Videos, ...] = ()

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        import_pyarrow()
        from recordsmith.support.libraries import av  # noqa: F401 - a missing one is reported first

        fps = self.fps
        if fps is not None and not (isinstance(fps, Real) and 0.001 < fps < 1e6):
            raise OptionError(
                option="fps", value=fps, expected="a number between 0.001 and 1,000,000"
            )
        try:
            layout = find_layout(dataset, _STEPS, None)
            problem = "they are SequenceExamples" if layout.is_sequence else ""
        except OptionError as error:
            problem = error.problem
        if problem:
            raise OptionError(
                f"the records are not episodes: {problem}",
                option="format",
                value=self.format,
                expected=f"Examples whose features of steps begin with {_STEPS!r}",
            )
        self._out = out
        self._count_key = layout.count_key
        self._features: tuple[_Feature, ...] = ()
        self._videos: dict[str, _Videos] = {}
        self._data = _Tables(out, "data", _DATA_MB)
        self._episodes = _Tables(out, EPISODES_FOLDER, _DATA_MB)
        self._files = (self._data, self._episodes)
        self._tasks: dict[str, int] = {}
        self._splits: dict[str, tuple[int, int]] = {}
        self._stats: dict[str, _Stats] = {}
        self._rows: list[dict[str, Any]] = []  # of `meta/episodes`
        self._episode_count = self._frame_count = 0

    def abandon(self) -> None:
        for files in self._files:
            files.abandon()

    def add(self, example: Features, split: str, position: int) -> None:
        count = len(example.get(self._count_key, ()))
        if not count:
            raise SourceError(f"it has no steps: {self._count_key!r} is empty or missing")
        rate = self._rate_of(example)
        features = self._features or tuple(_plan(example, count))
        columns = {feature.name: _column(example, feature, count) for feature in features}
        tasks = _tasks(example, count)
        if not self._features:
            self._features, self._rate, self._robot = features, rate, first_text(example, _ROBOT)
            self._videos = {
                f.name: _Videos(self._out, f, rate) for f in features if f.dtype == "video"
            }
            self._files = (*self._files, *self._videos.values())
        elif rate != self._rate:
            raise SourceError(
                f"it has {float(rate):g} frames per second, not {float(self._rate):g}"
            )
        number, first, steps = self._episode_count, self._frame_count, np.arange(count)
        start_of_split, stop = self._splits.get(split, (number, number))
        if stop != number:
            raise OptionError(
                f"the episodes of split {split!r:.60} do not follow each other",
                remedy="Export the splits one by one, or records in the order of their files.",
            )
        row = {"episode_index": number, "tasks": [*dict.fromkeys(tasks)], "length": count}
        row |= _indexes("data", self._data.place())
        row |= {"dataset_from_index": first, "dataset_to_index": first + count}
        for name, video in self._videos.items():
            place, start, columns[name] = video.add(columns[name])
            row |= _indexes(f"videos/{name}", place)
            row[f"videos/{name}/from_timestamp"] = float(start / rate)
            row[f"videos/{name}/to_timestamp"] = float((start + count) / rate)
        numbers = [self._tasks.setdefault(task, len(self._tasks)) for task in tasks]
        positions = (
            (steps / float(rate)).astype(np.float32),
            steps,
            np.full(count, number),
            first + steps,
            np.array(numbers),
        )
        columns |= dict(zip(POSITIONS, positions, strict=True))
        stats = {name: _stats(c) for name, c in columns.items() if isinstance(c, np.ndarray)}
        for name, added in stats.items():
            self._stats[name] = _merged(self._stats[name], added) if name in self._stats else added
        for name, of_episode in stats.items():
            row |= {f"stats/{name}/{stat}": value.tolist() for stat, value in of_episode.items()}
        names = [name for name in columns if name not in self._videos]
        table = {name: _arrow(columns[name]) for name in names}
        self._data.write(import_pyarrow().table(table))
        self._rows.append(row)
        if len(self._rows) == _EPISODES_AT_ONCE:
            self._write_rows()
        self._episode_count += 1
        self._frame_count += count
        self._splits[split] = start_of_split, number + 1
        self._out.count_dropped(example, frozenset(_IMPLIED | {f.key for f in features}))

    def finish(self) -> None:
        from pyarrow import parquet

        self._write_rows()
        for files in self._files:
            files.close()
        tasks = {"task_index": [*self._tasks.values()], "task": [*self._tasks]}
        metadata = {"pandas": json.dumps(_PANDAS)}
        buffer = io.BytesIO()
        parquet.write_table(import_pyarrow().table(tasks).replace_schema_metadata(metadata), buffer)
        self._out.write(TASKS_NAME, buffer.getvalue())
        stats = {
            name: {stat: value.tolist() for stat, value in known.items()}
            for name, known in self._stats.items()
        }
        self._out.write("meta/stats.json", _json(stats))
        self._out.write(LEROBOT_INFO_NAME, _json(self._info()))

    def _rate_of(self, example: Features) -> Fraction:
        stored = all_floats(example, _FPS)
        fps = self.fps if self.fps is not None else stored[0] if len(stored) else None
        if fps is None:
            raise OptionError(
                f"the records have no {_FPS!r}, the frames per second",
                option="fps",
                remedy=f"Pass {option('fps', 10)}, with the number of your robot.",
            )
        if not 0.001 < fps < 1e6:
            raise SourceError(f"it has {fps} frames per second")
        return Fraction(float(fps)).limit_denominator(1001)

    def _write_rows(self) -> None:
        if self._rows:
            place = _indexes(EPISODES_FOLDER, self._episodes.place())
            rows = [row | place for row in self._rows]
            self._episodes.write(import_pyarrow().Table.from_pylist(rows))
            self._rows = []

    def _info(self) -> dict[str, Any]:
        fps = int(self._rate) if self._rate.denominator == 1 else float(self._rate)
        codec = {"video.codec": "av1", "video.pix_fmt": "yuv420p", "video.fps": fps}
        of_video = {
            "names": ["height", "width", "channels"],
            "info": {**codec, "video.is_depth_map": False, "has_audio": False},
        }
        positions = [
            _Feature("", name, "float32" if name == "timestamp" else "int64", (1,))
            for name in POSITIONS
        ]
        return {
            "codebase_version": VERSION,
            "robot_type": self._robot,
            "total_episodes": self._episode_count,
            "total_frames": self._frame_count,
            "total_tasks": len(self._tasks),
            "chunks_size": _FILES_IN_CHUNK,
            "data_files_size_in_mb": _DATA_MB,
            "video_files_size_in_mb": _VIDEO_MB,
            "fps": fps,
            "splits": {name: f"{start}:{stop}" for name, (start, stop) in self._splits.items()},
            "data_path": f"data/{_PATH}.parquet",
            "video_path": f"videos/{{video_key}}/{_PATH}.mp4" if self._videos else None,
            "features": {
                f.name: {"dtype": f.dtype, "shape": f.shape, "names": None}
                | (of_video if f.dtype == "video" else {})
                for f in (*self._features, *positions)
            },
        }


# -- features --------------------------------------------------------------------------------------


def _plan(example: Features, count: int) -> Iterator[_Feature]:
    """Yield the features of the steps of the first episode."""
    names = set(POSITIONS)
    for key, value in example.items():
        if not key.startswith(_STEPS) or key in _IMPLIED or "/ragged_" in key or not len(value):
            continue
        dtype, shape = "string", (1,)  # type: tuple[str, tuple[int, ...]]
        if isinstance(value, np.ndarray):
            dtype, shape = value.dtype.name, (max(1, len(value) // count),)
        elif (header := find_image_header(value[0])) is not None:
            dtype, shape = "video", (header.height, header.width, 3)
        parts = key.removeprefix(_STEPS).split("/")
        is_plain = parts[0] != "observation" or parts[1:2] in (["image"], ["images"])
        if dtype == "video" and not is_plain:
            parts.insert(1, "images")
        name = ".".join(parts)
        if name in names:
            raise OptionError(
                f"two features would have the name {name!r:.60} in LeRobot",
                remedy="Rename one of them with `recordsmith edit --rename`.",
            )
        names.add(name)
        yield _Feature(key, name, dtype, shape)


def _column(example: Features, feature: _Feature, count: int) -> Any:
    """The values of a feature, checked: images as bytes, texts, or numbers."""
    key, shape = feature.key, feature.shape
    value: Any = example.get(key, ())
    is_number = feature.dtype not in ("video", "string")
    per_step = shape[0] if is_number else 1
    if len(value) != per_step * count:
        raise SourceError(
            f"{key!r} has {len(value):,} values, expected {per_step:,} in each of {count:,} steps"
        )
    if (value.dtype.name if isinstance(value, np.ndarray) else "bytes") != (
        feature.dtype if is_number else "bytes"
    ):
        raise SourceError(f"{key!r} has not the type {feature.dtype} of the first episode")
    if is_number:
        for place in np.flatnonzero(~np.isfinite(value))[:1].tolist():
            raise SourceError(f"{key!r} is {value[place]} in step {place // per_step:,}")
        return value.reshape(count, per_step) if per_step > 1 else value
    if feature.dtype == "string":
        try:
            return [item.decode() for item in value]
        except UnicodeDecodeError:
            raise SourceError(f"{key!r} is neither an image nor text in UTF-8") from None
    for step, data in enumerate(value):
        header = find_image_header(data)
        size = None if header is None else (header.height, header.width, 3)
        if header is None or size != shape or header.variant == "16-bit":
            found = "of another format" if header is None else f"{header.width} x {header.height}"
            raise SourceError(
                f"the image {key!r} of step {step:,} is {found}, expected {shape[1]} x {shape[0]} "
                "pixels of 8 bits"
            )
    return value


def _tasks(example: Features, count: int) -> list[str]:
    texts = next(filter(None, (all_texts(example, key) for key in _TASKS)), [""])
    if len(texts) not in (1, count):
        raise SourceError(f"it has {len(texts):,} tasks, expected {count:,}")
    texts = [text.encode("utf-8", "replace").decode() for text in texts]  # no surrogates
    return texts * count if len(texts) == 1 else texts


def _arrow(column: Any) -> Any:
    pa = import_pyarrow()
    if np.ndim(column) < 2:
        return pa.array(column)
    return pa.FixedSizeListArray.from_arrays(pa.array(column.reshape(-1)), column.shape[1])


# -- statistics ------------------------------------------------------------------------------------


def _stats(column: npt.NDArray[Any]) -> _Stats:
    """Statistics of an episode: (steps,), (steps, values), or of images (steps, pixels, 3)."""
    values = column.reshape(-1, 1 if column.ndim == 1 else column.shape[-1]).astype(np.float64)
    quantiles = np.quantile(values, [*_QUANTILES.values()], axis=0)
    stats = {name: getattr(values, name)(axis=0) for name in ("min", "max", "mean", "std")}
    stats |= dict(zip(_QUANTILES, quantiles, strict=True))
    if column.ndim == 3:
        stats = {name: value.reshape(3, 1, 1) for name, value in stats.items()}
    return stats | {"count": np.array([len(column)])}


def _merged(a: _Stats, b: _Stats) -> _Stats:
    """Statistics of both; quantiles are averaged, as in LeRobot."""
    count = a["count"] + b["count"]
    share = float(b["count"][0] / count[0])
    merged = {name: a[name] + share * (b[name] - a[name]) for name in ("mean", *_QUANTILES)}
    variance = (1 - share) * a["std"] ** 2 + share * b["std"] ** 2
    variance += share * (1 - share) * (b["mean"] - a["mean"]) ** 2
    low, high = np.minimum(a["min"], b["min"]), np.maximum(a["max"], b["max"])
    return {"min": low, "max": high, "std": np.sqrt(variance), "count": count, **merged}


# -- files -----------------------------------------------------------------------------------------


def _indexes(prefix: str, place: tuple[int, int]) -> dict[str, int]:
    return {f"{prefix}/chunk_index": place[0], f"{prefix}/file_index": place[1]}


class _Numbered:
    """Files of about the same size."""

    suffix: str
    _writer: Any = None

    def __init__(self, out: ExportWriter, folder: str, size_mb: int) -> None:
        self._out, self._folder, self._max_bytes = out, folder, size_mb << 20
        self._number = self.size_bytes = 0

    @property
    def name(self) -> str:
        chunk, file = divmod(self._number, _FILES_IN_CHUNK)
        return f"{self._folder}/{_PATH.format(chunk_index=chunk, file_index=file)}{self.suffix}"

    def place(self) -> tuple[int, int]:
        """The chunk and the file for what is written next."""
        if self._writer is not None and self.size_bytes >= self._max_bytes:
            self.close()
            self._number, self.size_bytes = self._number + 1, 0
        return divmod(self._number, _FILES_IN_CHUNK)

    def close(self) -> None:
        """Write the end of the file."""


class _Tables(_Numbered):
    suffix = ".parquet"

    def write(self, table: Any) -> None:
        from pyarrow import parquet

        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._out.open(self.name), table.schema)
        self._writer.write_table(table)
        self.size_bytes += table.nbytes

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._out.close(self.name)
            self._writer = None

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.is_open = False  # its destructor would write to a closed file


class _Videos(_Numbered):
    """The MP4 files of a camera, written to a temporary file first, as MP4 needs to seek."""

    suffix = ".mp4"

    def __init__(self, out: ExportWriter, feature: _Feature, rate: Fraction) -> None:
        super().__init__(out, f"videos/{feature.name}", _VIDEO_MB)
        self._feature, self._rate = feature, rate

    def add(self, images: list[bytes]) -> tuple[tuple[int, int], int, npt.NDArray[Any]]:
        """Encode the images of an episode.

        Returns:
            Their place, the number of the first frame in the file, and some of their pixels:
            float64, (images, pixels, 3), 0 to 1.
        """
        from recordsmith.support.libraries import av

        place = self.place()
        if self._writer is None:
            self._open()
        first, sampled = self._frame_count, []
        stride = -(-max(self._feature.shape) // _SAMPLED_SIDE)
        for step, data in enumerate(images):
            try:
                pixels = decode_image(data)
            except DataError as error:
                where = f"the image {self._feature.key!r} of step {step:,}"
                raise SourceError(f"{where}: {error.detail}") from None
            if step % -(-len(images) // _SAMPLED_FRAMES) == 0:
                sampled.append(pixels[::stride, ::stride].reshape(-1, 3))
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = self._frame_count, 1 / self._rate
            try:
                self._encode(frame)
            except av.FFmpegError as error:
                height, width, _ = self._feature.shape
                raise SourceError(
                    f"the encoder refuses {self._feature.key!r}, {width} x {height} pixels at "
                    f"{float(self._rate):g} frames per second: {error.strerror}"
                ) from None
            self._frame_count += 1
        return place, first, np.stack(sampled) / 255.0

    def close(self) -> None:
        if self._writer is not None:
            self._encode(None)
            self._writer.close()
            self._file.seek(0)
            shutil.copyfileobj(self._file, self._out.open(self.name), 1 << 20)
            self._out.close(self.name)
            self._file.close()
            self._writer = None

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self) -> None:
        from recordsmith.support.libraries import av

        os.environ.setdefault("SVT_LOG", "0")  # otherwise the encoder prints its settings
        self._file, self._frame_count = self._out.temporary_file(), 0
        self._writer = av.open(self._file, "w", format="mp4")
        self._stream = self._writer.add_stream(_CODEC, rate=self._rate, options=_CODEC_OPTIONS)
        self._stream.height, self._stream.width, _ = self._feature.shape
        self._stream.pix_fmt = "yuv420p"

    def _encode(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            self.size_bytes += packet.size
            self._writer.mux(packet)


_PANDAS = {
    "index_columns": ["task"],
    "column_indexes": [],
    "columns": [
        {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": dtype}
        for name, kind, dtype in (("task_index", "int64", "int64"), ("task", "unicode", "object"))
    ],
}
"""Makes the tasks the index when pandas reads their table, as LeRobot does."""


def _json(document: Any) -> bytes:
    return json.dumps(document, indent=4, ensure_ascii=False).encode() + b"\n"
