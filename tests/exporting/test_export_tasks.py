"""An export on an engine writes the records of a local one, in a file for each shard."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest

import recordsmith as rs
from recordsmith.exporting import EXPORTERS
from recordsmith.exporting.export_dataset import formats_with
from recordsmith.exporting.formats.webdataset import WebDatasetShards
from recordsmith.stores import Location, as_folder
from recordsmith.support.tasks import Task, run_task

from ..places import contents
from ..raising import raises
from ..repeating_engine import KilledProcesses, RepeatingEngine, plain

pa_parquet = pytest.importorskip("pyarrow.parquet")
pa_feather = pytest.importorskip("pyarrow.feather")

DIVISIBLE = formats_with("engine")
WITH_IMAGES = [name for name in DIVISIBLE if name != "csv"]
SHARDS = 3


@pytest.fixture(params=["files", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    """A folder that tasks of this process find by its path or URL."""
    folder = as_folder(tmp_path / "new" / "out")
    if request.param == "memory":
        folder = as_folder(f"memory://{uuid4()}/out")
    yield folder
    if request.param == "memory":
        for found in folder.list():
            found.delete()


@pytest.fixture
def images_in_shards(write: Any, image: Any, tmp_path: Path) -> Path:
    """Two splits of three shards; some images have no name, and some records lack a feature."""
    examples = [
        image(
            f"{number}.jpg" if number % 5 else None,
            seed=number,
            more={"image/class/label": number % 3, "number": number, "many": [0.5] * (number % 4)}
            | ({"note": f"näm {number}"} if number % 2 else {}),
        )
        for number in range(17)
    ]
    source = write({"many": "float"}, train=examples[:11], val=examples[11:])
    rs.reshard(source, tmp_path / "images", shards=SHARDS)
    return tmp_path / "images"


@pytest.fixture
def rows(tmp_path: Path, images_in_shards: Path) -> Path:
    features = ["image/encoded", "image/format", "image/height", "image/width", "image/filename"]
    rs.edit(images_in_shards, tmp_path / "rows", drop=features)
    return tmp_path / "rows"


def read(folder: Any, format: str) -> dict[str, list[Any]]:
    """The records of each split, in the order of the names of its files, by other libraries."""
    found: dict[str, list[Any]] = {}
    for name, data in contents(folder).items():
        split = next((split for split in ("train", "val") if split in name), None)
        if split is not None:
            found.setdefault(split, []).extend(READERS[format](io.BytesIO(data)))
    return found


def _read_tar(file: io.BytesIO) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=file) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            yield member.name, content.read()


def _read_array_records(file: io.BytesIO) -> list[bytes]:
    module = pytest.importorskip("array_record.python.array_record_module")
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(file.getvalue())
        copy.flush()
        return list(module.ArrayRecordReader(copy.name).read_all())


READERS: dict[str, Callable[[io.BytesIO], Iterable[Any]]] = {
    "csv": lambda file: csv.reader(io.TextIOWrapper(file, "utf-8", newline="")),
    "parquet": lambda file: pa_parquet.read_table(file).to_pylist(),
    "huggingface": lambda file: pa_parquet.read_table(file).to_pylist(),
    "webdataset": _read_tar,
    "feather": lambda file: pa_feather.read_table(file).to_pylist(),
    "tfds": rs.read_records,
    "array-record": _read_array_records,
}


def counts(report: Any) -> Any:
    """What a report says, but for the files."""
    return plain({**vars(report), "folder": None, "file_count": None, "size_bytes": None})


def export_both(
    source: Any, tmp_path: Path, format: str, engine: Any = None, **options: Any
) -> tuple[Any, Any]:
    """The report and the records of an export without and with an engine."""
    if format == "array-record":
        pytest.importorskip("array_record")
    found = []
    for number, used in enumerate((None, engine or RepeatingEngine())):
        folder = tmp_path / f"export-{uuid4()}"
        report = rs.export(source, folder, format, engine=used, **options)
        records = read(folder, format)
        if format == "csv":  # a line of headings in each file
            headings = next(iter(records.values()))[0]
            records = {
                split: [line for line in lines if line != headings]
                for split, lines in records.items()
            }
        found.append((counts(report), records))
        shown = [path for path in contents(folder) if path != ".export.json"]
        assert report.file_count == len(shown)
        assert number == 0 or report.size_bytes == sum(
            len(data) for name, data in contents(folder).items() if name in shown
        )
    return found[0], found[1]


# -- the same records ------------------------------------------------------------------------------


@pytest.mark.parametrize("format", WITH_IMAGES)
def test_images(images_in_shards: Path, tmp_path: Path, format: str) -> None:
    local, on_engine = export_both(images_in_shards, tmp_path, format)
    assert on_engine == local
    assert local[0]["record_count"] == 17


@pytest.mark.slow
@pytest.mark.parametrize("format", DIVISIBLE)
def test_rows(rows: Path, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    local, on_engine = export_both(rows, tmp_path, format)
    assert on_engine == local
    engine = KilledProcesses(monkeypatch)
    assert export_both(rows, tmp_path, format, engine) == (local, local)
    assert engine.killed == 1


@pytest.mark.slow
@pytest.mark.parametrize("format", DIVISIBLE)
@pytest.mark.parametrize(
    "select",
    [
        lambda dataset: dataset[3:15],
        lambda dataset: dataset[::3],
        lambda dataset: dataset.select([0, 1, 1, 8, 12, 12]),
        lambda dataset: dataset.filter("number > 12 or number < 2"),
        lambda dataset: dataset.splits["val"],
    ],
    ids=["slice", "steps", "positions", "filter", "split"],
)
def test_selections(rows: Path, tmp_path: Path, format: str, select: Any) -> None:
    whole = rs.open(rows)
    compressed = tmp_path / "compressed"
    rs.reshard(rows, compressed, shards=SHARDS, compression="gzip")
    local, on_engine = export_both(select(whole), tmp_path, format)
    if format == "csv":  # the schema of the whole has other lists
        assert on_engine[0] == local[0]
    else:
        assert on_engine == local
    _, of_compressed = export_both(select(rs.open(compressed)), tmp_path, format)
    assert of_compressed == on_engine


@pytest.mark.parametrize("format", ["webdataset", "tfds"])
def test_large_shards_become_several_files(
    images_in_shards: Path, tmp_path: Path, format: str
) -> None:
    one = tmp_path / "one"
    rs.reshard(images_in_shards, one, shards=1)
    _, expected = export_both(one, tmp_path, format)
    out = tmp_path / "out"
    report = rs.export(one, out, format, shard_size_bytes=900, engine=RepeatingEngine())
    assert (counts(report), read(out, format)) == expected
    names = [name for name in contents(out) if "train" in name]
    assert len(names) > 3
    ends = {
        "webdataset": [f"train-{number:06d}.tar" for number in range(len(names))],
        "tfds": [
            f"dataset-train.tfrecord-{number:05d}-of-{len(names):05d}"
            for number in range(len(names))
        ],
    }
    assert names == ends[format]


def test_foreign_shards(write: Any, image: Any, tmp_path: Path) -> None:
    """Shards without a manifest, one of them empty; a name of a split that is no file name."""
    examples = [image(f"{number}.jpg", seed=number) for number in range(5)]
    source = write(train=examples, con=examples[:2], none=[])
    local, on_engine = export_both(source, tmp_path, "huggingface")
    assert on_engine == local
    assert local[0]["changed_names"] == [[None, "con", "_con"]]
    rs.export(source, tmp_path / "out", "tfds", engine=RepeatingEngine())
    assert "dataset-_con.tfrecord-00000-of-00001" in contents(tmp_path / "out")


@pytest.mark.parametrize("engine", [None, RepeatingEngine()])
def test_datasets_finds_the_files_of_each_split(
    images_in_shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Any
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    rs.export(images_in_shards, tmp_path / "out", "huggingface", engine=engine)
    found = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    wanted = {"train": [*range(11)], "val": [*range(11, 17)]}
    assert {split: table["number"][:] for split, table in found.items()} == wanted


def test_names_that_occur_in_several_files(write: Any, image: Any, tmp_path: Path) -> None:
    """Keys are unique in a tar file; packing all of them loses no record."""
    examples = [image("same.jpg", seed=number) for number in range(6)]
    rs.reshard(write(train=examples), tmp_path / "in", shards=3)
    rs.export(tmp_path / "in", tmp_path / "out", "webdataset", engine=RepeatingEngine())
    keys = [name for name, _ in read(tmp_path / "out", "webdataset")["train"] if "jpg" in name]
    assert keys == ["same.jpg", "same-2.jpg"] * 3
    rs.pack(rs.WebDataset(tmp_path / "out"), tmp_path / "packed", shuffle=False)
    packed = [record["image/encoded"] for record in rs.open(tmp_path / "packed")]
    assert packed == [[example["image/encoded"]] for example in examples]


# -- records that are not as they should be --------------------------------------------------------


@pytest.mark.parametrize("format", ["huggingface", "webdataset"])
def test_skipped_records(write: Any, image: Any, tmp_path: Path, format: str) -> None:
    """Positions are those in the whole dataset; a file without records is there as well."""
    examples = [image(f"{number}.jpg", seed=number, more={"n": number}) for number in range(12)]
    for number in (1, 4, 5, 6, 7):
        examples[number] |= {"image/format": "raw", "image/depth": 9, "image/dtype": "uint8"}
    examples[9]["image/format"] = "png"  # a problem
    rs.reshard(write(train=examples), tmp_path / "in", shards=3)
    with pytest.raises(rs.SourceError) as local:
        rs.export(tmp_path / "in", tmp_path / "none", format)
    with pytest.raises(rs.SourceError) as on_engine:
        rs.export(tmp_path / "in", tmp_path / "none", format, engine=RepeatingEngine())
    assert plain(on_engine.value) == plain(local.value)
    assert on_engine.value.records == (1, 4, 5, 6, 7)
    assert sorted(os.listdir(tmp_path)) == ["in", "records"]
    expected, found = export_both(tmp_path / "in", tmp_path, format, skip_errors=True)
    assert found == expected
    assert found[0]["problem_count"] == 1
    (out,) = (path for path in tmp_path.glob("export-*") if len([*path.glob("train*")]) > 1)
    assert len([*out.glob("train*")]) == 3


def test_damaged_records(images_in_shards: Path, place: Location) -> None:
    path = sorted(images_in_shards.glob("train-*"))[1]
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(rs.CorruptDataError) as caught:
        rs.export(images_in_shards, place, "webdataset", engine=RepeatingEngine())
    assert str(caught.value.path).endswith(path.name)
    assert "train-000001.tar" in str(caught.value)
    assert contents(place) == {}


# -- what cannot be divided ------------------------------------------------------------------------


@pytest.mark.parametrize("format", [name for name in EXPORTERS if name not in DIVISIBLE])
def test_other_formats_are_refused(images_in_shards: Path, tmp_path: Path, format: str) -> None:
    with raises(rs.OptionError, option="engine", match="webdataset"):
        rs.export(images_in_shards, tmp_path / "out", format, engine=RepeatingEngine())
    assert not (tmp_path / "out").exists()


def test_records_in_another_order_are_refused(rows: Path, tmp_path: Path) -> None:
    with raises(rs.OptionError, option="dataset"):
        rs.export(rs.open(rows).shuffle(), tmp_path / "out", "parquet", engine=RepeatingEngine())


# -- all or nothing --------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["tfds", "parquet"])
def test_an_earlier_export_is_replaced(
    rows: Path, place: Location, tmp_path: Path, format: str
) -> None:
    rs.export(rows, place, "parquet")
    (place / "mine.txt").put(b"mine")
    before = contents(place)
    with raises(rs.OptionError, option="out", value=str(place)):
        rs.export(rows, place, format, engine=RepeatingEngine())
    assert contents(place) == before
    rs.export(rows, place, format, engine=RepeatingEngine(), overwrite=True)
    found = contents(place)
    assert found.pop("mine.txt") == b"mine"
    entries = json.loads(found.pop(".export.json"))["entries"]
    assert entries == sorted(found)
    assert read(place, format) == export_both(rows, tmp_path, format)[0][1]
    rs.export(rows, place, format, engine=RepeatingEngine(), overwrite=True)
    assert contents(place).keys() == {*found, "mine.txt", ".export.json"}


def raise_error(task: Task) -> None:
    """Run a task, and raise what it ended with."""
    error = run_task(task).error
    assert error is not None
    raise error


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_failed_job_leaves_nothing(rows: Path, place: Location, count: int) -> None:
    """Also an attempt that begins, or goes on, after the job has ended."""
    tasks: list[Task] = []

    def before(task: Task) -> None:
        tasks.append(task)
        if len(tasks) > count:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rs.export(rows, place, "webdataset", engine=RepeatingEngine(before))
    assert contents(place) == {}
    for task in tasks:
        with raises(rs.FileAccessError, errno=errno.ESTALE):
            raise_error(task)
    assert contents(place) == {}
    assert not place.is_folder()


def test_attempts_that_begin_after_the_job(rows: Path, place: Location) -> None:
    tasks: list[Task] = []
    rs.export(rows, place, "webdataset", engine=RepeatingEngine(tasks.append))
    before = contents(place)
    for task in tasks:
        with raises(rs.FileAccessError, errno=errno.ESTALE):
            raise_error(task)
    assert contents(place) == before


def test_an_attempt_at_work_while_the_job_fails(
    rows: Path, place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_at_work, has_ended = Event(), Event()
    usual, results = WebDatasetShards.close, []

    def close(shards: WebDatasetShards) -> None:
        is_at_work.set()
        assert has_ended.wait(60)
        usual(shards)

    class Failing:
        def map(self, function: Any, tasks: Any) -> Iterator[Any]:
            self.thread = Thread(target=lambda: results.append(function(next(iter(tasks)))))
            self.thread.start()
            assert is_at_work.wait(60)
            raise KeyboardInterrupt
            yield

    monkeypatch.setattr(WebDatasetShards, "close", close)
    engine = Failing()
    with pytest.raises(KeyboardInterrupt):
        rs.export(rows, place, "webdataset", engine=engine)
    has_ended.set()
    engine.thread.join(60)
    assert len(results) == 1
    assert contents(place) == {}
    assert not place.is_folder()


def test_a_machine_that_does_not_share_the_folder(rows: Path, tmp_path: Path) -> None:
    def before(task: Task) -> None:
        task.content["folder"]["folder"] = str(tmp_path / "elsewhere")

    with raises(rs.FileAccessError, errno=errno.ESTALE):
        rs.export(rows, tmp_path / "out", "parquet", engine=RepeatingEngine(before))
    assert not (tmp_path / "out").exists()
