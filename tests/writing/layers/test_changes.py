"""Changes of datasets with layers, against a model in plain Python and the bytes of the files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import read_manifest
from recordsmith.stores import Location, as_folder
from recordsmith.writing.layers.adding import remove_layer

from ...histories import assert_is_whole
from ...layered import add, layer_files, listed_files, payloads, rows_of
from ...places import contents, flip
from ...raising import raises
from ...reference import crc32c, frame
from ...repeating_engine import RepeatingEngine

pytest.importorskip("pyarrow")

Model = dict[str, list[dict[str, Any]]]


def row(number: int) -> dict[str, Any]:
    """A record of the shards."""
    return {"id": [number], "label": [number % 3], "v": [*range(number % 4)]}


def written(folder: Location, ids: Any, split: str = "train", **options: Any) -> Location:
    """A dataset of these records in order."""
    rows = [{**row(n), "id": n, "label": n % 3} for n in ids]
    rs.pack(
        rs.Rows(rows, kinds={"v": "int64"}), folder, shuffle=False, splits={split: 1.0}, **options
    )
    return folder


def layered(folder: Location, compression: Any = "none") -> tuple[Location, Model]:
    """Shards of 4, 4, 4 and 3 records; a layer `emb`, and one of other labels that hides them."""
    parts = [
        written(folder / "train", range(12), shards=3),
        written(folder / "test", range(100, 103), "test", shards=1),
    ]
    out = folder / "out"
    rs.reshard(parts, out, shards={"train": 3, "test": 1}, compression=compression)
    model = {"train": [row(n) for n in range(12)], "test": [row(n) for n in range(100, 103)]}
    rows = [record["id"][0] for records in model.values() for record in records]
    add(out, "emb", [{"id": n, "emb": [n / 2, 1.0]} for n in rows])
    fixed = [n for n in rows if n % 5]
    add(out, "fixed", [{"id": n, "label": n + 50} for n in fixed], allow_missing=True)
    for record in (record for records in model.values() for record in records):
        number = record["id"][0]
        record["emb"] = [number / 2, 1.0]
        record["label"] = [number + 50 if number % 5 else number % 3]
    return out, model


def only(model: Model, keeps: Callable[[int], bool]) -> Model:
    return {split: [r for r in rows if keeps(r["id"][0])] for split, rows in model.items()}


def assert_is(out: Location, model: Model) -> None:
    """The files have what the model has, the manifest describes it, and nothing else is there."""
    expected = {split: [dict(sorted(r.items())) for r in rows] for split, rows in model.items()}
    assert rows_of(out) == expected
    found = {split: [*part] for split, part in rs.open(out).splits.items()}
    for split, rows in expected.items():
        assert [{k: list(v) for k, v in sorted(r.items())} for r in found[split]] == rows
    assert layer_files(out) == listed_files(out)
    assert_is_whole(out)


IN_PLACE: dict[str, tuple[dict[str, Any], Callable[[int], bool]]] = {
    "positions": ({"without": [1, 5, 6, 13]}, lambda n: n not in (1, 5, 6, 101)),
    "condition": ({"where": "label < 3 or label > 56"}, lambda n: n % 5 == 0 or n > 6),
    "all of a shard": ({"where": "id >= 8"}, lambda n: n >= 8),
    "all of two": ({"where": "emb >= 4"}, lambda n: n >= 8),
    "nothing": ({"without": []}, lambda _: True),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_removal_in_place(place: Location, name: str) -> None:
    options, keeps = IN_PLACE[name]
    out, model = layered(place, "gzip" if name == "condition" else "none")
    before = {file for file in contents(out) if "layers/" in file}
    rs.edit_in_place(out, **options, allow_empty=True)
    assert_is(out, only(model, keeps))
    kept = {file for file in contents(out) if "layers/" in file} & before
    assert bool(kept), "layers of other shards stay"
    remove_layer(out, "fixed")
    model = only(model, keeps)
    for record in (record for rows in model.values() for record in rows):
        record["label"] = [record["id"][0] % 3]
    assert_is(out, model)


def test_replaced_records_count_as_they_are(place: Location) -> None:
    """Also without a feature of a layer in some, and after the layer is removed again."""
    out, model = layered(place)
    new = [{"id": n, "emb": [9.0, 9.0], "label": 200 + n, "v": [7]} for n in (3, 10)]
    rs.pack(rs.Rows(new, kinds={"v": "int64"}), place / "new")
    report = rs.edit_in_place(out, replace=place / "new", on="id")
    assert (report.replaced_count, report.rewritten_count) == (2, 2)
    for record in new:
        number = int(str(record["id"]))
        model["train"][number] = {k: v if isinstance(v, list) else [v] for k, v in record.items()}
    assert_is(out, model)
    assert not rs.edit_in_place(out, replace=place / "new", on="id").is_new
    rest = [r for rows in model.values() for r in rows if r["id"][0] not in (3, 10)]
    remove_layer(out, "emb")  # the new records have the features of layers themselves
    for record in rest:
        del record["emb"]
    assert_is(out, model)
    remove_layer(out, "fixed")
    for record in rest:
        record["label"] = [record["id"][0] % 3]
    assert_is(out, model)


def test_identified_by_a_feature_of_a_layer(place: Location) -> None:
    out, model = layered(place)
    new = [{"id": 77, "emb": [9.0, 9.0], "label": 53, "v": [7]}]
    rs.pack(rs.Rows(new, kinds={"v": "int64"}), place / "new")
    rs.edit_in_place(out, replace=place / "new", on="label")
    model["train"][3] = {"id": [77], "emb": [9.0, 9.0], "label": [53], "v": [7]}
    assert_is(out, model)


def test_the_last_record_of_a_class_that_a_layer_has(place: Location) -> None:
    key = "image/class/label"
    rs.pack(rs.Rows([{"id": n, key: 0} for n in range(6)]), place / "out", shards=2, shuffle=False)
    add(place / "out", "classes", [{"id": n, key: n // 5} for n in range(6)])
    with raises(rs.OptionError, option="allow_empty"):
        rs.edit_in_place(place / "out", without=[5])
    assert rs.edit_in_place(place / "out", without=[4]).removed_count == 1


def test_records_with_equal_bytes_have_layers_of_their_own(place: Location) -> None:
    """A layer belongs to the bytes of a shard: what would give two of them one is refused."""
    rows = [{"id": n % 2} for n in range(4)]
    rs.pack(rs.Rows([{"id": 0}, {"id": 1}, {"id": 0}, {"id": 2}]), place / "out", shards=2,
            shuffle=False)  # fmt: skip
    add(place / "out", "x", [{"n": n, "x": n} for n in range(4)], on="position=n")
    before = contents(place / "out")
    with raises(rs.OptionError, match="same bytes"):
        rs.edit_in_place(place / "out", where="x in (0, 2)")
    assert contents(place / "out") == before
    rs.edit_in_place(place / "out", where="x == 9", allow_empty=True)  # nor have they any
    assert rows_of(place / "out") == {"train": []}
    rs.pack(rs.Rows(rows), place / "twice", shards=2, shuffle=False)
    with raises(rs.OptionError, match="same bytes"):
        add(place / "twice", "x", [{"n": n, "x": n} for n in range(4)], on="position=n")


# ---- append ------------------------------------------------------------------------------------


def test_append_leaves_layers_with_their_shards(place: Location) -> None:
    out, model = layered(place)
    more = written(place / "more", range(20, 23), shards=1)
    with raises(rs.OptionError, option="paths", value="emb", match="layer 'emb'"):
        rs.append(more, out)
    assert rs.append(more, out, allow_missing=True).renamed_count == 3
    model["train"] += [row(n) for n in range(20, 23)]
    assert_is(out, model)
    rs.edit_in_place(out, without=[0, 13])
    model["train"] = [r for r in model["train"] if r["id"][0] not in (0, 21)]
    assert_is(out, model)
    ids = [r["id"][0] for rows in model.values() for r in rows]
    add(out, "emb", [{"id": n, "emb": [1.0, n / 4]} for n in ids], overwrite=True)
    for record in (r for rows in model.values() for r in rows):
        record["emb"] = [1.0, record["id"][0] / 4]
    assert_is(out, model)


def test_appended_records_keep_features_of_their_own(place: Location) -> None:
    """Those of layers of the other dataset, and those that a layer here has as well."""
    out, model = layered(place)
    more = written(place / "more", range(20, 23), shards=1)
    add(more, "theirs", [{"id": n, "emb": [n / 8, 0.0], "label": 9} for n in range(20, 23)])
    rs.append(more, out)
    model["train"] += [{**row(n), "emb": [n / 8, 0.0], "label": [9]} for n in range(20, 23)]
    assert_is(out, model)
    remove_layer(out, "emb")
    for record in (r for rows in model.values() for r in rows):
        if not 20 <= record["id"][0] < 23:
            del record["emb"]
    assert_is(out, model)


def test_appending_a_shard_that_has_a_layer(place: Location) -> None:
    out, _ = layered(place)
    before = contents(out)
    with raises(rs.OptionError, match="same bytes"):
        rs.append(place / "train/train-00000-of-00003.tfrecord", out, allow_missing=True)
    assert contents(out) == before


# ---- other jobs --------------------------------------------------------------------------------

JOBS: dict[str, Callable[[Location, Location], Any]] = {
    "reshard": lambda out, new: rs.reshard(out, new, shards=2),
    "edit": lambda out, new: rs.edit(out, new, rename={"v": "w"}),
    "pack": lambda out, new: rs.pack(rs.Shards(out), new, shuffle=False),
    "overwrite": lambda out, new: (
        rs.reshard(out, new, shards=1),
        add(new, "more", [{"id": n, "x": 1} for n in (*range(12), *range(100, 103))]),
        rs.reshard(out, new, overwrite=True),
    ),
    "packed over": lambda out, new: (
        rs.reshard(out, new, shards=1),
        add(new, "more", [{"id": n, "x": 1} for n in (*range(12), *range(100, 103))]),
        rs.pack(rs.Shards(out), new, shuffle=False, overwrite=True),
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_layers_become_part_of_the_records(place: Location, name: str) -> None:
    out, model = layered(place)
    JOBS[name](out, place / "new")
    if name == "edit":
        for record in (r for rows in model.values() for r in rows):
            record["w"] = record.pop("v")
    assert_is(place / "new", model)
    assert not any("layers" in file for file in contents(place / "new"))
    manifest = read_manifest(place / "new")
    assert manifest is not None
    assert not manifest.layers


def test_salvage_leaves_layers_out_and_says_so(place: Location) -> None:
    out, model = layered(place)
    report = rs.salvage(out, place / "new")
    assert [name for name in ("emb", "fixed") if repr(name) not in " ".join(report.notices)] == []
    for record in (r for rows in model.values() for r in rows):
        del record["emb"]
        record["label"] = [record["id"][0] % 3]
    assert_is(place / "new", model)
    assert json.loads((place / "new/dataset.json").read()).get("layers") is None


# ---- verify and index --------------------------------------------------------------------------


def _first(out: Location, name: str) -> Location:
    files = sorted(file for file in layer_files(out) if f"layers/{name}/" in file)
    return out / files[0]


def _damage(file: Location) -> None:
    flip(file, 20)


def _cut(file: Location) -> None:
    file.put(file.read()[:-3])


def _replace(file: Location) -> None:
    """By another file of the layer, which is intact."""
    others = [one for one in file.parent.list() if one.name.endswith(".tfrecord")]
    file.put(next(data for one in others if (data := one.read()) != file.read()))


def _no_example(file: Location) -> None:
    """Records that are no Examples, listed as if they were."""
    data = b"".join(frame(b"\xff\xff") for _ in payloads(file.read()))
    manifest = file.parent.parent.parent / "dataset.json"
    document = json.loads(manifest.read())
    for layer in document["layers"]:
        for shard in layer["shards"]:
            if shard["file"] == file.name and layer["name"] == file.parent.name:
                shard |= {"size_bytes": len(data), "crc32c": f"{crc32c(data):08x}"}
    manifest.put(json.dumps(document).encode())
    file.put(data)


FAULTS: dict[str, tuple[Callable[[Location], Any], set[str]]] = {
    "missing": (Location.delete, {"missing-shard"}),
    "damaged": (_damage, {"payload-crc-mismatch"}),
    "cut": (_cut, {"truncated-payload", "shard-size-mismatch"}),
    "replaced": (_replace, {"swapped-shard"}),
    "no Example": (_no_example, {"not-an-example"}),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("deep", [False, True])
def test_verify_names_the_file_of_a_layer(place: Location, name: str, deep: bool) -> None:
    out, _ = layered(place)
    whole = rs.verify(out, deep=deep)
    assert (whole.record_count, whole.shard_count, len(whole.shards)) == (15, 4, 4)
    assert whole.size_bytes == sum(
        len(data) for file, data in contents(out).items() if file.endswith(".tfrecord")
    )
    fault, defects = FAULTS[name]
    file = _first(out, "fixed")
    fault(file)
    report = rs.verify(out, deep=deep)
    if name == "no Example" and not deep:
        assert report.is_good
        return
    assert {str(error.path) for error in report.defects} == {str(file)}
    assert {str(error.defect) for error in report.defects} <= defects
    assert report.record_count == 15


def test_verify_on_processes_and_to_a_file_of_findings(tmp_path: Path) -> None:
    out, _ = layered(as_folder(tmp_path))
    assert rs.verify(out, deep=True, engine=RepeatingEngine()).is_good
    _damage(_first(out, "emb"))
    report = rs.verify(out, engine=RepeatingEngine(), findings=tmp_path / "found.jsonl")
    assert [error.path for error in report.defects] == [str(_first(out, "emb"))]
    assert _first(out, "emb").name in (tmp_path / "found.jsonl").read_text()


def test_files_that_no_layer_lists_are_noticed(place: Location) -> None:
    out, _ = layered(place)
    files = [out / "layers/mine.txt", out / "layers/emb/12345678-1-12345678.tfrecord"]
    for file in files:
        file.put(b"1")
    report = rs.verify(out)
    assert report.is_good
    assert {error.path for error in report.notices} == {*map(str, files)}
    rs.edit_in_place(out, without=[0])
    assert [file.exists() for file in files] == [True, False]


def test_indexes_of_layers(place: Location) -> None:
    out, _ = layered(place)
    kept = [file for file in out.list() if file.name.endswith((".index", ".columns"))]
    assert len([file for file in kept if file.name.endswith(".index")]) == 3 * 4  # as written
    for file in kept:
        file.delete()
    report = rs.index(out)
    assert (report.record_count, report.new_count) == (15, 4)
    for name in (*layer_files(out), "train-00000-of-00003.tfrecord"):
        shard = out / name
        assert (shard.parent / f".recordsmith/{shard.name}.index").exists()
    assert rs.index(out).new_count == 0
    with raises(rs.OptionError, option="format"):
        rs.index(out, format="dali")


# ---- manifests of others -----------------------------------------------------------------------


def _layer(document: dict[str, Any]) -> dict[str, Any]:
    return document["layers"][0]  # type: ignore[no-any-return]


HOSTILE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda d: _layer(d).update(name=".."),
    "name of a path": lambda d: _layer(d).update(name="../../etc"),
    "hidden folder": lambda d: _layer(d).update(name=".recordsmith"),
    "no text": lambda d: _layer(d).update(name=7),
    "names": lambda d: d["layers"].append(_layer(d)),
    "names but for case": lambda d: d["layers"].append({**_layer(d), "name": "EMB"}),
    "file": lambda d: _layer(d)["shards"][0].update(file="../train-00000-of-00003.tfrecord"),
    "count": lambda d: _layer(d)["shards"][0].update(records=10**9),
    "shard": lambda d: _layer(d)["shards"][0].update(of_crc32c="00000000"),
    "shard twice": lambda d: _layer(d)["shards"].append(_layer(d)["shards"][0]),
    "file twice": lambda d: _layer(d)["shards"][0].update(file=_layer(d)["shards"][1]["file"]),
    "features": lambda d: _layer(d).update(features=[7]),
    "feature twice": lambda d: _layer(d).update(features=["emb", "emb"]),
    "no list": lambda d: _layer(d).update(features="emb"),
    "hidden": lambda d: _layer(d).update(hidden=["other"]),
    "layers": lambda d: d.update(layers={"emb": 1}),
    "null": lambda d: d.update(layers=[None]),
    "many": lambda d: d.update(layers=[{"name": f"{n}", "features": [], "hidden": [], "shards": []}
                                       for n in range(10**6 // 10)]),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_manifests_that_are_refused(tmp_path: Path, name: str) -> None:
    out, _ = layered(as_folder(tmp_path))
    manifest = tmp_path / "out/dataset.json"
    document = json.loads(manifest.read_text())
    HOSTILE[name](document)
    manifest.write_text(json.dumps(document))
    before = contents(out)
    start = time.monotonic()
    with raises(rs.CorruptDataError, defect="broken-manifest"):
        rs.open(out)
    report = rs.verify(out)
    assert time.monotonic() - start < 10
    assert [str(error.defect) for error in report.defects] == ["broken-manifest"]
    assert contents(out) == before


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "a\\b", "a:b", "a\0", ".recordsmith", "x" * 300, "EMB", "a\ud800"]
)
def test_names_of_layers(tmp_path: Path, name: str) -> None:
    """A layer has a folder of this name, whatever the file system."""
    out, _ = layered(as_folder(tmp_path))
    before = contents(out)
    rows = [{"id": n, "x": 1} for n in (*range(12), *range(100, 103))]
    with raises(rs.OptionError, option="name"):
        add(out, name, rows)
    assert contents(out) == before
    add(out, "dataset.json", rows)
    assert rs.verify(out).is_good


def test_sequence_examples(tmp_path: Path) -> None:
    """A layer has features of their context."""
    folder = as_folder(tmp_path)

    def write(name: str, ids: Any, length: int) -> Location:
        (folder / name).make_folder()
        with rs.ShardWriter(folder / name / "train-00000-of-00001.tfrecord") as writer:
            for n in ids:
                context = {"id": n, "label": n % 2, "x": n}
                lists = {"steps": [[n]] * length}
                writer.write(rs.encode_sequence_example(context, lists))
        return folder / name

    out = folder / "out"
    rs.reshard(write("in", range(6), 2), out, shards=2)
    add(out, "fixed", [{"id": n, "label": 9, "y": n} for n in range(6)])
    rs.reshard(write("new", [4], 3), folder / "some", shards=1)
    add(folder / "some", "y", [{"id": 4, "y": 44}])
    rs.edit_in_place(out, without=[1])
    rs.edit_in_place(out, replace=folder / "some", on="id")
    assert_is_whole(out)
    rows = [rs.decode_sequence_example(record) for record in rs.open(out).records()]
    found = [({k: v.tolist() for k, v in c.items()}, len(lists["steps"])) for c, lists in rows]
    assert found == [
        ({"id": [n], "label": [0 if n == 4 else 9], "x": [n], "y": [44 if n == 4 else n]},
         3 if n == 4 else 2)
        for n in (0, 2, 3, 4, 5)
    ]  # fmt: skip
