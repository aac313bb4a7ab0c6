"""A LeRobot dataset (format v3.0) as a source: each episode becomes a record with keys of RLDS."""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from recordsmith.dataset import import_pyarrow
from recordsmith.sources.archives.memory_limit import MIN_LIMIT_BYTES, MemoryLimit
from recordsmith.sources.archives.video import read_frames
from recordsmith.sources.files.account import Role
from recordsmith.sources.files.file_tree import TreeSource
from recordsmith.sources.files.files_reader import FilesReader, versions_of
from recordsmith.sources.files.known_names import LEROBOT_INFO_NAME
from recordsmith.sources.files.paths import check_folder, common_version, object_version
from recordsmith.sources.numbered import RowNames, SampleTable
from recordsmith.sources.problems import join_names, reference_of
from recordsmith.sources.samples import Note, Sample, ignore_note
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import only_split
from recordsmith.sources.tables.arrow_memory import (
    decoded_bytes,
    memory_of_groups,
    rows_that_fit,
)
from recordsmith.sources.tables.arrow_rows import ArrowFile, arrow_reason
from recordsmith.stores import Location, ObjectReader, PlaceLike, as_folder, read_document
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    MissingFileError,
    OptionError,
    RecordsmithError,
    SourceError,
    located,
)

TASKS_NAME = "meta/tasks.parquet"
EPISODES_FOLDER = "meta/episodes"
VERSION = "v3.0"
POSITIONS = ("timestamp", "frame_index", "episode_index", "index", "task_index")
"""The columns of all datasets, which say where a step is."""

_COMPUTED = ("is_first", "is_last", "language_instruction")
"""Features of steps that records have anyway; those of the dataset have other keys."""
_FIELD = re.compile(r"\{(video_key|chunk_index|file_index)(?::0?(\d)d)?\}")
_TYPES = r"^(video|image|string|bool|u?int(8|16|32|64)|float(16|32|64))$"
MAX_STEPS = 1 << 31  # of an episode
MAX_VALUES = 1 << 24  # of a step
MAX_TASKS = 1 << 20
MAX_SPLITS = 1 << 10
_GROUPS_KEPT = 4
_QUALITY = 95


class LeRobot(TreeSource):
    """A dataset that LeRobot wrote, in its format v3.0. Videos need the extra `video`.

    Each episode becomes a record that `Episodes` reads. A feature such as `observation.state` is
    stored as `steps/observation/state`, with the values of all steps in a list. The task is
    `steps/language_instruction`; a feature of this name becomes
    `steps/lerobot/language_instruction`. Frames of videos are stored as JPEG, images in Parquet as
    they are.

    Several splits are kept; a single one is not, so that its episodes can be split again.

    Example:
        rs.pack(rs.LeRobot("pusht"), "packed")
    """

    def __init__(self, root: PlaceLike, *, frame_quality: int = _QUALITY) -> None:
        """
        Args:
            root: the folder with `meta/info.json`.
            frame_quality: JPEG quality of the frames of videos, 1 to 100.
        """
        self.root = as_folder(root)
        if type(frame_quality) is not int or not 1 <= frame_quality <= 100:
            raise OptionError(
                option="frame_quality", value=frame_quality, expected="an integer from 1 to 100"
            )
        self._quality = frame_quality

    def list_samples(self) -> Listing:
        """Find all episodes.

        Raises:
            SourceError: the format is another version, or there are no episodes.
            OptionError: the folder is not one of LeRobot.
            CorruptDataError: a document or a file is damaged, missing, or they differ.
            MissingExtraError: pyarrow is not installed, or PyAV for videos.
            FileAccessError: a file cannot be read.
        """
        check_folder(self.root, "a folder that LeRobot wrote")
        info = _read_info(self.root)
        if any(feature.dtype == "video" for feature in info.features.values()):
            from recordsmith.support.libraries import av  # noqa: F401 - a missing one is reported first
        listing = _Episodes(self.root, info).listing(self._quality)
        files = (self.root / name for name, _ in listing.reader.files)  # type: ignore[attr-defined]
        account = self._files_account(Role.RECORDS, files, ("meta/*", "data/*", "videos/*"))
        return listing.with_account(account)

    def describe(self) -> Mapping[str, Any]:
        quality = {} if self._quality == _QUALITY else {"frame_quality": self._quality}
        return {**super().describe(), **quality}


class _Feature(msgspec.Struct, frozen=True):
    """A feature of steps: `video`, `image`, `string` or a type of NumPy; and its shape."""

    dtype: Annotated[str, msgspec.Meta(pattern=_TYPES)]
    shape: tuple[Annotated[int, msgspec.Meta(ge=0, le=MAX_VALUES)], ...]

    @property
    def count(self) -> int:
        return math.prod(self.shape)


_Total: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_Range: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^\d{1,12}:\d{1,12}$")]


class _Info(msgspec.Struct):
    """The content of `meta/info.json`."""

    codebase_version: str
    fps: Annotated[float, msgspec.Meta(gt=0, lt=1e6)]
    total_episodes: _Total
    data_path: str
    features: dict[str, _Feature]
    total_frames: _Total | None = None
    total_tasks: _Total | None = None
    video_path: str | None = None
    robot_type: str | None = None
    splits: Annotated[dict[str, _Range], msgspec.Meta(max_length=MAX_SPLITS)] = {}


def _read_info(root: Location) -> _Info:
    location = root / LEROBOT_INFO_NAME
    try:
        info = msgspec.json.decode(read_document(location), type=_Info)
    except MissingFileError:
        raise OptionError(
            f"{root} has no {LEROBOT_INFO_NAME}",
            option="root",
            value=str(root),
            expected="a folder that LeRobot wrote",
        ) from None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise _broken(location, f"it is invalid: {error}") from None
    if info.codebase_version != VERSION:
        raise SourceError(
            f"the format is LeRobot {info.codebase_version!r:.20}, expected {VERSION!r}",
            path=location,
            remedy="Convert the dataset with the scripts of the package lerobot.",
        )
    info.features = {name: f for name, f in info.features.items() if name not in POSITIONS}
    keys: dict[str, str] = {}
    for name, feature in info.features.items():
        if (other := keys.setdefault(_key(name), name)) != name:
            raise _broken(location, f"features {other!r:.60} and {name!r:.60} have the same key")
        if feature.count > MAX_VALUES:
            raise _broken(location, f"feature {name!r:.60} has an impossible shape")
    return info


def _key(name: str) -> str:
    prefix = "steps/lerobot" if name in _COMPUTED else "steps"
    return f"{prefix}/{name.replace('.', '/')}"


def _file_name(template: str, chunk: int, file: int, root: Location, video: str) -> str:
    """The path of a file, from a template whose fields are filled in as text."""
    values = {"chunk_index": chunk, "file_index": file, "video_key": video}
    if set("{}") & set(_FIELD.sub("", template)):
        problem = f"the path {template!r:.80} has fields other than chunk_index and file_index"
        raise _broken(root / LEROBOT_INFO_NAME, problem)
    name = _FIELD.sub(lambda match: str(values[match[1]]).zfill(int(match[2] or 0)), template)
    try:
        root / name  # raises
    except OptionError:
        problem = f"the path {name!r:.80} leads out of the folder"
        raise _broken(root / LEROBOT_INFO_NAME, problem) from None
    return name


def _broken(location: Location, problem: str, found: str = "", expected: str = "") -> DataError:
    return CorruptDataError(
        Defect.BROKEN_MANIFEST,
        problem,
        found=found,
        expected=expected,
        remedy="Fetch the dataset again.",
        path=location,
    )


class _Episodes:
    """The columns of `meta/episodes`."""

    def __init__(self, root: Location, info: _Info) -> None:
        self._root, self._info = root, info
        self._folder = root / EPISODES_FOLDER
        self._documents = sorted((self._folder / "*/*.parquet").glob(), key=str)
        if not self._documents:
            raise _broken(self._folder, "there are no files chunk-*/file-*.parquet")
        self._videos = [name for name, f in info.features.items() if f.dtype == "video"]
        names = ["episode_index", "length", "dataset_from_index", "dataset_to_index"]
        for prefix in ("data", *(f"videos/{video}" for video in self._videos)):
            names += [f"{prefix}/chunk_index", f"{prefix}/file_index"]
        names += [f"videos/{video}/from_timestamp" for video in self._videos]
        tables, memory, left = [], MemoryLimit(), info.total_episodes
        for location in self._documents:
            tables.append(_read_table(location, memory, left, names))
            left -= len(tables[-1])
        with _reading(self._folder, "the table of all files"):  # of other types
            self._table = import_pyarrow().concat_tables(tables)

    def listing(self, quality: int) -> Listing:
        info, root = self._info, self._root
        numbers, lengths = self._column("episode_index"), self._column("length", MAX_STEPS)
        if not len(numbers):
            raise SourceError("the dataset has no episodes", path=root)
        if len(numbers) != info.total_episodes:
            expected = f"{info.total_episodes:,}, as in {LEROBOT_INFO_NAME}"
            wrong = "the number of episodes is wrong"
            raise _broken(self._folder, wrong, f"{len(numbers):,}", expected)
        first, stop = self._column("dataset_from_index"), self._column("dataset_to_index")
        self._check("length", (lengths > 0) & (stop - first == lengths), lengths)
        if info.total_frames not in (None, steps := int(lengths.sum())):
            expected = f"{info.total_frames:,}, as in {LEROBOT_INFO_NAME}"
            raise _broken(self._folder, "the number of steps is wrong", f"{steps:,}", expected)
        of_data, data_names = self._files_of("data", info.data_path)
        starts = np.full(len(data_names), np.iinfo(np.int64).max)
        np.minimum.at(starts, of_data, first)
        rows = first - starts[of_data]
        videos = {}
        for video in self._videos:
            of_video, names = self._files_of(f"videos/{video}", info.video_path or "", video)
            videos[video] = (of_video, names, self._column(f"videos/{video}/from_timestamp"))
        used = dict.fromkeys([*data_names, *(n for _, names, _ in videos.values() for n in names)])
        try:
            files = versions_of(root, list(used))
        except MissingFileError as error:
            raise CorruptDataError(
                Defect.MISSING_SHARD,
                f"{EPISODES_FOLDER} lists a file that is missing",
                remedy="Fetch it again.",
                path=error.path,
            ) from None
        tasks = root / TASKS_NAME
        documents = map(object_version, (root / LEROBOT_INFO_NAME, tasks, *self._documents))

        def reference(number: int) -> Mapping[str, Any]:
            return {
                "file": data_names[of_data[number]],
                "row": int(rows[number]),
                "steps": int(lengths[number]),
                "episode": int(numbers[number]),
                "videos": {
                    video: [names[of_video[number]], float(times[number])]
                    for video, (of_video, names, times) in videos.items()
                },
            }

        splits = self._splits(numbers)
        has_splits = len(splits[0]) > 1
        samples = SampleTable(
            RowNames({"episodes": len(numbers)}),
            lengths * min(MAX_STEPS, sum(map(_step_bytes, info.features.values()), 1)),
            splits=splits if has_splits else None,
            version=common_version([*documents, *(version for _, version in files)]),
            references=reference,
        )
        document = msgspec.json.encode(info).decode()
        return Listing(
            samples,
            LeRobotReader(root, files, document, _read_tasks(tasks, info.total_tasks), quality),
            splits=tuple(splits[0]) if has_splits else (),
            only_split=None if has_splits else only_split(splits[0], None),
        )

    def _column(self, name: str, below: int = 1 << 48) -> Any:
        """A column of times, float64, or of counts below a limit, int64; checked."""
        dtype = "float64" if name.endswith("timestamp") else "int64"
        with _reading(self._folder, f"column {name!r:.80}"):
            column = self._table[name].cast(dtype)
        if column.null_count:
            raise _broken(self._folder, f"column {name!r:.80} has empty cells")
        values = column.to_numpy()
        self._check(name, (values >= 0) & (values < below), values)
        return values

    def _check(self, name: str, valid: Any, values: Any) -> None:
        """Raise CorruptDataError for the first row that is not valid."""
        for row in np.flatnonzero(~valid)[:1].tolist():
            problem = f"{name!r:.80} of the episode in row {row:,} is impossible"
            raise _broken(self._folder, problem, str(values[row]))

    def _files_of(self, prefix: str, path: str, video: str = "") -> tuple[Int64Array, list[str]]:
        """Which file each episode is in, and the names of the files."""
        pairs = [self._column(f"{prefix}/{part}_index") for part in ("chunk", "file")]
        files, of_row = np.unique(np.stack(pairs, axis=1), axis=0, return_inverse=True)
        names = [_file_name(path, chunk, file, self._root, video) for chunk, file in files.tolist()]
        return of_row.reshape(-1), names

    def _splits(self, numbers: Int64Array) -> tuple[list[str], Any]:
        """The splits, and which each episode has: the first, if it is in none."""
        splits = self._info.splits or {"train": "0:0"}
        of_row = np.zeros(len(numbers), np.int32)
        for number, bounds in enumerate(splits.values()):
            start, stop = map(int, bounds.split(":"))
            of_row[(numbers >= start) & (numbers < stop)] = number
        used, of_used = np.unique(of_row, return_inverse=True)
        return [list(splits)[number] for number in used], of_used.astype(np.int32)


def _step_bytes(feature: _Feature) -> int:
    """About how many bytes of a record a step takes."""
    return feature.count // 8 if feature.dtype in ("video", "image") else 4 * feature.count


def _read_table(
    location: Location, memory: MemoryLimit, most_rows: int, names: Sequence[str] = ()
) -> Any:
    """Read the columns of a Parquet file of `meta`; all without names."""
    with _reading(location), located(location), location.open_read() as opened:
        file = _open_parquet(opened)
        row_count = file.metadata.num_rows
        if row_count > most_rows:
            expected = f"at most {most_rows:,}, as in {LEROBOT_INFO_NAME}"
            raise _broken(location, "it has too many rows", f"{row_count:,}", expected)
        if missing := [name for name in names if name not in file.schema_arrow.names]:
            raise _broken(location, f"the columns {join_names(missing)} are missing")
        memory.add_file(opened.size_bytes)
        return _read_groups(
            file, range(file.num_row_groups), list(names) or None, memory, "the table"
        )


def _open_parquet(file: ObjectReader) -> Any:
    from pyarrow import parquet

    return parquet.ParquetFile(ArrowFile(file))


def _read_groups(
    file: Any, groups: Sequence[int], names: Sequence[str] | None, memory: MemoryLimit, content: str
) -> Any:
    """Read columns of row groups as a pyarrow.Table, if they fit in memory.

    Numbers are counted before they are read, texts and images in batches.
    """
    memory.take(memory_of_groups(file, groups), content)
    row_count = rows_that_fit(file, groups, MIN_LIMIT_BYTES)
    batches = []
    for batch in file.iter_batches(row_count, row_groups=list(groups), columns=names):
        memory.take(_text_bytes(batch), content)
        batches.append(batch)
    pa = import_pyarrow()
    table = pa.Table.from_batches(batches) if batches else file.schema_arrow.empty_table()
    return table if names is None else table.select(names)


def _text_bytes(batch: Any) -> int:
    """How many bytes the columns of a batch take that are not numbers."""
    is_number = import_pyarrow().types.is_primitive
    return sum(decoded_bytes(column) for column in batch.columns if not is_number(column.type))


def _read_tasks(location: Location, total: int | None) -> tuple[str, ...]:
    """The text of each task, by its number; the column of texts is the index of pandas."""
    most = MAX_TASKS if total is None else min(total, MAX_TASKS)
    table = _read_table(location, MemoryLimit(), most)
    with _reading(location):
        (name,) = (name for name in table.column_names if name != "task_index")
        texts = table[name].cast("string").to_pylist()
        numbers = table["task_index"].cast("int64").to_pylist()
    by_number = dict(zip(numbers, texts, strict=True))
    if by_number.keys() != set(range(len(numbers))) or None in texts:
        raise _broken(location, "the tasks are not numbered from 0 without gaps")
    return tuple(by_number[number] for number in range(len(numbers)))


@contextmanager
def _reading(location: Location, what: str = "it") -> Iterator[None]:
    """Translate the errors of pyarrow, and of columns of other types."""
    pa = import_pyarrow()
    try:
        yield
    except RecordsmithError:
        raise
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError) as error:
        raise _broken(location, f"{what} cannot be read: {arrow_reason(error)}") from None


class _DataFile(NamedTuple):
    """An open Parquet file, and the first row of each of its row groups, with the end of all."""

    location: Location
    file: Any
    starts: list[int]
    size_bytes: int


@dataclass(frozen=True)
class LeRobotReader(FilesReader[_DataFile]):
    """Reads episodes.

    info: `_Info` as JSON.
    tasks: the texts by number.
    quality: of frames.
    """

    info: str
    tasks: tuple[str, ...]
    quality: int

    _groups: OrderedDict[Any, Any] = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )
    """Those that were read last."""

    @cached_property
    def _info(self) -> _Info:
        return msgspec.json.decode(self.info, type=_Info)

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        reference = reference_of(sample)
        data, _ = self.opened(sample)
        count, where, info = reference["steps"], f"episode {reference['episode']}", self._info
        memory = MemoryLimit()
        memory.add_file(data.size_bytes)
        with located(data.location), _reading(data.location, where):
            rows = self._rows(data, reference, where, memory)
            times = _values(rows, "timestamp", _SCALAR, where).astype(np.float64)
            if not np.isfinite(times).all():
                raise _wrong(f"{where}: a timestamp is not finite", "timestamp")
            tasks = _values(rows, "task_index", _SCALAR, where).tolist()
            if not set(tasks) <= set(range(len(self.tasks))):
                raise _wrong(f"{where}: a task is not in {TASKS_NAME}", "task_index")
            memory.take(sum(len(self.tasks[task]) for task in tasks), f"{where}: the tasks")
            record: dict[str, Any] = {
                "steps/is_first": (np.arange(count) == 0).astype(np.int64),
                "steps/is_last": (np.arange(count) == count - 1).astype(np.int64),
                "steps/timestamp": times.astype(np.float32),
                "steps/language_instruction": [self.tasks[task] for task in tasks],
                "episode_metadata/episode_index": reference["episode"],
                "episode_metadata/fps": np.float32(info.fps),
            }
            if info.robot_type:
                record["episode_metadata/robot_type"] = info.robot_type
            for name, feature in info.features.items():
                if feature.dtype != "video":
                    record[_key(name)] = _values(rows, name, feature, where, note)
        for video, (name, start) in reference["videos"].items():
            location = self.checked(name)
            with located(location):
                record[_key(video)] = read_frames(
                    location, start + times, info.fps, self.quality, where, video, memory
                )
        return record

    def _open(self, name: str) -> Mapping[str, _DataFile]:
        location = self.checked(name)
        with _reading(location):
            opened = location.open_read()
            file = _open_parquet(opened)
            groups = map(file.metadata.row_group, range(file.num_row_groups))
            starts = [*accumulate((group.num_rows for group in groups), initial=0)]
        return {name: _DataFile(location, file, starts, opened.size_bytes)}

    def _rows(
        self, data: _DataFile, reference: Mapping[str, Any], where: str, memory: MemoryLimit
    ) -> Any:
        first, count, starts = reference["row"], reference["steps"], data.starts
        if first + count > starts[-1]:
            found, expected = f"{starts[-1]:,} rows", f"at least {first + count:,}"
            raise _wrong(f"{where} ends after its file", None, found, expected)
        begin = int(np.searchsorted(starts, first, "right")) - 1
        end = int(np.searchsorted(starts, first + count))
        tables = [self._group(data, group, memory, where) for group in range(begin, end)]
        rows = import_pyarrow().concat_tables(tables).slice(first - starts[begin], count)
        of_rows = {"episode_index": np.full(count, reference["episode"])}
        for name, numbers in (of_rows | {"frame_index": np.arange(count)}).items():
            values = _values(rows, name, _SCALAR, where)
            for row in np.flatnonzero(values != numbers)[:1].tolist():
                problem = f"row {first + row:,} is not step {row:,} of {where}"
                expected = f"{numbers[row]}, as in {EPISODES_FOLDER}"
                raise _wrong(problem, name, str(values[row]), expected)
        return rows

    def _group(self, data: _DataFile, group: int, memory: MemoryLimit, where: str) -> Any:
        """Read a row group. The last ones are kept, as several episodes may share one."""
        known = self._groups
        key = (data.location.key, group)
        with self._lock:
            if key in known:
                batches = known[key].to_batches()
                memory.take(sum(map(decoded_bytes, chain(*(b.columns for b in batches)))), where)
            else:
                features = {n for n, f in self._info.features.items() if f.dtype != "video"}
                columns = [n for n in data.file.schema_arrow.names if n in {*features, *POSITIONS}]
                known[key] = _read_groups(data.file, [group], columns, memory, where)
            known.move_to_end(key)
            if len(known) > _GROUPS_KEPT:
                known.popitem(last=False)
            return next(reversed(known.values()))


_SCALAR = _Feature("float32", ())


def _values(
    rows: Any,
    name: str,
    feature: _Feature,
    where: str,
    note: Note = ignore_note,
) -> Any:
    """The values of a column, flat: texts, images, int64 or float32."""
    pa = import_pyarrow()
    column = rows[name].combine_chunks()
    column = getattr(column, "storage", column)  # of extension types of `datasets`
    count = len(rows)
    is_struct = pa.types.is_struct
    if feature.dtype == "image":
        if not is_struct(column.type):
            raise TypeError(f"{name!r:.80} has the type {column.type!s:.80}, expected a struct")
        column = column.field("bytes")
    elif feature.dtype != "string":
        count *= feature.count
        while pa.types.is_nested(column.type) and not is_struct(column.type):
            column = column.flatten()
    if len(column) != count or column.null_count:
        problem = f"{where}: {name!r:.80} has not the shape {feature.shape} in each step"
        raise _wrong(problem, name, f"{len(column) - column.null_count:,} values", f"{count:,}")
    if feature.dtype == "image":
        return column.cast("binary").to_pylist()
    if feature.dtype == "string":
        return column.cast("string").to_pylist()
    if not pa.types.is_floating(column.type):
        return column.cast("int64").to_numpy()
    values = column.to_numpy()
    with np.errstate(over="ignore"):
        kept = values.astype(np.float32)
    if not np.isfinite(kept).all():
        note("features have numbers that are not finite", f"{where}, {name}")
    if (kept != values)[np.isfinite(values)].any():
        note("features of float64 were rounded to float32", f"{where}, {name}")
    return kept


def _wrong(problem: str, name: str | None, found: str = "", expected: str = "") -> DataError:
    return CorruptDataError(
        Defect.FEATURE_SHAPE, problem, found=found, expected=expected, feature=name
    )
