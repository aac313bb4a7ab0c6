"""Pack: from pictures to a complete dataset, or to nothing, whatever happens on the way."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import LABELS_NAME, MANIFEST_NAME, read_manifest
from recordsmith.sources import Listing, Note, Sample, unheard

SPLITS = {"train": 0.6, "validation": 0.4}
OPTIONS: dict[str, Any] = {"splits": SPLITS, "shards": 2, "seed": 3}


@pytest.fixture(scope="module")
def flowers(tmp_path_factory: pytest.TempPathFactory, pictures: ModuleType) -> Path:
    """Three classes, 21 small pictures. Not to be changed."""
    return pictures.make_folder(  # type: ignore[no-any-return]
        tmp_path_factory.mktemp("flowers") / "flowers", {"daisy": 10, "rose": 6, "tulip": 5}
    )


def _files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if not path.is_dir()
    }


def _visible(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if not name.startswith(".")}


def _is_done_or_nothing(folder: Path) -> bool:
    """Whether all that lies there are complete shards without a name, and what belongs to them."""
    names = set(_files(folder))
    done = {name.removesuffix(".done") for name in names if name.endswith(".done")}
    return names <= {
        f"{file}{suffix}" for file in done for suffix in (".done", ".partial", ".index.partial")
    }


def _times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def undisturbed(flowers: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a job that nothing happened to."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    rs.pack(rs.ImageFolder(flowers), out, **OPTIONS)
    return _files(out)


# -- what comes out ------------------------------------------------------------------------------


def test_every_picture_is_in_the_dataset_once(flowers: Path, tmp_path: Path) -> None:
    report = rs.pack(rs.ImageFolder(flowers), tmp_path / "out", **OPTIONS)
    dataset: Any = rs.open(tmp_path / "out")
    found = {example["image/filename"][0].decode(): example for example in dataset}
    paths = sorted(path for path in flowers.rglob("*.*"))
    assert len(dataset) == len(found) == len(paths) == 21
    for path in paths:
        example = found[path.relative_to(flowers).as_posix()]
        label = dataset.class_names.index(path.parent.name)
        assert example["image/encoded"] == [path.read_bytes()]
        assert example["image/class/text"] == [path.parent.name.encode()]
        assert example["image/class/label"].tolist() == [label]
    assert (report.sample_count, report.class_count, report.shard_count) == (21, 3, 4)
    assert report.splits == {"train": 13, "validation": 8}
    assert report.bytes_in == sum(path.stat().st_size for path in paths)
    assert report.bytes_out == sum(
        path.stat().st_size for path in (tmp_path / "out").glob("*.tfrecord")
    )
    assert (report.is_new, report.skipped, report.notices) == (True, [], ())
    assert json.loads(json.dumps(report.to_json()))["samples"] == 21


def test_files_of_a_dataset(undisturbed: dict[str, bytes]) -> None:
    visible = _visible(undisturbed).keys()
    assert visible == {
        *(f"{split}-{n:05d}-of-00002.tfrecord" for split in SPLITS for n in range(2)),
        "dataset.json",
        "labels.txt",
    }
    assert undisturbed[LABELS_NAME] == b"0:daisy\n1:rose\n2:tulip\n"
    assert all(name.endswith(".index") for name in undisturbed.keys() - visible)


def test_manifest_says_what_is_there(flowers: Path, tmp_path: Path) -> None:
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    assert list(manifest.splits) == list(SPLITS)
    assert manifest.class_names == ("daisy", "rose", "tulip")
    assert manifest.made_from["options"]["seed"] == 3
    assert str(tmp_path) not in (tmp_path / MANIFEST_NAME).read_text()  # nothing of this machine
    assert str(flowers) not in (tmp_path / MANIFEST_NAME).read_text()
    for shards in manifest.splits.values():
        for shard in shards:
            assert (tmp_path / shard.file).stat().st_size == shard.size_bytes
            assert len(rs.open(tmp_path / shard.file)) == shard.record_count
    assert manifest.schema == rs.open(tmp_path / "*.tfrecord").schema
    assert rs.verify(tmp_path).is_good


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_bytes_do_not_depend_on_threads(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes], threads: int
) -> None:
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS, threads=threads)
    assert _files(tmp_path) == undisturbed


def test_bytes_of_encoded_pictures_do_not_depend_on_threads(flowers: Path, tmp_path: Path) -> None:
    stored = {"pictures": rs.PictureOptions(format="jpeg", shorter_side=6), "shards": 2}
    for threads in (1, 2, 7):
        rs.pack(rs.ImageFolder(flowers), tmp_path / str(threads), threads=threads, **stored)
    assert _files(tmp_path / "1") == _files(tmp_path / "2") == _files(tmp_path / "7")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), rs.SourceError("no"), RuntimeError("no")])
def test_stopped_while_pictures_are_encoded_ahead(
    flowers: Path, tmp_path: Path, error: BaseException
) -> None:
    def stop() -> None:
        raise error

    options = {**OPTIONS, "pictures": rs.PictureOptions(format="png")}
    with pytest.raises(type(error)):
        rs.pack(Meddling(flowers, 9, stop), tmp_path, **options, threads=4)
    assert _is_done_or_nothing(tmp_path)
    rs.pack(rs.ImageFolder(flowers), tmp_path, **options)
    assert rs.verify(tmp_path).record_count == 21


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed(flowers: Path, tmp_path: Path, compression: str) -> None:
    folders = [tmp_path / name for name in "ab"]
    for threads, folder in enumerate(folders, 1):
        rs.pack(
            rs.ImageFolder(flowers), folder, **OPTIONS, compression=compression, threads=threads
        )
    assert _files(folders[0]) == _files(folders[1])
    rs.pack(rs.ImageFolder(flowers), tmp_path / "plain", **OPTIONS)
    plain = rs.open(tmp_path / "plain")
    assert list(rs.open(folders[0]).records()) == list(plain.records())
    assert rs.inspect(folders[0]).compression == compression
    assert rs.verify(folders[0]).is_good


def test_seed_decides_the_order(flowers: Path, tmp_path: Path) -> None:
    orders = []
    for seed in (0, 1):
        rs.pack(rs.ImageFolder(flowers), tmp_path / str(seed), seed=seed)
        orders.append(list(rs.open(tmp_path / str(seed)).records()))
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_stratified_splits_have_the_mix_of_the_whole(flowers: Path, tmp_path: Path) -> None:
    rs.pack(rs.ImageFolder(flowers), tmp_path, splits={"a": 0.5, "b": 0.5}, stratify=True)
    for split in "ab":
        labels = rs.open(tmp_path, split=split).read_columns(["image/class/label"])
        counts = Counter(np.asarray(labels["image/class/label"]).tolist())
        for label, count in enumerate((10, 6, 5)):
            assert abs(counts[label] - count / 2) < 1


def test_shards_by_number_and_by_size(flowers: Path, tmp_path: Path) -> None:
    report = rs.pack(
        rs.ImageFolder(flowers), tmp_path / "a", splits=SPLITS, shards={"train": 3, "validation": 1}
    )
    assert report.shard_count == 4
    assert len(list((tmp_path / "a").glob("train-*-of-00003.tfrecord"))) == 3
    report = rs.pack(rs.ImageFolder(flowers), tmp_path / "b", shard_size_bytes=report.bytes_in // 5)
    assert 4 <= report.shard_count <= 6


def test_odd_pictures_keep_their_bytes(tmp_path: Path, pictures: ModuleType) -> None:
    odd = pictures.odd()
    (tmp_path / "in" / "a").mkdir(parents=True)
    for name, data in odd.items():
        (tmp_path / "in" / "a" / name).write_bytes(data)
    rs.pack(rs.ImageFolder(tmp_path / "in"), tmp_path / "out")
    dataset: Any = rs.open(tmp_path / "out")
    assert len(dataset) == len(odd)
    for example in dataset:
        data = odd[example["image/filename"][0].decode().partition("/")[2]]
        kind, height, width = pictures.size_by_pillow(data)
        assert example["image/encoded"] == [data]
        assert example["image/format"] == [kind.encode()]
        assert example["image/height"].tolist() == [height]
        assert example["image/width"].tolist() == [width]


def test_progress_counts_samples(flowers: Path, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    rs.pack(
        rs.ImageFolder(flowers),
        tmp_path,
        **OPTIONS,
        threads=4,
        progress=lambda *call: calls.append(call),
    )
    assert calls == [(done, 21) for done in range(1, 22)]


def test_paths_of_any_kind(flowers: Path, tmp_path: Path) -> None:
    out = os.path.join(str(tmp_path), "a b", os.fsdecode("é".encode() + b"\xff"))
    report = rs.pack(rs.ImageFolder(str(flowers)), out)
    assert report.folder == Path(out)
    assert len(rs.open(out)) == 21


# -- pictures that cannot be read ----------------------------------------------------------------


@pytest.fixture
def spoiled(tmp_path: Path, pictures: ModuleType) -> tuple[Path, list[str]]:
    """A folder in which some pictures cannot be read, and which."""
    root = pictures.make_folder(tmp_path / "in", {"a": 8, "b": 8})
    bad = []
    for number, kind in enumerate(("JPEG", "PNG", "WEBP")):
        whole = pictures.encode(pictures.noise(20, 16), kind)
        for share in (0.1, 0.5, 0.9):
            path = root / "ab"[number % 2] / f"cut {kind} {share}.jpg"
            path.write_bytes(whole[: int(len(whole) * share)])
            bad.append(str(path))
    (root / "a" / "words.jpg").write_text("words, no picture")
    (root / "b" / "empty.png").touch()
    bad += [str(root / "a" / "words.jpg"), str(root / "b" / "empty.png")]
    (root / "a" / "README.txt").write_text("words")
    return root, sorted(bad)


def test_stop_lists_every_bad_picture_and_leaves_nothing(
    spoiled: tuple[Path, list[str]], tmp_path: Path
) -> None:
    root, bad = spoiled
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(rs.ImageFolder(root), tmp_path / "out", shards=3)
    assert len(caught.value.problems) == len(bad)
    for path, problem in zip(bad, caught.value.problems, strict=True):  # in the listing's order
        assert problem.startswith(f"{path}: unreadable-image: ")
        assert problem in str(caught.value)
    assert f"{len(bad)} of {len(bad) + 16} samples" in str(caught.value)
    assert _files(tmp_path / "out") == {}


@pytest.mark.parametrize("threads", [1, 3])
def test_skip_reports_them_and_packs_the_rest(
    spoiled: tuple[Path, list[str]], tmp_path: Path, threads: int
) -> None:
    root, bad = spoiled
    out = tmp_path / "out"
    for is_new in (True, False):
        report = rs.pack(rs.ImageFolder(root), out, shards=3, on_error="skip", threads=threads)
        assert report.is_new is is_new
        assert [problem.partition(": ")[0] for problem in report.skipped] == bad
        assert (report.sample_count, report.shard_count) == (16, 3)
        assert len(report.notices) == 1
        assert report.notices[0].endswith("README.txt")
    assert len(rs.open(out)) == 16
    assert rs.verify(out).is_good
    manifest = read_manifest(out)
    assert manifest is not None
    assert len(manifest.made_from["skipped"]) == len(bad)


def test_picture_that_vanishes_meanwhile_is_like_one_that_cannot_be_read(
    tmp_path: Path, pictures: ModuleType
) -> None:
    class Vanishing(rs.ImageFolder):
        def list_samples(self) -> Listing:
            listing = super().list_samples()
            (self.root / listing.samples[1].name).unlink(missing_ok=True)
            return listing

    root = pictures.make_folder(tmp_path / "in", {"a": 4})
    report = rs.pack(Vanishing(root), tmp_path / "out", on_error="skip")
    assert report.sample_count == 3
    assert "a/001.jpg" in report.skipped[0]


def test_unknown_on_error_is_refused(flowers: Path, tmp_path: Path) -> None:
    with pytest.raises(rs.OptionError, match="'ignore'; expected 'stop' or 'skip'"):
        rs.pack(rs.ImageFolder(flowers), tmp_path / "out", on_error="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [-1, -8])
def test_number_of_threads_that_makes_no_sense(flowers: Path, tmp_path: Path, threads: int) -> None:
    with pytest.raises(rs.OptionError, match="threads"):
        rs.pack(rs.ImageFolder(flowers), tmp_path / "out", threads=threads)


def test_source_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(rs.SourceError):
        rs.pack(rs.ImageFolder(tmp_path / "in"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


# -- a dataset that is there already -------------------------------------------------------------


def test_same_job_again_has_nothing_to_do(flowers: Path, tmp_path: Path) -> None:
    first = rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    before = _times(tmp_path)
    again = rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS, threads=1)
    assert _times(tmp_path) == before
    assert (first.is_new, again.is_new) == (True, False)
    assert first.to_json() | {"is_new": False} == again.to_json()


@pytest.mark.parametrize("harm", ["missing", "cut"])
def test_same_job_again_does_not_call_a_damaged_dataset_finished(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes], harm: str
) -> None:
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    path = sorted(tmp_path.glob("*.tfrecord"))[1]
    path.unlink() if harm == "missing" else os.truncate(path, 10)
    try:
        report = rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    except (rs.CorruptDataError, rs.OptionError):
        return  # refused in words is as good as packed again
    assert report.is_new
    assert _files(tmp_path) == undisturbed


def test_picture_changed_in_place_is_packed_when_told_to_overwrite(
    tmp_path: Path, pictures: ModuleType
) -> None:
    """The same name and size, other pixels."""
    root = pictures.make_folder(tmp_path / "in", {"a": 1})
    (path,) = root.rglob("*.*")
    bmps = [pictures.encode(pictures.noise(4, 4, seed=seed), "BMP") for seed in (1, 2)]
    for bmp in bmps:
        path.write_bytes(bmp)
        rs.pack(rs.ImageFolder(root), tmp_path / "out", overwrite=True)
        example: Any = rs.open(tmp_path / "out")[0]
        assert example["image/encoded"] == [bmp]


@pytest.mark.parametrize(
    "other", [{"seed": 4}, {"shards": 1}, {"splits": {"a": 0.5, "b": 0.5}}, {"compression": "gzip"}]
)
def test_other_dataset_is_refused_and_unchanged(
    flowers: Path, tmp_path: Path, other: dict[str, Any]
) -> None:
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    before = _times(tmp_path)
    with pytest.raises(rs.OptionError, match=r"another dataset of 21 records.*overwrite"):
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS | other)
    assert _times(tmp_path) == before


def test_overwrite_replaces_and_removes_the_old_shards(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    (tmp_path / "precious.txt").write_text("words")
    rs.pack(rs.ImageFolder(flowers), tmp_path, shards=5, splits={"x": 0.5, "train": 0.5})
    report = rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS, overwrite=True)
    assert report.is_new
    assert _files(tmp_path) == undisturbed | {"precious.txt": b"words"}


def test_failed_overwrite_leaves_the_old_dataset(
    flowers: Path, spoiled: tuple[Path, list[str]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    rs.pack(rs.ImageFolder(flowers), out, **OPTIONS)
    before = _files(out)
    with pytest.raises(rs.SourceError):
        rs.pack(rs.ImageFolder(spoiled[0]), out, overwrite=True)
    assert _files(out) == before
    assert len(rs.open(out)) == 21


@pytest.mark.parametrize(
    "name", ["train-00000-of-00002.tfrecord", "train-00007-of-00010.tfrecord", "labels.txt"]
)
def test_files_of_others_are_not_replaced_unless_told(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes], name: str
) -> None:
    (tmp_path / name).write_bytes(b"precious")
    with pytest.raises(rs.OptionError, match=rf"holds {name} already.*overwrite"):
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    assert _files(tmp_path) == {name: b"precious"}
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS, overwrite=True)
    assert _files(tmp_path) == undisturbed


def test_notes_of_others_remove_nothing(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    """A note that naming has begun lists what goes: not if it is the note of another job, and
    never what is no shard."""
    names = ["thesis.doc", "old.tfrecord"]
    (tmp_path / ".recordsmith").mkdir()
    note = tmp_path / ".recordsmith" / "begun"
    note.write_text(json.dumps({"plan": "another", "removing": names}))
    for name in names:
        (tmp_path / name).write_bytes(b"precious")
    with pytest.raises(rs.OptionError, match=r"holds old\.tfrecord already"):
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    assert set(names) <= set(os.listdir(tmp_path))
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS, overwrite=True)
    assert _files(tmp_path) == undisturbed | {"thesis.doc": b"precious"}


def test_no_job_works_through_a_link(flowers: Path, tmp_path: Path) -> None:
    """It would remove what looks like its own from wherever the link leads."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.partial").touch()
    out = tmp_path / "out"
    out.mkdir()
    (out / ".recordsmith").symlink_to(tmp_path / "elsewhere")
    for job in (rs.pack, rs.plan(rs.ImageFolder(flowers), **OPTIONS).pack):
        with pytest.raises(rs.OptionError, match="is a link"):
            job(rs.ImageFolder(flowers), out)  # type: ignore[operator]
    with pytest.raises(rs.OptionError, match="is a link"):
        rs.plan(rs.ImageFolder(flowers), **OPTIONS).pack_shards(rs.ImageFolder(flowers), out, [0])
    assert os.listdir(tmp_path / "elsewhere") == ["thesis.partial"]


@pytest.mark.parametrize(
    "change",
    [
        {"notes": 5},
        {"notes": {"x": {"count": "y", "places": 5}}},
        {"records": "7"},
        {"records": 1e300},
        {"skipped": [["a", 1]]},
        {"schema": None},
        {"crc32c": None},
        {"file": "../../x"},
    ],
    ids=str,
)
def test_a_note_that_a_shard_is_done_may_say_anything(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes], change: dict[str, Any]
) -> None:
    """The shard is written again, and the dataset is as it should be."""
    note = {
        "plan": rs.plan(rs.ImageFolder(flowers), **OPTIONS).fingerprint,
        "versions": None,
        "file": "train-00000-of-00002.tfrecord",
        **dict.fromkeys(("records", "size_bytes", "crc32c", "bytes_in"), 0),
        "schema": {"payload": "Example", "records": 0, "features": {}},
        "skipped": [],
        "notes": {},
    }
    for folder, document in (("note", note | change), ("list", [note]), ("text", "x")):
        internal = tmp_path / folder / ".recordsmith"
        internal.mkdir(parents=True)
        (internal / f"{note['file']}.done").write_text(json.dumps(document))
        (internal / f"{note['file']}.partial").touch()
        rs.pack(rs.ImageFolder(flowers), tmp_path / folder, **OPTIONS)
        assert _files(tmp_path / folder) == undisturbed


def test_broken_manifest_is_said_and_can_be_overwritten(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    (tmp_path / MANIFEST_NAME).write_text("{")
    with pytest.raises(rs.CorruptDataError) as caught:
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    assert caught.value.defect is rs.Defect.BROKEN_MANIFEST
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS, overwrite=True)
    assert _files(tmp_path) == undisturbed


# -- two at once ---------------------------------------------------------------------------------


class Meddling(rs.ImageFolder):
    """Does something when sample number `at` is read."""

    def __init__(self, root: Path, at: int, action: Any) -> None:
        super().__init__(root)
        self.read_count = 0
        self._at = at
        self._action = action
        self._counting = threading.Lock()

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "kind": "ImageFolder"}

    def read_sample(self, sample: Sample, note: Note = unheard) -> Mapping[str, Any]:
        with self._counting:
            count, self.read_count = self.read_count, self.read_count + 1
        if count == self._at:
            self._action()
        return super().read_sample(sample, note)


def test_second_job_in_the_same_folder_is_refused(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    refused = []

    def pack_too() -> None:
        for overwrite in (False, True):
            with pytest.raises(rs.FileAccessError, match="another process is writing") as caught:
                rs.pack(rs.ImageFolder(flowers), tmp_path, seed=9, overwrite=overwrite)
            refused.append(str(tmp_path) in str(caught.value))

    rs.pack(Meddling(flowers, 5, pack_too), tmp_path, **OPTIONS)
    assert refused == [True, True]
    assert _files(tmp_path) == undisturbed


def test_job_that_finds_a_finished_dataset_when_its_turn_comes(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looked before the other was done; that is no leave to overwrite."""
    fcntl = pytest.importorskip("fcntl")
    flock = fcntl.flock

    def be_late(*arguments: Any) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
        flock(*arguments)

    monkeypatch.setattr(fcntl, "flock", be_late)
    with pytest.raises(rs.OptionError, match="another dataset"):
        rs.pack(rs.ImageFolder(flowers), tmp_path, seed=9)
    assert _files(tmp_path) == undisturbed


# -- jobs that are stopped -----------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("at", [0, 7, 20])
@pytest.mark.parametrize("threads", [1, 3])
def test_stopped_by_the_source(
    flowers: Path,
    tmp_path: Path,
    undisturbed: dict[str, bytes],
    error: type[BaseException],
    at: int,
    threads: int,
) -> None:
    def stop() -> None:
        raise error

    with pytest.raises(error):
        rs.pack(Meddling(flowers, at, stop), tmp_path, **OPTIONS, threads=threads)
    assert _is_done_or_nothing(tmp_path)
    again = Meddling(flowers, -1, None)
    rs.pack(again, tmp_path, **OPTIONS)
    assert _files(tmp_path) == undisturbed
    if threads == 1:  # shard after shard: what was complete is not read again
        lengths = [len(rs.open(file)) for file in sorted(tmp_path.glob("*.tfrecord"))]
        complete = [sum(lengths[:count]) for count in range(5) if sum(lengths[:count]) <= at]
        assert again.read_count <= 21 - complete[-1]  # one more may have been finished


@pytest.mark.parametrize("at", [1, 12, 21])
def test_stopped_by_the_progress_callback(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes], at: int
) -> None:
    def stop(done: int, _total: int) -> None:
        if done == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS, progress=stop)
    assert _is_done_or_nothing(tmp_path)
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    assert _files(tmp_path) == undisturbed


_KILLER = """
import os, signal, sys, json, threading
import recordsmith as rs
root, out, setup, options, moments = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:])

def die():
    os.kill(os.getpid(), signal.SIGKILL)

class Killing(rs.ImageFolder):
    count, at, lock = 0, -1, threading.Lock()
    def read_sample(self, sample, note):
        with self.lock:
            self.count += 1
            if self.count == self.at:
                die()
        return super().read_sample(sample, note)
    def describe(self):
        return {**super().describe(), "kind": "ImageFolder"}

def arm(name, left):
    real = getattr(os, name)
    def armed(*arguments, **keywords):
        left[0] -= 1
        if left[0] < 0:
            die()
        return real(*arguments, **keywords)
    setattr(os, name, armed)

rs.pack, rs.open, rs.ShardWriter  # everything is imported before the first fork
import PIL.Image, recordsmith.image.probe
for kind, number in moments:
    folder = f"{out}/{kind}-{number}"
    child = os.fork()
    if child == 0:
        if setup is not None:
            rs.pack(rs.ImageFolder(root), folder, **setup)
        source = Killing(root)
        if kind == "read":
            source.at = number
        else:
            left = [number]
            for name in ("replace", "unlink", "rmdir"):
                arm(name, left)
        rs.pack(source, folder, **options)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(int(os.WIFSIGNALED(status)), flush=True)
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills copies of a process")


def _kill(
    root: Path, out: Path, setup: Any, options: Mapping[str, Any], moments: list[tuple[str, int]]
) -> list[bool]:
    """Pack into out/<kind>-<number> for each moment, killed then; says which were really killed."""
    done = subprocess.run(
        [sys.executable, "-c", _KILLER, str(root), str(out),
         *map(json.dumps, (setup, options, moments))],
        check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return [line == "1" for line in done.stdout.split()]


@needs_fork
def test_killed_while_writing(flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    moments = [("read", number) for number in (1, 2, 5, 10, 15, 20, 21)]
    assert all(_kill(flowers, tmp_path, None, {**OPTIONS, "threads": 2}, moments))
    for kind, number in moments:
        folder = tmp_path / f"{kind}-{number}"
        assert all(name.startswith(".") for name in _files(folder))
        with pytest.raises((rs.OptionError, rs.CorruptDataError), match=r"no TFRecord|unfinished"):
            rs.open(folder)
        report = rs.pack(rs.ImageFolder(flowers), folder, **OPTIONS)
        assert report.is_new
        assert _files(folder) == undisturbed


@needs_fork
def test_killed_again_and_again_goes_on(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    options = {**OPTIONS, "threads": 1}
    lengths = []
    for _ in range(20):
        (killed,) = _kill(flowers, tmp_path, None, options, [("read", 9)])
        lengths.append(len([name for name in _files(tmp_path / "read-9") if ".done" in name]))
        if not killed:
            break
    assert len(lengths) > 2  # it was killed at least twice
    assert lengths[:-1] == sorted(set(lengths[:-1]))  # each time it came further
    assert _files(tmp_path / "read-9") == undisturbed


@needs_fork
@pytest.mark.parametrize("options", [OPTIONS, {**OPTIONS, "overwrite": True}])
def test_changed_pictures_and_damaged_shards_are_packed_again(
    tmp_path: Path, pictures: ModuleType, options: dict[str, Any]
) -> None:
    root = pictures.make_folder(tmp_path / "flowers", {"daisy": 10, "rose": 6, "tulip": 5})
    assert all(_kill(root, tmp_path, None, {**OPTIONS, "threads": 1}, [("read", 21)]))
    out = tmp_path / "read-21"
    done = sorted((out / ".recordsmith").glob("*.done"))
    assert len(done) >= 3
    one, _two, three = (path.with_suffix(".partial") for path in done[:3])
    data = bytearray(one.read_bytes())
    data[len(data) // 2] ^= 1  # a bit of a finished shard is lost
    one.write_bytes(data)
    done[1].write_text("{}")  # and a note
    packed = json.loads(done[2].read_bytes())
    dataset = rs.open(three)
    name = dataset[0]["image/filename"][0].decode()  # type: ignore[call-overload,index]
    changed = bytearray((root / name).read_bytes())
    changed[-3] ^= 1  # and a picture changes, at the same length
    (root / name).write_bytes(changed)
    again = Meddling(root, -1, None)
    rs.pack(again, out, **options)
    reused = done[3:]
    counts = {shard["file"]: shard["records"] for shards in
              json.loads((out / "dataset.json").read_text())["splits"].values()
              for shard in shards}  # fmt: skip
    assert again.read_count == 21 - sum(counts[path.name.removesuffix(".done")] for path in reused)
    assert packed["records"] == counts[packed["file"]]
    assert rs.verify(out).is_good
    rs.pack(rs.ImageFolder(root), tmp_path / "plain", **OPTIONS)
    assert _files(out) == _files(tmp_path / "plain")


def test_until_a_job_is_done_what_it_overwrites_stays(flowers: Path, tmp_path: Path) -> None:
    """Shards of the same names, also where those that a stopped job left are damaged."""
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    before = _visible(_files(tmp_path))

    def stop() -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            rs.pack(
                Meddling(flowers, 20, stop), tmp_path, **{**OPTIONS, "seed": 4},
                threads=1, overwrite=True,
            )  # fmt: skip
        assert _visible(_files(tmp_path)) == before
        left = list((tmp_path / ".recordsmith").glob("*.tfrecord.partial"))
        assert left
        for path in left:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)


@needs_fork
def test_other_job_after_a_killed_one(flowers: Path, tmp_path: Path) -> None:
    assert all(_kill(flowers, tmp_path, None, OPTIONS, [("read", 15)]))
    rs.pack(rs.ImageFolder(flowers), tmp_path / "read-15", seed=1)
    rs.pack(rs.ImageFolder(flowers), tmp_path / "plain", seed=1)
    assert _files(tmp_path / "read-15") == _files(tmp_path / "plain")


class Aftermath(NamedTuple):
    """At which steps of giving names a killed job had which consequence."""

    killed: list[int]
    shown_in_part: list[int]
    refused: list[int]  # to go on
    finished_otherwise: list[int]
    left_behind: list[int]


def _aftermath(
    root: Path, out: Path, setup: Any, options: Mapping[str, Any], wanted: dict[str, bytes]
) -> Aftermath:
    """Kill a job at every step, look, and run it again."""
    moments = [("step", number) for number in range(80)]
    killed = _kill(root, out, setup, {**options, "threads": 2}, moments)
    assert killed == sorted(killed, reverse=True)
    assert not killed[-1]  # every step was tried
    found = Aftermath([], [], [], [], [])
    for kind, number in moments:
        folder = out / f"{kind}-{number}"
        if killed[number]:
            found.killed.append(number)
        if not _is_whole_or_refused(folder):
            found.shown_in_part.append(number)
        try:
            rs.pack(rs.ImageFolder(root), folder, **options)
        except rs.RecordsmithError:
            found.refused.append(number)
            continue
        if _visible(_files(folder)) != _visible(wanted):
            found.finished_otherwise.append(number)
        if any(name.endswith((".partial", ".done")) for name in _files(folder)):
            found.left_behind.append(number)
    return found


@pytest.fixture(scope="module", params=["new", "overwritten"])
def aftermath(
    request: pytest.FixtureRequest,
    flowers: Path,
    undisturbed: dict[str, bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> Aftermath:
    setup, options = None, OPTIONS
    if request.param == "overwritten":
        setup = {"shards": {"train": 1, "old": 2}, "splits": {"train": 0.5, "old": 0.5}, "seed": 8}
        options = {**OPTIONS, "overwrite": True}
    out = tmp_path_factory.mktemp(request.param)
    return _aftermath(flowers, out, setup, options, undisturbed)


@needs_fork
def test_killed_while_files_get_their_names_shows_no_part_as_the_whole(
    aftermath: Aftermath,
) -> None:
    assert aftermath.killed[:6] == list(range(6))  # four shards, the labels, the manifest
    assert aftermath.shown_in_part == []


@needs_fork
def test_killed_while_files_get_their_names_can_go_on(aftermath: Aftermath) -> None:
    assert aftermath.refused == []


@needs_fork
def test_killed_while_files_get_their_names_finishes_with_the_same_bytes(
    aftermath: Aftermath,
) -> None:
    assert aftermath.finished_otherwise == []


@needs_fork
def test_killed_while_files_get_their_names_leaves_no_rubbish(aftermath: Aftermath) -> None:
    assert aftermath.left_behind == []


def _is_whole_or_refused(folder: Path) -> bool:
    """False if a part of the dataset is shown as if it were the whole."""
    try:
        dataset = rs.open(folder)
    except rs.RecordsmithError:
        return True
    return len(list(dataset)) == 21


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_failed_while_files_get_their_names(
    flowers: Path,
    tmp_path: Path,
    undisturbed: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    replace = os.replace
    finished_otherwise = []
    for step in range(12):
        folder = tmp_path / str(step)
        left = [step]

        def fail(source: Any, target: Any, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(number, "")
            replace(source, target)

        monkeypatch.setattr(os, "replace", fail)
        with suppress(rs.FileAccessError):
            rs.pack(rs.ImageFolder(flowers), folder, **OPTIONS)
        monkeypatch.undo()
        unnamed = {name for name in _files(folder) if name.endswith(".partial")}
        done = {name for name in _files(folder) if name.endswith(".done")}
        assert {name.removesuffix(".partial").removesuffix(".index") for name in unnamed} <= {
            name.removesuffix(".done") for name in done
        }
        rs.pack(rs.ImageFolder(flowers), folder, **OPTIONS)
        if _files(folder) != undisturbed:
            finished_otherwise.append(step)
    assert finished_otherwise == []


# -- a disk that is full -------------------------------------------------------------------------


def test_disk_that_is_full_at_the_sync(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(rs.FileAccessError, match="no space is left on the disk") as caught:
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    assert caught.value.errno == errno.ENOSPC
    assert f"cannot write {tmp_path}" in str(caught.value)
    assert _files(tmp_path) == {}


def test_file_that_may_not_grow(flowers: Path, tmp_path: Path, pictures: ModuleType) -> None:
    """A limit of the system: writing stops in the middle of a shard."""
    pytest.importorskip("resource")
    script = (
        "import resource, signal, sys, recordsmith as rs\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "try: rs.pack(rs.ImageFolder(sys.argv[1]), sys.argv[2])\n"
        "except rs.FileAccessError as error: print(error.errno, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(flowers), str(tmp_path / "out")],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert "train-00000-of-00001.tfrecord" in done.stdout
    assert str(errno.EFBIG) in done.stdout
    assert _files(tmp_path / "out") == {}


def test_bytes_that_come_back_otherwise_are_noticed(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that loses a bit: what was written is read back before it gets its name."""
    fsync = os.fsync

    def spoil(descriptor: int) -> None:
        fsync(descriptor)
        os.pwrite(descriptor, b"\xff", 40)

    monkeypatch.setattr(os, "fsync", spoil)
    with pytest.raises(rs.CorruptDataError):
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    assert _files(tmp_path) == {}


# -- sources of other kinds ----------------------------------------------------------------------


class Rows:
    """A source without pictures and classes."""

    def __init__(self, count: int) -> None:
        self.count = count

    def list_samples(self) -> Listing:
        return Listing(tuple(Sample(str(number), 8) for number in range(self.count)))

    def read_sample(self, sample: Sample, note: Note = unheard) -> Mapping[str, Any]:  # noqa: ARG002
        return {"id": int(sample.name), "boxes": [0.5] * (int(sample.name) % 3)}

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "Rows"}

    def kinds(self) -> Mapping[str, Any]:
        return {"boxes": "float"}


def test_any_source_can_be_packed(tmp_path: Path) -> None:
    report = rs.pack(Rows(30), tmp_path, shards=4)
    assert report.class_count is None
    assert not (tmp_path / LABELS_NAME).exists()
    dataset = rs.open(tmp_path)
    assert dataset.class_names is None
    columns = dataset.read_columns()
    ids = np.asarray(columns["id"])
    assert sorted(ids.tolist()) == list(range(30))
    for number, boxes in zip(ids, columns["boxes"], strict=True):
        assert len(boxes) == number % 3
    # an empty list keeps its kind
    assert dataset.schema.features["boxes"].kind == "float"
    assert all(example["boxes"].dtype == np.float32 for example in dataset)  # type: ignore[call-overload,union-attr]


def test_features_that_cannot_be_encoded_stop_the_job(tmp_path: Path) -> None:
    class Wrong(Rows):
        def read_sample(self, sample: Sample, note: Note = unheard) -> Mapping[str, Any]:  # noqa: ARG002
            return {"id": {sample.name: "a dict is no feature"}}

    with pytest.raises(rs.OptionError, match="'id'"):
        rs.pack(Wrong(5), tmp_path / "out", on_error="skip")
    assert _files(tmp_path / "out") == {}


def test_checksums_in_the_manifest_are_of_the_files(flowers: Path, tmp_path: Path) -> None:
    """Packed twice, the manifest alone tells that the bytes are equal."""
    digests = []
    for name in "ab":
        rs.pack(rs.ImageFolder(flowers), tmp_path / name, **OPTIONS)
        digests.append(hashlib.sha256((tmp_path / name / MANIFEST_NAME).read_bytes()).digest())
    assert digests[0] == digests[1]


def test_the_place_of_the_dataset_must_be_a_folder(flowers: Path, tmp_path: Path) -> None:
    source = rs.ImageFolder(flowers)
    (tmp_path / "file").write_bytes(b"precious")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(rs.OptionError, match="file is a file; expected the name of a folder"):
        rs.pack(source, tmp_path / "file")
    for name, words in (("loop", "circle"), ("x" * 300, "too long"), ("file/x", "is a file")):
        with pytest.raises(rs.FileAccessError, match=f"cannot write .*{name}: .*{words}"):
            rs.pack(source, tmp_path / name)
    assert (tmp_path / "file").read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop"]
