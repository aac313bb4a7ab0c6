"""`reshard(tiles=True)` divides JPEGs into tiles and changes nothing else."""

from __future__ import annotations

import io
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith.cli import app
from recordsmith.dataset import ShardWriter, read_manifest
from recordsmith.errors import with_options
from recordsmith.image.kernel.tiling import read_mcus
from recordsmith.image.storing.lossless import add_tiles
from recordsmith.image.storing.store import NOT_REWRITTEN, PROGRESSIVE, TILED
from recordsmith.reshaping.tiled_images import UNREADABLE
from recordsmith.stores import Location, as_folder
from recordsmith.words import note_text


@pytest.fixture(scope="module")
def files(images: ModuleType) -> dict[str, bytes]:
    big = images.noise(320, 200)
    baseline = images.encode(big, "JPEG")
    return {
        "baseline": baseline,
        "grey": images.encode(big.convert("L"), "JPEG"),
        "small": images.jpeg(),
        "progressive": images.encode(big, "JPEG", progressive=True),
        "png": images.encode(big, "PNG"),
        "truncated": baseline[: len(baseline) // 2],
        "followed": baseline + b"behind",
        "header only": baseline[:6],
        "tiled": images.encode(big, "JPEG", restart_marker_blocks=4),
    }


def write(place: Any, files: dict[str, bytes]) -> None:
    as_folder(place).make_folder()
    with ShardWriter(place / "train-00000-of-00001.tfrecord") as writer:
        for number, (name, data) in enumerate(files.items()):
            features = {"image/encoded": data, "name": name, "id": number, "none": []}
            writer.write_example(features)
            pair = {"left": data, "raw": [files["png"], data], "values": np.arange(600)}
            writer.write_example(pair)
        steps = {"frames": [[data, data] for data in files.values()] + [[]], "ids": [[1], [2]]}
        writer.write(rs.encode_sequence_example({"name": "steps"}, steps))


def divided(value: Any, files: dict[str, bytes]) -> Any:
    """The values of a feature with tiles."""
    known = {files[name]: add_tiles(files[name]) for name in ("baseline", "grey")}
    return [known.get(one, one) for one in value] if isinstance(value, list) else value


def assert_equal(one: Any, two: Any) -> None:
    assert type(one) is type(two)
    assert one == two if isinstance(one, list) else np.array_equal(one, two)


def test_only_jpegs_change(place: Location, files: dict[str, bytes]) -> None:
    write(place / "in", files)
    report = rs.reshard(place / "in", place / "out", tiles=True)
    assert rs.verify(place / "out").is_good
    before, after = (list(rs.open(place / name).records()) for name in ("in", "out"))
    assert len(before) == len(after) == 2 * len(files) + 1
    for old, new in zip(before[:-1], after[:-1], strict=True):
        had, has = rs.decode_example(old), rs.decode_example(new)
        assert list(had) == list(has)
        for key, value in had.items():
            assert_equal(has[key], divided(value, files))
        images = [value for value in had.values() if isinstance(value, list)]
        assert (bytes(old) == bytes(new)) == (images == [divided(one, files) for one in images])
    steps = [rs.decode_sequence_example(one).feature_lists for one in (before[-1], after[-1])]
    assert steps[1]["frames"] == [divided(step, files) for step in steps[0]["frames"]]
    counts = {TILED: 2, PROGRESSIVE: 1, NOT_REWRITTEN: 1, UNREADABLE: 2}
    each = 1 + 2 + 2  # in the Examples and in a step
    for change, count in counts.items():
        assert with_options(note_text(each * count, change)) in report.notices
    schema = read_manifest(place / "out").schema
    assert schema == rs.open(place / "out").schema


def test_pixels_stay(place: Location, files: dict[str, bytes]) -> None:
    write(place / "in", files)
    rs.reshard(place / "in", place / "out", tiles=True)
    (data,) = rs.decode_example(next(iter(rs.open(place / "out").records())))["image/encoded"]
    assert (read_mcus(data) or ())[4] == 4
    one, two = (np.array(Image.open(io.BytesIO(file))) for file in (files["baseline"], data))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "options",
    [
        {"edits": rs.Edits(rename={"image/encoded": "image"}, add={"source": "a"})},
        {"shuffle": True, "seed": 3, "shards": 3},
        {"where": "has(id)", "shards": 2},
        {"compression": "gzip"},
    ],
    ids="-".join,
)
def test_other_options_first(
    tmp_path: Path, files: dict[str, bytes], options: dict[str, Any]
) -> None:
    """As one job and as two, with any number of threads."""
    write(tmp_path / "in", files)
    reports = [
        rs.reshard(
            tmp_path / "in",
            tmp_path / "once",
            tiles=True,
            threads=threads,
            overwrite=True,
            **options,
        )
        for threads in (1, 3)
    ]
    rs.reshard(tmp_path / "in", tmp_path / "plain", **options)
    rs.reshard(tmp_path / "plain", tmp_path / "twice", tiles=True)
    one, two = (
        [bytes(record) for record in rs.open(tmp_path / name).records()]
        for name in ("once", "twice")
    )
    assert one == two
    assert reports[0].notices == reports[1].notices


def test_an_interrupted_job_counts_all_images(tmp_path: Path, files: dict[str, bytes]) -> None:
    write(tmp_path / "in", files)
    whole = rs.reshard(tmp_path / "in", tmp_path / "whole", tiles=True, shards=4)

    class StoppedError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done > total // 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        rs.reshard(
            tmp_path / "in", tmp_path / "out", tiles=True, shards=4, threads=1, progress=stop
        )
    resumed = rs.reshard(tmp_path / "in", tmp_path / "out", tiles=True, shards=4)
    assert resumed.reused_count > 0
    assert resumed.notices == whole.notices


def test_command(tmp_path: Path, files: dict[str, bytes]) -> None:
    write(tmp_path / "in", files)
    outcome = CliRunner().invoke(
        app, ["reshard", str(tmp_path / "in"), str(tmp_path / "out"), "--tiles"]
    )
    assert outcome.exit_code == 0
    assert note_text(10, TILED) in outcome.output
    rs.reshard(tmp_path / "in", tmp_path / "same", tiles=True)
    name = "train-00000-of-00001.tfrecord"
    assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "same" / name).read_bytes()
