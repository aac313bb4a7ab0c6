"""`recordsmith.edit_in_place`, `recover` and `history`: what the dataset is afterwards, always."""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.image import encode_mask
from recordsmith.stores import Location

from ... import numbered_examples as numbered
from ...histories import assert_is_whole, run_history
from ...killed_jobs import killed_before
from ...places import contents
from ...raising import raises

CHANGES: dict[str, tuple[dict[str, Any], list[int]]] = {
    "positions": ({"without": [8, 1, 1]}, [0, 2, 3, 4, 5, 6, 7, 9, 10, 11]),
    "condition": ({"where": "id not in (2, 3, 10)"}, [0, 1, 4, 5, 6, 7, 8, 9, 11]),
    "all of a shard": ({"where": "id >= 5"}, [5, 6, 7, 8, 9, 10, 11]),
    "nothing": ({"where": "id >= 0"}, [*range(12)]),
    "no position": ({"without": []}, [*range(12)]),
}


@pytest.fixture
def packed(place: Location) -> Location:
    """12 examples: shards of 5, 4 and 3 records, the last in another split."""
    return numbered.packed(place / "out", {"train": [5, 4], "validation": [3]})


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("name", CHANGES)
def test_only_shards_with_such_records_are_written(
    place: Location, name: str, compression: str
) -> None:
    options, left = CHANGES[name]
    out = numbered.packed(place / "out", {"train": [5, 4], "validation": [3]}, compression)
    before = contents(out)
    report = rs.edit_in_place(out, **options)
    assert numbered.ids_of(rs.open(out)) == left
    after = contents(out)
    bounds = [range(5), range(5, 9), range(9, 12)]
    shards = [file for file in sorted(before) if ".tfrecord" in file and "/" not in file]
    kept = [all(n in left for n in ids) for ids in bounds]
    assert [before[file] == after[file] for file in shards] == kept
    assert (report.removed_count, report.rewritten_count) == (12 - len(left), kept.count(False))
    assert (report.is_new, report.record_count) == (len(left) < 12, len(left))
    assert {file for file in after if not file.endswith(".index")} == {
        file for file in before if not file.endswith(".index")
    }
    assert_is_whole(out)


def test_the_same_positions_are_removed_once(packed: Location) -> None:
    """A command may run twice, as after a kill at its very end."""
    for options, left in (
        ({}, [0, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        ({}, [0, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        ({"again": True}, [0, 5, 6, 7, 8, 9, 10, 11]),
    ):
        report = rs.edit_in_place(packed, without=[1, 2], **options)
        assert numbered.ids_of(rs.open(packed)) == left
        assert report.removed_count == 2
    rs.edit_in_place(packed, without=[0])
    assert not rs.edit_in_place(packed, without=[1, 2]).is_new  # though something came after it
    assert numbered.ids_of(rs.open(packed)) == [5, 6, 7, 8, 9, 10, 11]


def test_records_are_replaced_where_they_are(packed: Location, place: Location) -> None:
    rows = [{**numbered.features(n), "score": n + 0.5} for n in (10, 0, 4)]
    rs.pack(rs.Rows(rows), place / "new")
    before = contents(packed)
    report = rs.edit_in_place(packed, replace=place / "new", on="id")
    assert (report.replaced_count, report.removed_count, report.rewritten_count) == (3, 0, 2)
    dataset = rs.open(packed)
    assert numbered.ids_of(dataset) == [*range(12)]
    scores = dataset.read_columns(["score"])["score"].tolist()
    assert scores == [n + 0.5 if n in (10, 0, 4) else n / 4 for n in range(12)]
    assert (
        contents(packed)["train-00001-of-00002.tfrecord"] == before["train-00001-of-00002.tfrecord"]
    )
    assert_is_whole(packed)
    again = rs.edit_in_place(packed, replace=place / "new", on="id")
    assert (again.is_new, again.replaced_count) == (False, 0)


def test_class_names_of_new_records(place: Location) -> None:
    """They follow those of the dataset; a table that was packed is none any more."""
    for name, labels in (("out", ["ant", "bee", "bee"]), ("new", ["ant", "bee", "cow"])):
        rows = [{"id": n, "name": label} for n, label in enumerate(labels)]
        rs.pack(rs.Rows(rows, label="name"), place / name, shuffle=False)
    rs.reshard(place / "new", place / "last", where="id == 2")
    report = rs.edit_in_place(place / "out", replace=place / "last", on="id")
    assert report.replaced_count == 1
    dataset = rs.open(place / "out")
    assert dataset.class_names == ("ant", "bee", "cow")
    assert (place / "out/labels.txt").read().decode() == "0:ant\n1:bee\n2:cow\n"
    assert rs.verify(place / "out").is_good


def test_documents_that_others_have_written(packed: Location) -> None:
    """Counts that are missing in a schema, and names of classes that the manifest lacks."""
    document = json.loads((packed / "dataset.json").read())
    document["class_names"] = None
    for schema in (document["schema"], *document["schemas"].values()):
        for feature in schema["features"].values():
            del feature["value_bytes"]
    (packed / "dataset.json").put(json.dumps(document).encode())
    (packed / "labels.txt").put(b"0:mine\n")
    rs.edit_in_place(packed, without=[0, 1, 2])
    assert rs.open(packed).schema.features["id"].value_bytes > 0
    assert (packed / "labels.txt").read() == b"0:mine\n"


def test_the_history_says_what_was_done(packed: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = [rs.history(packed).digest]
    rs.edit_in_place(packed, where="id != 7", reason="blurred")
    digests.append(rs.history(packed).digest)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    rs.edit_in_place(packed, without=[0, 1, 2, 8])
    digests.append(rs.history(packed).digest)
    assert len({*digests}) == 3
    _, first, second = rs.history(packed).changes
    assert (first["before"], first["after"], second["after"]) == tuple(digests)
    assert (first["positions"], second["positions"]) == ("7", "0-2,8")
    assert (first["reason"], "time" in first) == ("blurred", False)
    assert second["time"] == "1970-01-02T00:00:00+00:00"
    text = (packed / "dataset.json").read().decode()
    assert "id != 7" not in text  # a condition may name a person


def test_names_of_removed_files_leave_the_manifest(tmp_path: Path) -> None:
    """Also those of files that were left out, as the source of a record may be among them."""
    people = tmp_path / "people"
    people.mkdir()
    image = encode_mask(np.zeros((4, 4), np.uint8))
    for name in ("anna_1", "anna_2", "bert_1"):
        (people / f"{name}.png").write_bytes(image)
    (people / "anna.doc").write_bytes(b"1")
    out = tmp_path / "out"
    rs.pack(rs.detect(people, format="files", class_pattern="_([0-9])").source, out)
    assert b"anna" in (out / "dataset.json").read_bytes()
    rs.edit_in_place(out, where='not image/filename.startswith("anna")', allow_empty=True)
    assert len(rs.open(out)) == 1
    assert all(b"anna" not in file.read_bytes() for file in Path(out).rglob("*") if file.is_file())


def test_what_names_positions_is_refused_afterwards(packed: Location, place: Location) -> None:
    loader = rs.Loader(rs.open(packed), ["id"], batch_size=4, shuffle=True)
    next(iter(loader))
    state = loader.state_dict()
    rs.Loader(rs.open(packed), ["id"], batch_size=4, shuffle=True).load_state_dict(state)
    rs.pack(rs.Rows([{**numbered.features(3), "score": 9.0}]), place / "new")
    rs.edit_in_place(packed, replace=place / "new", on="id")  # the number of records is the same
    with raises(rs.OptionError, option="state"):
        rs.Loader(rs.open(packed), ["id"], batch_size=4, shuffle=True).load_state_dict(state)


def test_findings_of_this_dataset_only(tmp_path: Path) -> None:
    rows = [{"image/encoded": numbered_image(n // 2), "id": n} for n in range(6)]
    rs.pack(rs.Rows(rows), tmp_path / "out")
    rs.lint(tmp_path / "out", findings=tmp_path / "found.jsonl", only=["identical-images"])
    report = rs.edit_in_place(tmp_path / "out", without=f"@{tmp_path / 'found.jsonl'}")
    assert report.removed_count == 3
    left = rs.open(tmp_path / "out")
    assert len({bytes(row["image/encoded"][0]) for row in left}) == len(left) == 3
    again = rs.edit_in_place(tmp_path / "out", without=f"@{tmp_path / 'found.jsonl'}")
    assert (again.is_new, again.record_count) == (False, 3)
    rs.edit_in_place(tmp_path / "out", without=[0])
    rs.reshard(tmp_path / "out", tmp_path / "other")
    with raises(rs.OptionError, option="without"):
        rs.edit_in_place(tmp_path / "other", without=f"@{tmp_path / 'found.jsonl'}")


def numbered_image(number: int) -> bytes:
    from io import BytesIO

    from PIL import Image

    pixels = np.random.default_rng(number).integers(0, 255, (8, 8, 3), np.uint8)
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def test_the_last_record_of_a_split_or_class(place: Location) -> None:
    rows = [{"image/class/label": n // 4, "id": n} for n in range(12)]
    rs.pack(rs.Rows(rows), place / "out", shards=4, shuffle=False)
    with raises(rs.OptionError, option="allow_empty"):
        rs.edit_in_place(place / "out", where="image/class/label != 1")
    assert rs.edit_in_place(place / "out", where="id not in (4, 5, 6)").removed_count == 3
    report = rs.edit_in_place(place / "out", where="image/class/label != 1", allow_empty=True)
    assert (report.removed_count, report.record_count) == (1, 8)
    out = numbered.packed(place / "splits", {"train": [5], "validation": [3]})
    with raises(rs.OptionError, option="allow_empty"):
        rs.edit_in_place(out, where="id < 5")
    assert rs.edit_in_place(out, where="id < 5", allow_empty=True).splits["validation"] == 0
    assert_is_whole(out)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({}, "without"),
        ({"without": [1], "where": "id > 1"}, "without"),
        ({"without": [12]}, "without"),
        ({"without": [-1]}, "without"),
        ({"without": [0], "reason": "x" * 5000}, "reason"),
        ({"without": [1.5]}, "positions"),
        ({"where": "id > 1", "checks": ["identical-images"]}, "checks"),
        ({"without": [1], "checks": ["identical-images"]}, "checks"),
        ({"where": "colour == 1"}, "where"),
        ({"replace": "new"}, "on"),
        ({"on": "id"}, "without"),
        ({"replace": "twice", "on": "id"}, "on"),
        ({"replace": "other", "on": "id"}, "on"),
        ({"replace": "new", "on": "group"}, "on"),
        ({"replace": "kinds", "on": "id"}, "paths"),
    ],
)
def test_commands_that_are_refused(
    packed: Location, place: Location, options: dict[str, Any], option: str
) -> None:
    for name, ids in (("new", [1]), ("twice", [1, 1]), ("other", [1, 50])):
        rs.pack(rs.Rows([{**numbered.features(n), "score": 7.0} for n in ids]), place / name)
    rs.pack(rs.Rows([{**numbered.features(1), "name": 3}]), place / "kinds")
    options = {k: place / v if k == "replace" else v for k, v in options.items()}
    before = contents(packed)
    with raises(rs.OptionError, option=option):
        rs.edit_in_place(packed, **options)
    assert contents(packed) == before


def test_damage_leaves_the_dataset_as_it_is(packed: Location) -> None:
    shard = packed / "train-00000-of-00002.tfrecord"
    data = bytearray(shard.read())
    data[-6] ^= 1
    shard.put(bytes(data))
    before = contents(packed)
    with raises(rs.CorruptDataError, defect=rs.Defect.PAYLOAD_CRC, path=shard, record=4):
        rs.edit_in_place(packed, without=[0])
    assert contents(packed) == before


# ---- killed ------------------------------------------------------------------------------------


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.parametrize("name", ["positions", "all of a shard"])
def test_killed_before_any_change_of_the_file_system(tmp_path: Path, name: str) -> None:
    """The same command, another one, or `recover` goes on; all of them know what was begun."""
    options, left = CHANGES[name]
    packed = numbered.packed(tmp_path / "packed", {"train": [5, 4], "validation": [3]})
    out, done = tmp_path / "out", tmp_path / "done"
    shutil.copytree(packed, done)
    rs.edit_in_place(done, threads=1, **options)
    wanted, old = contents(done), contents(packed)

    def change() -> Any:
        return rs.edit_in_place(out, threads=1, **options)

    found = {"old": 0, "new": 0, "begun": 0}
    for step in range(1, 1000):
        shutil.copytree(packed, out)
        if not killed_before(step, change):
            break
        if (out / "dataset.json").exists():
            ids = numbered.ids_of(rs.open(out))
            assert ids in ([*range(12)], left)
            found["old" if len(ids) == 12 else "new"] += 1
        else:
            with raises(rs.CorruptDataError, defect="unfinished-dataset", path=out):
                rs.open(out)
            with raises(rs.OptionError, match="recordsmith recover"):
                rs.edit_in_place(out, without=[0])
            found["begun"] += 1
        if step % 2:
            is_new = numbered.ids_of(rs.open(done)) if (out / "dataset.json").exists() else None
            if is_new is None or len(numbered.ids_of(rs.open(out))) == 12:
                change()
            rs.recover(out)
            assert contents(out) == wanted
        else:
            report = rs.recover(out)
            assert contents(out) in (old, wanted)
            assert report.record_count == len(rs.open(out))
        shutil.rmtree(out)
    assert min(found.values()) > 0, found
    assert step > 15


@pytest.mark.posix
def test_shards_of_a_killed_job_do_not_replace_those_of_a_change(tmp_path: Path) -> None:
    """A killed job that overwrites leaves shards that wait, with names that `append` gives."""
    packed = numbered.packed(tmp_path / "out", {"train": [5, 4]})
    more, other = numbered.packed(tmp_path / "more", {"train": [3]}), tmp_path / "other"
    numbered.packed(other, {"train": [100]})
    for shards, change, count in (
        (3, lambda: rs.append(more, packed), 12),
        (3, lambda: rs.edit_in_place(packed, without=[0]), 11),
    ):
        _die_before(
            "publish_dataset",
            lambda n=shards: rs.reshard(other, packed, shards=n, overwrite=True),
        )  # type: ignore[misc]
        change()
        assert len(rs.open(packed)) == count
        assert rs.verify(packed).is_good


def _die_before(step: str, job: Callable[[], object]) -> None:
    """Run a job in a process that dies before a step of publishing."""
    child = os.fork()
    if child == 0:
        module = importlib.import_module("recordsmith.writing.building.publishing")
        setattr(module, step, lambda *_, **__: os._exit(9))
        job()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.posix
@pytest.mark.parametrize("lost", ["partial", "name", "renamed"])
def test_what_is_lost_is_not_recovered(tmp_path: Path, lost: str) -> None:
    """A waiting shard that is gone, or a note that names another file: nothing is changed."""
    packed = numbered.packed(tmp_path / "out", {"train": [5, 4]})
    note, waiting = packed / ".recordsmith/begun.json", packed / ".recordsmith"
    _die_before("move_new_files", lambda: rs.edit_in_place(packed, without=[1, 6], threads=1))
    if lost == "partial":
        next(waiting.glob("train-*.tfrecord.partial")).unlink()
    else:
        (packed / "thesis.docx").write_bytes(b"mine")
        document = json.loads(note.read_text())
        note.write_text(json.dumps({**document, "renamed": {"train-x.tfrecord": "thesis.docx"}}))
    if lost == "name":
        manifest = waiting / "dataset.json.partial"
        text = manifest.read_text().replace("train-00000-of-00002.tfrecord", "thesis.docx")
        manifest.write_text(text)
    (waiting / "lock").unlink()
    before = contents(packed)
    with raises(rs.CorruptDataError, defect="unfinished-dataset"):
        rs.recover(packed)
    assert contents(packed) == before


def test_nothing_to_recover(packed: Location, place: Location) -> None:
    before = contents(packed)
    assert rs.recover(packed).outcome == "nothing"
    assert contents(packed) == before
    with raises(rs.OptionError, option="path"):
        rs.recover(place / "none")


@pytest.mark.parametrize("seed", range(20))
def test_random_histories(tmp_path: Path, seed: int) -> None:
    """Against a model in plain Python; at the end, TensorFlow reads the shards."""
    run_history(tmp_path, seed, 4, every=4)
