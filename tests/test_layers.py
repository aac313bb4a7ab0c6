"""What works on datasets gives the same for layers as for records that have the features inside."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.checking.normalisation_file import NORMALISATION_NAME
from recordsmith.engines import Processes
from recordsmith.exporting.export_dataset import _fingerprint
from recordsmith.format.wire import masked_crc32c
from recordsmith.support.explaining import LeftOutWarning
from recordsmith.viewing.records import ViewedRecords

from . import layered_datasets as layered
from .images import jpeg
from .raising import raises

NAMES = ("daisy", "rose", "tulip")
COUNT = 24
BASE = [
    {
        "id": at,
        "image/encoded": jpeg(at),
        "image/filename": f"a/{at}.jpg",
        "image/class/label": 0,
        "image/class/text": NAMES[0],
        "tokens": [at] * (at % 5 + 1),
    }
    for at in range(COUNT)
]
BOX = ("xmin", "ymin", "xmax", "ymax")
LAYERS: dict[str, list[dict[str, Any]]] = {
    "labels": [
        {"image/class/label": at % 3, "image/class/text": NAMES[at % 3]} for at in range(COUNT)
    ],
    "boxes": [
        {
            **{f"image/object/bbox/{key}": [0.1 + 0.2 * n] * (at % 3) for n, key in enumerate(BOX)},
            "image/object/class/label": [at % 3] * (at % 3),
        }
        for at in range(COUNT)
    ],
    "more": [{"embedding": [at, 0.5], "group": f"g{at // 4}"} for at in range(COUNT)],
}


def splits(payloads: list[bytes]) -> dict[str, list[list[bytes]]]:
    return {"train": [payloads[:9], payloads[9:20]], "test": [payloads[20:]]}


@pytest.fixture(scope="module")
def both(tmp_path_factory: Any, reference: Any) -> tuple[Path, Path]:
    """A folder with layers, and one of the records that protobuf has merged; equal names."""
    layers = tmp_path_factory.mktemp("layers") / "out"
    merged = tmp_path_factory.mktemp("merged") / "out"
    payloads = [rs.encode_example(row) for row in BASE]
    layered.write(layers, splits(payloads), class_names=NAMES)
    for name, rows in LAYERS.items():
        layered.add(layers, name, rows)
        payloads = [p + rs.encode_example(row) for p, row in zip(payloads, rows, strict=True)]
    message = reference.messages().Example
    whole = [message.FromString(p).SerializeToString(deterministic=True) for p in payloads]
    layered.write(merged, splits(whole), class_names=NAMES)
    return layers, merged


def exported(format: str) -> Callable[[Path], Any]:
    def export(path: Path) -> Any:
        out = path.parent / format
        report = rs.export(path, out, format, skip_errors=True, overwrite=True)
        files = {str(f.relative_to(out)): f.read_bytes() for f in out.rglob("*") if f.is_file()}
        return files, report.problem_count, report.skipped_count

    return export


def queried(path: Path) -> Any:
    duckdb = pytest.importorskip("recordsmith.duckdb")
    sql = """select split, "image/class/label" as label, count(*), sum(embedding[1])
        from records where "group" != 'g1' group by all order by all"""
    return duckdb.query(sql, rs.open(path)).to_pylist()


def scanned(path: Path) -> Any:
    polars = pytest.importorskip("polars")
    import recordsmith.polars

    frame = recordsmith.polars.scan(rs.open(path))
    return frame.filter(polars.col("image/class/label") == 1).select("id").collect().to_dicts()


def without_sizes(report: Any) -> Any:
    """A report without paths and sizes of files and records."""
    if isinstance(report, dict):
        left_out = ("size_bytes", "sizes", "shards", "path", "a", "b")
        return {key: without_sizes(value) for key, value in report.items() if key not in left_out}
    return [without_sizes(one) for one in report] if isinstance(report, list) else report


def told(report: Any, path: Path) -> Any:
    text = json.dumps(without_sizes(report.to_json()), default=str)
    return json.loads(text.replace(str(path), "out"))


USES: dict[str, Callable[[Path], Any]] = {
    "inspect": lambda path: told(replace(rs.inspect(path), layers={}), path),
    "stats": lambda path: told(rs.stats(path, group_column="group"), path),
    "stats in processes": lambda path: told(rs.stats(path, engine=Processes(2)), path),
    "stats of a selection": lambda path: told(rs.stats(rs.open(path)[3:20]), path),
    "lint": lambda path: told(rs.lint(path), path),
    "arrow": lambda path: rs.open(path).to_arrow(threads=2).read_all().to_pylist(),
    "query": queried,
    "scan": scanned,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_uses(both: tuple[Path, Path], use: Callable[[Path], Any]) -> None:
    layers, merged = both
    assert use(layers) == use(merged)


@pytest.mark.parametrize(
    "format", ["coco", "csv", "folder", "parquet", "tfds", "webdataset", "yolo"]
)
def test_exports(both: tuple[Path, Path], format: str) -> None:
    if format == "parquet":
        pytest.importorskip("pyarrow")
    export = exported(format)
    assert export(both[0]) == export(both[1])


def test_diff(both: tuple[Path, Path]) -> None:
    report = rs.diff(*both)
    assert (report.changed_count, report.left_only_count, report.right_only_count) == (0, 0, 0)


@pytest.mark.parametrize("engine", [None, Processes(2)], ids=["here", "processes"])
def test_packed_again(both: tuple[Path, Path], tmp_path: Path, engine: Any) -> None:
    """Records have their features inside, also from other processes; no file is skipped."""
    report = rs.pack(rs.Shards(both[0]), tmp_path / "out", shards=2, engine=engine)
    assert not [notice for notice in report.notices if "layers" in notice]
    diff = rs.diff(tmp_path / "out", both[1])
    assert (diff.changed_count, diff.left_only_count, diff.right_only_count) == (0, 0, 0)
    size = sum(len(record) for record in rs.open(tmp_path / "out").records())
    assert size == sum(len(record) for record in rs.open(both[1]).records())


def test_array_records_have_each_feature_once(both: tuple[Path, Path], tmp_path: Path) -> None:
    module = pytest.importorskip("array_record.python.array_record_module")
    rs.export(both[0], tmp_path / "out", "array-record")
    file = str(tmp_path / "out" / "test-00000-of-00001.array_record")
    payloads = module.ArrayRecordReader(file).read_all()
    expected = rs.open(both[1], "test").records()
    assert [sorted(payload) for payload in payloads] == [*map(sorted, expected)]


@pytest.mark.parametrize("reader", ["tf", "dali"])
def test_printed_programs_are_refused(both: tuple[Path, Path], reader: Any) -> None:
    with raises(rs.OptionError, option="reader", match="reshard"):
        rs.reader_code(both[0], reader)


# -- files of a dataset with layers ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["train-00000-of-00002.tfrecord", "train-*", "*.tfrecord"])
def test_named_files_are_opened_without_layers(both: tuple[Path, Path], name: str) -> None:
    with pytest.warns(LeftOutWarning, match="labels, boxes, more"):
        dataset = rs.open(both[0] / name)
    assert "group" not in dataset[0]
    rs.open(both[1] / name)  # without a warning, which is an error in tests


def test_what_lies_next_to_named_files_does_not_matter(
    both: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "x.tfrecord").write_bytes((both[1] / "test-00000-of-00001.tfrecord").read_bytes())
    (tmp_path / "dataset.json").write_text('{"layers": [')
    assert len(rs.open(tmp_path / "x.tfrecord")) == 4
    (tmp_path / "dataset.json").write_bytes((both[0] / "dataset.json").read_bytes())
    assert len(rs.open(tmp_path / "x.tfrecord")) == 4  # not a file of that dataset


def test_commands_print_what_is_left_out(both: tuple[Path, Path]) -> None:
    file = str(both[0] / "test-00000-of-00001.tfrecord")
    command = [sys.executable, "-m", "recordsmith", "inspect", file, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["records"] == 4
    assert done.stderr.startswith("notice: ")
    assert "labels, boxes, more" in done.stderr


# -- what is kept for a dataset --------------------------------------------------------------------


def test_statistics_belong_to_the_layers_with_their_features(tmp_path: Path) -> None:
    payloads = [rs.encode_example({"x": float(at)}) for at in range(9)]
    folder = layered.write(tmp_path / "out", {"train": [payloads]})

    def load() -> Any:
        features = {"x": rs.Scalar("x", normalise="mean")}
        return next(iter(rs.Loader(rs.open(folder), features, batch_size=9)))["x"]

    def save() -> None:
        rs.normalisation(folder, features=["x"]).save(folder / NORMALISATION_NAME, overwrite=True)

    save()
    before = load()
    layered.add(folder, "other", [{"y": at} for at in range(9)])
    np.testing.assert_array_equal(load(), before)
    layered.add(folder, "x", [{"x": at * at} for at in range(9)])
    with raises(rs.OptionError, option="normalise"):
        load()
    save()
    assert abs(float(load().mean())) < 1e-6
    assert not np.allclose(load(), before)


def test_a_card_lists_the_files_of_layers(both: tuple[Path, Path]) -> None:
    card = rs.card(both[0])
    files = {file["@id"]: file for file in card.croissant["distribution"] if "sha256" in file}
    assert files.keys() == {str(path.relative_to(both[0])) for path in both[0].rglob("*.tfrecord")}
    for name, file in files.items():
        data = (both[0] / name).read_bytes()
        assert file["sha256"] == hashlib.sha256(data).hexdigest()
        assert file["contentSize"] == f"{len(data)} B"
    assert "`embedding`, `group`" in card.readme


def test_records_of_compressed_and_broken_files_are_viewed(tmp_path: Path) -> None:
    """Each record that can be read; damage in the file of a layer is of its record."""
    payloads = [rs.encode_example({"id": at}) for at in range(9)]
    for compression in ("none", "gzip"):
        folder = layered.write(tmp_path / compression, {"train": [payloads]}, compression)
        layered.add(folder, "new", [{"y": at} for at in range(9)])
        (file,) = layered.layer_files(folder, "new")
        data = bytearray(file.read())
        size = len(data) // 9
        for at, readable in ((4 * size + 13, [0, 1, 2, 3, 5, 6, 7, 8]), (4 * size, [0, 1, 2, 3])):
            broken = data.copy()
            broken[at] ^= 1
            file.put(bytes(broken))
            with closing(ViewedRecords(folder)) as viewed:
                read = viewed.read([*range(9)])
            if compression == "none" or at % size:
                assert [at for at, one in enumerate(read) if isinstance(one, bytes)] == readable
            for row in readable if compression == "none" or at % size else ():
                assert rs.decode_example(read[row]) == {"id": [row], "y": [row]}
            assert {one.path for one in read if not isinstance(one, bytes)} == {str(file)}


def test_an_export_of_other_layers_is_another_one(both: tuple[Path, Path], tmp_path: Path) -> None:
    payloads = [rs.encode_example({"id": at}) for at in range(3)]
    folder = layered.write(tmp_path / "out", {"train": [payloads]})
    dataset = rs.open(folder)
    before = _fingerprint(dataset, ["csv"])
    layered.add(folder, "new", [{"y": at} for at in range(3)])
    assert _fingerprint(rs.open(folder), ["csv"]) != before == _fingerprint(dataset, ["csv"])


def test_the_viewer(both: tuple[Path, Path]) -> None:
    """Tiles and facets as of merged records; the facts of the file are those of the shard's."""
    pytest.importorskip("httpx")
    from .viewing.conftest import Client

    seen = []
    for path in both:
        client = Client(rs.view(path))
        try:
            records = [client.json(f"/api/record/{position}") for position in (3, 13)]
            seen.append((client.tiles(positions="0,13,23"), client.poll("/api/facets"), records))
        finally:
            client.http.close()
            client.viewer.close()
    layers, merged = seen
    assert layers[:2] == merged[:2]
    for one, other, shard, number in zip(layers[2], merged[2], (0, 1), (3, 4), strict=True):
        for key in ("sections", "boxes", "label", "caption", "position", "record"):
            assert one[key] == other[key]
        record = rs.open(both[0]).shards[shard].alone().read(number)
        assert one["checksums"]["payload"] == masked_crc32c(record).to_bytes(4, "little").hex()
        assert [Path(layer).parent.name for layer in one["layers"]] == [*LAYERS]
