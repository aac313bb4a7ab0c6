"""Datasets of LeRobot: which steps become which values, and folders that are damaged."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.sources import Source, archives
from recordsmith.sources.archives import memory_limit
from recordsmith.support import libraries
from recordsmith.support.errors import (
    CorruptDataError,
    Defect,
    MissingExtraError,
    OptionError,
    SourceError,
)

from ..raising import raises
from . import lerobot_folder as drawn
from .source_contract import SourceContract

pytest.importorskip("av")
FRONT = "steps/observation/images/front"
INFO, EPISODES = "meta/info.json", "meta/episodes"
DATA = "data/chunk-000/file-000.parquet"
VIDEO = "videos/observation.images.front/chunk-000/file-000.mp4"


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:  # noqa: ARG002
        return rs.LeRobot(drawn.write(folder))


class TestContractOfImages(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:  # noqa: ARG002
        return rs.LeRobot(drawn.write(folder, "image"))


def greys(frames: list[bytes]) -> list[float]:
    return [float(np.asarray(Image.open(io.BytesIO(data))).mean()) for data in frames]


@pytest.mark.parametrize("kind", ["video", "image"])
@pytest.mark.parametrize(("row_group", "gop"), [(100, 2), (3, 100)])
@pytest.mark.parametrize("files", [((0, 1), (2, 3)), ((3, 1, 0, 2),), ((0,), (1,), (2,), (3,))])
def test_every_step_has_its_own_values(
    tmp_path: Path, kind: str, row_group: int, gop: int, files: Any
) -> None:
    """Episodes that share files, in any order, with row groups and keyframes anywhere."""
    root = drawn.write(tmp_path / "robot", kind, files=files, row_group=row_group, gop=gop)
    rs.pack(root, tmp_path / "out", shuffle=False)
    records = list(rs.open(tmp_path / "out"))
    order = [episode for of_file in files for episode in of_file]
    assert [int(r["episode_metadata/episode_index"][0]) for r in records] == order
    for episode, record in zip(order, records, strict=True):
        length = drawn.LENGTHS[episode]
        expected: dict[str, Any] = drawn.columns_of(episode, length)
        for name, values in expected.items():
            found = record[f"steps/{name.replace('.', '/')}"]
            assert np.array_equal(found, values.reshape(-1)), name
            assert found.dtype == (np.float32 if values.dtype == np.float32 else np.int64)
        assert record["steps/note"] == [b"%d.%d" % (episode, step) for step in range(length)]
        assert record["steps/language_instruction"] == [drawn.TASKS[episode % 2].encode()] * length
        assert record["steps/is_first"].tolist() == [1] + [0] * (length - 1)
        assert record["steps/is_last"].tolist() == [0] * (length - 1) + [1]
        assert np.array_equal(
            record["steps/timestamp"], (np.arange(length) / drawn.FPS).astype(np.float32)
        )
        assert record["episode_metadata/fps"] == [drawn.FPS]
        assert record["episode_metadata/robot_type"] == [b"arm"]
        wanted = [drawn.grey_of(episode, step) for step in range(length)]
        assert greys(record[FRONT]) == pytest.approx(wanted, abs=0 if kind == "image" else 2)


def test_features_named_as_computed_ones_are_kept_as_well(tmp_path: Path) -> None:
    root = drawn.write(tmp_path / "robot", "image", files=((0, 1, 2, 3),))
    table = pq.read_table(root / DATA)
    texts = [f"text {row}" for row in range(len(table))]
    columns = {"language_instruction": texts, "is_first": [7] * len(table), "is_last.x": texts}
    for name, values in columns.items():
        dtype = "string" if values is texts else "int64"
        _features(**{name: drawn.feature(dtype, 1)})(root)
        table = table.append_column(name, pa.array(values))
    pq.write_table(table, root / DATA)
    rs.pack(root, tmp_path / "out", shuffle=False)
    record, length = rs.open(tmp_path / "out")[1], drawn.LENGTHS[1]
    first = drawn.LENGTHS[0]
    of_episode = [text.encode() for text in texts[first : first + length]]
    assert record["steps/lerobot/language_instruction"] == of_episode
    assert record["steps/language_instruction"] == [drawn.TASKS[1].encode()] * length
    assert record["steps/lerobot/is_first"].tolist() == [7] * length
    assert record["steps/is_first"].tolist() == [1] + [0] * (length - 1)
    assert record["steps/is_last/x"] == of_episode


def test_windows_are_loaded(tmp_path: Path) -> None:
    rs.pack(drawn.write(tmp_path / "robot"), tmp_path / "out", shuffle=False)
    windows = rs.Episodes(rs.open(tmp_path / "out"), window=3)
    assert len(windows) == sum(length - 2 for length in drawn.LENGTHS)
    features = {"image": rs.Image(FRONT, (8, 8)), "action": rs.Tensor("steps/action", shape=(3, 2))}
    batch = rs.Examples(windows, features).batch([3])
    expected = [drawn.grey_of(1, step) for step in range(3)]
    assert batch["image"].mean((0, 2, 3, 4)).tolist() == pytest.approx(expected, abs=2)
    assert np.array_equal(batch["action"][0], drawn.columns_of(1, 7)["action"][:3])


def test_splits_are_kept(tmp_path: Path) -> None:
    root = drawn.write(tmp_path / "robot", "image")
    drawn.change_info(root, splits={"train": "0:3", "val": "3:4"})
    assert rs.LeRobot(root).list_samples().splits == ("train", "val")
    assert rs.pack(root, tmp_path / "out").splits == {"train": 3, "val": 1}


def test_the_quality_of_frames(tmp_path: Path) -> None:
    root = drawn.write(tmp_path / "robot")
    sizes = []
    for quality in (50, 95):
        source = rs.detect(root, frame_quality=quality).source
        listing = source.list_samples()
        sizes.append(sum(map(len, listing.reader.read(listing.samples[0])[FRONT])))
        assert ("frame_quality" in source.describe()) == (quality == 50)
    assert sizes[0] < sizes[1]
    for wrong in (0, 101, 9.5):
        with raises(OptionError, option="frame_quality", value=wrong):
            rs.LeRobot(root, frame_quality=wrong)  # type: ignore[arg-type]


def test_numbers_that_change_are_noted(tmp_path: Path) -> None:
    root = drawn.write(tmp_path / "robot", "image", files=((0, 1, 2, 3),))
    info = json.loads((root / INFO).read_text())
    info["features"]["count"]["dtype"] = "float64"
    (root / INFO).write_text(json.dumps(info))
    table = pq.read_table(root / DATA)
    values = [0.1, np.nan, *range(len(table) - 2)]
    at = table.column_names.index("count")
    pq.write_table(table.set_column(at, "count", pa.array(values, "float64")), root / DATA)
    report = rs.pack(root, tmp_path / "out", shuffle=False)
    assert {what: note.places for what, note in report.notes.items()} == {
        "features have numbers that are not finite": ["episode 0, count"],
        "features of float64 were rounded to float32": ["episode 0, count"],
    }
    assert rs.open(tmp_path / "out")[0]["steps/count"][:2].tolist() == pytest.approx(
        [np.float32(0.1), np.nan], nan_ok=True
    )


def test_without_pyav_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = drawn.write(tmp_path / "robot")
    monkeypatch.delitem(vars(libraries), "av", raising=False)
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    with raises(MissingExtraError, extra="video", package="av", match=r"recordsmith\[video\]"):
        rs.LeRobot(root).list_samples()
    images = rs.LeRobot(drawn.write(tmp_path / "images", "image"))
    assert len(images.list_samples().samples) == 4  # which need no decoder


# -- damaged and hostile folders -------------------------------------------------------------------


def _template(**values: Any) -> Callable[[Path], None]:
    return lambda root: drawn.change_info(root, **values)


def _features(**values: Any) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        features = json.loads((root / INFO).read_text())["features"]
        drawn.change_info(root, features=features | values)

    return change


def _episodes(**values: Any) -> Callable[[Path], None]:
    return lambda root: drawn.change_episodes(root, **values)


def _twice(root: Path) -> None:
    path = root / EPISODES / "chunk-000/file-000.parquet"
    table = pq.read_table(path)
    pq.write_table(table.append_column("length", table["length"]), path)


def _split_types(root: Path) -> None:
    path = root / EPISODES / "chunk-000/file-000.parquet"
    table = pq.read_table(path)
    at = table.column_names.index("length")
    other = table.set_column(at, "length", table["length"].cast("int32"))
    drawn.parquet(path.with_name("file-001.parquet"), other)
    drawn.change_info(root, total_episodes=8)


FROM = "videos__observation.images.front__from_timestamp"
LISTING: dict[str, tuple[Callable[[Path], Any], Any, str]] = {  # what is done, where, message
    "version": (_template(codebase_version="v2.1"), INFO, "'v2.1', expected 'v3.0'"),
    "no json": (lambda r: (r / INFO).write_text('{"codebase_version"'), INFO, "truncated"),
    "deep": (lambda r: (r / INFO).write_text('{"a":' * 100_000), INFO, "invalid"),
    "fps": (_template(fps=0), INFO, r"fps"),
    "fps NaN": (lambda r: drawn.change_info(r, fps=float("nan")), INFO, "invalid"),
    "type": (_features(x=drawn.feature("complex64", 1)), INFO, r"features"),
    "shape": (_features(x=drawn.feature("int64", 1 << 20, 1 << 20)), INFO, "impossible shape"),
    "negative": (_features(x=drawn.feature("int64", -1)), INFO, "invalid"),
    "same key": (_features(**{"a/b": drawn.feature("int64", 1)}), INFO, "have the same key"),
    "split": (_template(splits={"train": "0-4"}), INFO, "splits"),
    "count": (_template(total_episodes=5), EPISODES, "found 4, expected 5"),
    "above": (_template(data_path="../{chunk_index}/{file_index}"), INFO, "leads out"),
    "absolute": (_template(data_path="/etc/passwd"), INFO, "leads out"),
    "format attack": (_template(data_path="{0.__class__}"), INFO, "has fields other than"),
    "attribute": (_template(video_path="{video_key.__class__}"), INFO, "has fields other than"),
    "width": (_template(data_path="{chunk_index:999999999d}"), INFO, "has fields other than"),
    "conversion": (_template(data_path="{chunk_index!r}"), INFO, "has fields other than"),
    "no video path": (_template(video_path=None), INFO, "leads out"),
    "no data": (lambda r: (r / DATA).unlink(), DATA, "is missing"),
    "no video": (lambda r: (r / VIDEO).unlink(), VIDEO, "is missing"),
    "chunk": (
        _episodes(data__chunk_index=[0, 7, 0, 0]),
        "data/chunk-007/file-000.parquet",
        "is missing",
    ),
    "huge chunk": (_episodes(data__chunk_index=[0, 2**62, 1, 1]), EPISODES, "impossible"),
    "negative chunk": (_episodes(data__chunk_index=[0, -1, 1, 1]), EPISODES, "found -1"),
    "length": (_episodes(length=[5, 8, 4, 6]), EPISODES, "row 1 is impossible: found 8"),
    "no length": (_episodes(length=[0, 7, 4, 6]), EPISODES, "row 0 is impossible: found 0"),
    "text": (_episodes(length=["5", "x", "4", "6"]), EPISODES, "cannot be read"),
    "empty": (_episodes(length=[5, None, 4, 6]), EPISODES, "has empty cells"),
    "time": (_episodes(**{FROM: [0.0, np.nan, 0.0, 0.4]}), EPISODES, "found nan"),
    "infinite": (_episodes(**{FROM: [0.0, np.inf, 0.0, 0.4]}), EPISODES, "found inf"),
    "no episodes": (
        lambda r: (r / EPISODES / "chunk-000/file-000.parquet").unlink(),
        EPISODES,
        "there are no files",
    ),
    "no columns": (
        lambda r: drawn.parquet(r / EPISODES / "chunk-000/file-000.parquet", pa.table({"a": [1]})),
        f"{EPISODES}/chunk-000/file-000.parquet",
        "episode_index.* are missing",
    ),
    "twice": (_twice, f"{EPISODES}/chunk-000/file-000.parquet", "cannot be read"),
    "other types": (_split_types, EPISODES, "the table of all files cannot be read"),
    "no tasks": (
        lambda r: drawn.parquet(r / "meta/tasks.parquet", pa.table({"task_index": [0, 1]})),
        "meta/tasks.parquet",
        "cannot be read",
    ),
    "task numbers": (
        lambda r: drawn.parquet(
            r / "meta/tasks.parquet", pa.table({"task_index": [0, 2], "task": ["a", "b"]})
        ),
        "meta/tasks.parquet",
        "not numbered from 0",
    ),
    "no parquet": (lambda r: (r / "meta/tasks.parquet").write_bytes(b"PAR1" * 9), "", "read"),
}


@pytest.mark.parametrize("name", LISTING)
def test_folders_that_cannot_be_listed(tmp_path: Path, name: str) -> None:
    damage, where, message = LISTING[name]
    root = drawn.write(tmp_path / "robot")
    if name == "same key":
        _features(**{"a.b": drawn.feature("int64", 1)})(root)
    damage(root)
    with raises((CorruptDataError, SourceError), match=message) as caught:  # type: ignore[arg-type]
        rs.LeRobot(root).list_samples()
    assert caught.value.path.startswith(str(root / where))
    assert len(str(caught.value)) < 600


def test_a_folder_without_info_is_refused(tmp_path: Path) -> None:
    with raises(OptionError, option="root", value=tmp_path):
        rs.LeRobot(tmp_path).list_samples()


def _column(name: str, values: Callable[[Any], Any]) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        table = pq.read_table(root / DATA)
        at = table.column_names.index(name)
        column = values(table[name].to_pylist())
        changed = table.remove_column(at)
        pq.write_table(
            changed if column is None else changed.append_column(name, [column]), root / DATA
        )

    return change


def _cut(share: float) -> Callable[[Path], None]:
    def cut(root: Path) -> None:
        data = (root / VIDEO).read_bytes()
        (root / VIDEO).write_bytes(data[: int(len(data) * share)])

    return cut


def _playlist(root: Path) -> None:
    text = f"#EXTM3U\n#EXTINF:1,\nfile://{root / 'secret.mp4'}\n#EXT-X-ENDLIST\n"
    (root / "secret.mp4").write_bytes((root / VIDEO).read_bytes())
    (root / VIDEO).write_text(text)


READING: dict[str, tuple[Callable[[Path], Any], str, Defect, str]] = {
    "truncated": (_cut(0.8), VIDEO, Defect.UNREADABLE_IMAGE, "lacks step|cannot be decoded"),
    "only a head": (_cut(0.01), VIDEO, Defect.UNREADABLE_IMAGE, "no video|be decoded"),
    "no video": (
        lambda r: (r / VIDEO).write_bytes(b"x" * 999), VIDEO, Defect.UNREADABLE_IMAGE, "decoded"
    ),
    "playlist": (_playlist, VIDEO, Defect.UNREADABLE_IMAGE, "cannot be decoded"),
    "Matroska": (
        lambda r: drawn.video(r / VIDEO, [drawn.frame(0, s) for s in range(12)], form="matroska"),
        VIDEO, Defect.UNREADABLE_IMAGE, "cannot be decoded|no video",
    ),
    "late": (
        _episodes(**{FROM: [0.0, 9.0, 0.0, 0.4]}), VIDEO, Defect.UNREADABLE_IMAGE,
        "episode 1: the video lacks step 0: found the end of the video, expected a frame at 9 s",
    ),
    "later than time": (
        _episodes(**{FROM: [0.0, 1e13, 0.0, 0.4]}), VIDEO, Defect.UNREADABLE_IMAGE, "ascend"
    ),
    "short data": (
        lambda r: pq.write_table(pq.read_table(r / DATA).slice(0, 9), r / DATA),
        DATA, Defect.FEATURE_SHAPE, "episode 1 ends after its file: found 9 rows, expected at",
    ),
    "shifted": (
        lambda r: pq.write_table(pq.read_table(r / DATA).slice(1), r / DATA),
        DATA, Defect.FEATURE_SHAPE, "row 4 is not step 4 of episode 0: found 1, expected 0",
    ),
    "steps": (
        _column("frame_index", lambda v: [0, 1, 3, *v[3:]]),
        DATA, Defect.FEATURE_SHAPE, "row 2 is not step 2 of episode 0: found 3, expected 2",
    ),
    "NaN times": (
        _column("timestamp", lambda v: pa.array([float("nan"), *v[1:]], "float32")),
        DATA, Defect.FEATURE_SHAPE, "episode 0: a timestamp is not finite",
    ),
    "same times": (
        _column("timestamp", lambda v: pa.array([0.0] * len(v), "float32")),
        VIDEO, Defect.UNREADABLE_IMAGE, "do not ascend by 1/10 s",
    ),
    "task": (
        _column("task_index", lambda v: [9] * len(v)),
        DATA, Defect.FEATURE_SHAPE, "a task is not in meta/tasks.parquet",
    ),
    "no column": (
        _column("action", lambda _: None), DATA, Defect.BROKEN_MANIFEST, "episode 0 cannot be read",
    ),
    "other type": (
        _column("count", lambda v: ["x"] * len(v)), DATA, Defect.BROKEN_MANIFEST, "cannot be read",
    ),
    "struct": (
        _column("count", lambda v: [{"a": value} for value in v]),
        DATA, Defect.BROKEN_MANIFEST, "episode 0 cannot be read",
    ),
    "structs in lists": (
        _column("action", lambda v: [[{"a": 1.0}, {"a": 2.0}] for _ in v]),
        DATA, Defect.BROKEN_MANIFEST, "episode 0 cannot be read",
    ),
    "ragged": (
        _column("action", lambda v: [[1.0], *v[1:]]),
        DATA, Defect.FEATURE_SHAPE, r"has not the shape \(2,\) in each step: found 9 values, exp",
    ),
    "empty cell": (
        _column("action", lambda v: [None, *v[1:]]), DATA, Defect.FEATURE_SHAPE, "found 8 values",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READING)
def test_episodes_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    """Each names the file and the episode; `skip_errors` packs the others."""
    damage, where, defect, message = READING[name]
    root = drawn.write(tmp_path / "robot")
    damage(root)
    source = rs.LeRobot(root)
    listing = source.list_samples()
    failed = []
    for number, sample in enumerate(listing.samples):
        try:
            listing.reader.read(sample)
        except CorruptDataError as error:
            failed.append((number, error))
    with raises(CorruptDataError, match=message, path=root / where, defect=defect):
        raise failed[0][1]
    report = rs.pack(source, tmp_path / "out", skip_errors=True)
    assert sum(report.splits.values()) == 4 - len(failed) >= 2


def test_times_that_no_decoder_can_seek_to(tmp_path: Path) -> None:
    root = drawn.write(tmp_path / "robot")
    drawn.change_info(root, fps=1e-30)
    _column("timestamp", lambda v: pa.array(np.arange(1, len(v) + 1) * 1e30, "float32"))(root)
    listing = rs.LeRobot(root).list_samples()
    with raises(CorruptDataError, path=root / VIDEO, match="cannot be decoded"):
        listing.reader.read(listing.samples[0])


def test_images_that_are_not_structs_are_refused(tmp_path: Path) -> None:
    root = drawn.write(tmp_path / "robot", "image")
    _column("observation.images.front", lambda v: [b"x" for _ in v])(root)
    listing = rs.LeRobot(root).list_samples()
    with raises(CorruptDataError, path=root / DATA, match="has the type binary, expected a struct"):
        listing.reader.read(listing.samples[0])


def test_frames_with_too_many_pixels_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = drawn.write(tmp_path / "robot")
    listing = rs.LeRobot(root).list_samples()
    monkeypatch.setattr(archives.video, "MAX_PIXELS", drawn.HEIGHT * drawn.WIDTH)
    assert listing.reader.read(listing.samples[0])
    monkeypatch.setattr(archives.video, "MAX_PIXELS", drawn.HEIGHT * drawn.WIDTH - 1)
    with raises(CorruptDataError, path=root / VIDEO, match="found 64 x 48, expected at most 3,071"):
        listing.reader.read(listing.samples[0])


def _repeated(name: str, value: Any) -> Callable[[Path], None]:
    """One value in all rows, which Parquet stores once."""

    def change(root: Path) -> None:
        table = pq.read_table(root / DATA)
        at = table.column_names.index(name)
        kept = table.remove_column(at).append_column(name, [pa.array([value] * len(table))])
        pq.write_table(kept, root / DATA)

    return change


def _long_task(root: Path) -> None:
    tasks = pa.table({"task_index": [0, 1], "task": ["x" * 300_000, "y"]})
    pq.write_table(tasks, root / "meta/tasks.parquet")


def _long_lists(root: Path) -> None:
    _features(action=drawn.feature("float32", 10_000))(root)
    _repeated("action", [0.0] * 10_000)(root)


EXPANDING: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "text": ("image", _repeated("note", "x" * 300_000), DATA),
    "image": (
        "image",
        _repeated("observation.images.front", {"bytes": b"x" * 300_000, "path": ""}),
        DATA,
    ),
    "task": ("image", _long_task, DATA),
    "lists": ("image", _long_lists, DATA),
    "frames": ("video", lambda _: None, VIDEO),
}


@pytest.mark.parametrize("name", EXPANDING)
def test_content_that_takes_much_more_memory_than_its_files_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each episode of 5 to 7 steps takes more than 1 MB; `skip_errors` packs the others."""
    kind, change, where = EXPANDING[name]
    root = drawn.write(tmp_path / "robot", kind, files=((0, 1, 2, 3),))
    change(root)
    monkeypatch.setattr(memory_limit, "BYTES_PER_BYTE", 0)
    listing = rs.LeRobot(root).list_samples()
    assert listing.reader.read(listing.samples[0])
    limit = 13_000 if name == "frames" else 1_000_000
    monkeypatch.setattr(memory_limit, "MIN_LIMIT_BYTES", limit)
    listing = rs.LeRobot(root).list_samples()
    with raises(CorruptDataError, defect=Defect.DECOMPRESSION_LIMIT, path=root / where):
        listing.reader.read(listing.samples[0])
    monkeypatch.setattr(memory_limit, "BYTES_PER_BYTE", 1 << 20)
    assert listing.reader.read(listing.samples[0])  # large files have a higher limit


def _many_rows(path: str, table: pa.Table) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        drawn.parquet(root / path, table, row_group=1 << 20)

    return write


def _many_episodes(root: Path) -> None:
    path = root / EPISODES / "chunk-000/file-000.parquet"
    table = pq.read_table(path).drop_columns(["tasks"])
    columns = {name: np.full(50_000, 1, np.int64) for name in table.column_names}
    drawn.parquet(path, pa.table(columns), row_group=1 << 20)


TASKS = "meta/tasks.parquet"
EQUAL_TASKS = pa.table({"task_index": np.zeros(50_000, np.int64), "task": ["x"] * 50_000})


@pytest.mark.parametrize(
    ("change", "totals", "where", "fields"),
    [
        (_many_rows(TASKS, EQUAL_TASKS), {"total_tasks": 2}, TASKS, ("50,000", "at most 2, as")),
        (_many_rows(TASKS, EQUAL_TASKS), {"total_tasks": 1 << 40}, TASKS, ("at least", "at most")),
        (_many_episodes, {}, EPISODES, ("50,000", "at most 4, as")),
        (_many_episodes, {"total_episodes": 50_000}, EPISODES, ("at least", "at most")),
        (lambda _: None, {"total_frames": 10**12}, EPISODES, ("22", "1,000,000,000,000, as in")),
        (lambda _: None, {"total_frames": 14}, EPISODES, ("22", "14, as in")),
    ],
)
def test_tables_with_more_rows_than_declared_are_not_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], None],
    totals: dict[str, int],
    where: str,
    fields: tuple[str, str],
) -> None:
    root = drawn.write(tmp_path / "robot", "image")
    change(root)
    drawn.change_info(root, **totals)
    monkeypatch.setattr(memory_limit, "MIN_LIMIT_BYTES", 500_000)
    monkeypatch.setattr(memory_limit, "BYTES_PER_BYTE", 8)
    with raises(CorruptDataError) as caught:
        rs.LeRobot(root).list_samples()
    assert str(caught.value.path).startswith(str(root / where))
    assert caught.value.found.startswith(fields[0])
    assert caught.value.expected.startswith(fields[1])


@pytest.mark.parametrize(
    "totals",
    [{"total_episodes": -4}, {"total_frames": -1}, {"total_tasks": -1}, {"total_tasks": "many"}],
)
def test_impossible_totals_are_refused(tmp_path: Path, totals: dict[str, Any]) -> None:
    root = drawn.write(tmp_path / "robot", "image")
    drawn.change_info(root, **totals)
    with raises(CorruptDataError, path=root / INFO, defect=Defect.BROKEN_MANIFEST):
        rs.LeRobot(root).list_samples()


def test_a_folder_with_very_many_splits_is_refused(tmp_path: Path) -> None:
    root = drawn.write(tmp_path / "robot", "image")
    for count in (archives.lerobot.MAX_SPLITS, archives.lerobot.MAX_SPLITS + 1):
        drawn.change_info(root, splits={f"s{n}": "0:4" for n in range(count)})
        if count == archives.lerobot.MAX_SPLITS:
            assert rs.LeRobot(root).list_samples()
            continue
        with raises(CorruptDataError, path=root / INFO):
            rs.LeRobot(root).list_samples()


def _box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), kind) + content


def _overwrite(name: bytes, skip: int, *numbers: int) -> Callable[[Path], None]:
    """Replace numbers of an MP4 that come so many bytes after the name of a box."""

    def change(root: Path) -> None:
        data = bytearray((root / VIDEO).read_bytes())
        struct.pack_into(f">{len(numbers)}I", data, data.index(name) + 4 + skip, *numbers)
        (root / VIDEO).write_bytes(data)

    return change


def _append(data: bytes) -> Callable[[Path], None]:
    return lambda root: (root / VIDEO).write_bytes((root / VIDEO).read_bytes() + data)


def _zero_size(root: Path) -> None:
    """Two numbers of 16 bits in the description of the codec."""
    _overwrite(b"avc1", 24, 0)(root)


def _sound_only(root: Path) -> None:
    import av

    with av.open(str(root / VIDEO), "w", format="mp4") as container:
        stream: Any = container.add_stream("aac", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())


VIDEOS: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "frames of one size": (_overwrite(b"stsz", 4, 9, 60_000_000), "lists too many", "60,000,0"),
    "sizes of frames": (_overwrite(b"stsz", 8, 60_000_000), "lists too many", "60,000,0"),
    "edits": (_overwrite(b"elst", 4, 60_000_000), "lists too many", ""),
    "fragments": (
        _append(_box(b"moof", _box(b"traf", _box(b"trun", struct.pack(">II", 0, 60_000_000))))),
        "lists too many",
        "60,000,0",
    ),
    "hidden in other boxes": (
        _append(_box(b"free", _box(b"moov", b"....stsz" + struct.pack(">III", 0, 1, 60_000_000)))),
        "lists too many",
        "60,000,0",
    ),
    "compressed headers": (_append(_box(b"moov", _box(b"cmov", b"x" * 20))), "compressed", ""),
    "codec": (
        lambda root: (root / VIDEO).write_bytes(
            (root / VIDEO).read_bytes().replace(b"avc1\0\0", b"zzzz\0\0")
        ),
        "no decoder",
        "codec 'zzzz'",
    ),
    "sound only": (_sound_only, "has no video", ""),
    "empty": (lambda root: (root / VIDEO).write_bytes(b""), "cannot be decoded", ""),
}


@pytest.mark.parametrize("name", VIDEOS)
def test_videos_that_cannot_be_decoded(tmp_path: Path, name: str) -> None:
    """The reason is known before FFmpeg reads the frames."""
    change, problem, found = VIDEOS[name]
    root = drawn.write(tmp_path / "robot")
    change(root)
    listing = rs.LeRobot(root).list_samples()
    with raises(CorruptDataError, path=root / VIDEO, defect=Defect.UNREADABLE_IMAGE) as caught:
        listing.reader.read(listing.samples[0])
    assert problem in caught.value.problem
    assert caught.value.found.startswith(found)
    assert caught.value.remedy


def test_a_video_without_a_size_in_its_header_is_decoded(tmp_path: Path) -> None:
    """Its frames have their own."""
    root = drawn.write(tmp_path / "robot")
    _zero_size(root)
    listing = rs.LeRobot(root).list_samples()
    assert len(listing.reader.read(listing.samples[0])[FRONT]) == drawn.LENGTHS[0]


def test_detection_prefers_the_whole_dataset(tmp_path: Path) -> None:
    root = drawn.write(tmp_path / "robot")
    (root / "README.md").write_text("---\ntags: [LeRobot]\n---\n")
    found = rs.detect(root)
    assert found.reading.format == "lerobot"
    assert found.to_json()["count"] == 4
    assert found.to_json()["noun"] == "episodes"
