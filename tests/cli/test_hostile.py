"""Folders as somebody might make them who wants harm: no command falls, grows or obeys.

Each case writes one folder. Every command that reads may end with 0, 1 or 2, within a memory that
has nothing to do with what the files claim, and prints nothing that moves a cursor.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import shlex
import struct
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith.cli import app
from recordsmith.dataset import records_of
from recordsmith.format.wire import crc32c, encode_record, encode_records
from recordsmith.image import probe_image

pytestmark = pytest.mark.posix

ESCAPES = "\x1b]0;title\x07\x1b[2J\u202e"
FORGED = "good: forged"
"""What no line of output begins with, whatever a stranger calls his things."""

FORGING = f"a\n{FORGED}\r{FORGED}\u2028{FORGED}\x85{FORGED}"
ROOM_BYTES = 1 << 30

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("inspect",),
    ("inspect", "--json"),
    ("inspect", "--reader", "tf"),
    ("inspect", "--reader", "dali"),
    ("head",),
    ("head", "--json"),
    ("verify",),
    ("verify", "--deep", "--html", "OUT/verify.html"),
    ("stats", "--html", "OUT/stats.html"),
    ("schema",),
    ("diff", "OUT/in"),
    ("salvage", "OUT/salvaged"),
    ("reshard", "OUT/reshaped", "--shards", "1"),
    ("edit", "OUT/edited", "--drop", "label"),
    ("sheet", "OUT/sheet.png"),
    ("index",),
    ("index", "--format", "dali", "--to", "OUT/idx"),
    ("export", "OUT/csv", "--format", "csv"),
    ("export", "OUT/folder", "--format", "folder"),
)

Case = Callable[[Path, Any], None]
CASES: dict[str, Case] = {}


def case(write: Case) -> Case:
    CASES[write.__name__.strip("_")] = write
    return write


@pytest.fixture
def little_memory() -> Iterator[None]:
    """A gigabyte more than there is now, and not a byte beyond."""
    resource = pytest.importorskip("resource")
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        pytest.skip("the size of a process is not available here")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# ---- manifests -----------------------------------------------------------------------------------


def manifest(change: Callable[[Any], object], **options: Any) -> Case:
    """A good dataset whose manifest was changed."""

    def write(folder: Path, numbered: Any) -> None:
        numbered.packed(folder, {"train": [3, 2]}, **options)
        path = folder / "dataset.json"
        document = json.loads(path.read_bytes())
        change(document)
        path.write_text(json.dumps(document))

    return write


def features(change: Callable[[Any], object]) -> Case:
    """A manifest whose schemas were changed, of the dataset and of the shards."""
    return manifest(lambda d: [change(each) for each in (d["schema"], *d["schemas"].values())])


def every_feature(**values: Any) -> Case:
    return features(lambda s: [feature.update(**values) for feature in s["features"].values()])


def shard(number: int, **values: Any) -> Case:
    return manifest(lambda d: d["splits"]["train"][number].update(**values))


def name_everything(document: Any) -> None:
    document["splits"] = {f"\ud800{ESCAPES}": document["splits"]["train"]}
    document["class_names"] = [["a"], {"b": 1}, 5, None, ESCAPES, "\ud800"]


def forge_names(document: Any) -> None:
    document["splits"] = {FORGING: document["splits"]["train"]}
    document["splits"][FORGING][1]["file"] = FORGING
    document["class_names"] = [FORGING, "b"]
    for schema in (document["schema"], *document["schemas"].values()):
        schema["features"] = {FORGING + key: value for key, value in schema["features"].items()}


ONE = {"min_length": 1, "max_length": 1, "present": 5, "shape": []}
MISSING = {
    "image/encoded": {"kind": "bytes", "content": "image", **ONE},
    f'{ESCAPES}"""\nraise SystemExit(': {"kind": "int64", **ONE},
}
ORIGIN = {"fingerprint": [1], "skipped": 5, "bytes_in": "x", "source": float("nan")}
CASES |= {
    "counts_past_64_bits": shard(0, records=10**30),
    "counts_of_4300_digits": manifest(
        lambda d: [s.update(records=int("9" * 4300)) for s in d["splits"]["train"]]
    ),
    "counts_that_no_file_could_hold": shard(1, records=2**40),
    "counts_that_no_compressed_file_could_hold": manifest(
        lambda d: d["splits"]["train"][1].update(records=2**40), compression="gzip"
    ),
    "one_shard_a_thousand_times": manifest(
        lambda d: d["splits"].update(train=d["splits"]["train"] * 1000)
    ),
    "names_of_other_things": shard(0, file="dataset.json"),
    "names_too_long": shard(0, file="a" * 3000),
    "names_that_are_no_text": manifest(name_everything),
    "names_that_forge_lines_of_a_manifest": manifest(forge_names),
    "shapes_past_all_memory": every_feature(shape=[2**50], min_length=2**50, max_length=2**50),
    "features_that_are_not_there": features(lambda s: s.update(features=MISSING)),
    "kinds_that_lie": every_feature(kind="float", content=None),
    "payloads_that_lie": features(
        lambda s: s.update(payload="SequenceExample", context=s.pop("features"))
    ),
    "compression_that_lies": manifest(lambda d: d.update(compression="gzip")),
    "compression_that_hides": manifest(lambda d: d.update(compression="none"), compression="zlib"),
    "origins_of_no_sense": manifest(lambda d: d.update(provenance=ORIGIN, version=float("nan"))),
    "no_splits": manifest(lambda d: d.update(splits={})),
    "splits_of_no_shards": manifest(lambda d: d.update(splits={"train": []})),
}


# ---- labels, notes, names ------------------------------------------------------------------------


@case
def labels_of_5000_digits(folder: Path, numbered: Any) -> None:
    numbered.write_shard(folder / "a.tfrecord", [1])
    (folder / "labels.txt").write_text("9" * 5000 + ":x\n")


@case
def labels_up_to_a_million(folder: Path, numbered: Any) -> None:
    numbered.write_shard(folder / "a.tfrecord", [1])
    (folder / "labels.txt").write_text("1000000:x\n")


@case
def numbers_of_shards_without_end(folder: Path, numbered: Any) -> None:
    numbered.write_shard(folder / "x-99999999998-of-99999999999.tfrecord", [1])
    numbered.write_shard(folder / f"y-{'9' * 90}-of-{'9' * 91}.tfrecord", [1])


@case
def notes_of_no_sense(folder: Path, numbered: Any) -> None:
    numbered.write_shard(folder / "a.tfrecord", [1])
    (folder / ".recordsmith").mkdir()
    (folder / ".recordsmith" / "begun.json").write_bytes(b"\xff\xfe[" * 1000)


@case
def names_with_escapes(folder: Path, numbered: Any) -> None:
    (folder / f"a{ESCAPES}").mkdir()
    name = f'x"""\nraise SystemExit({ESCAPES}'
    numbered.write_shard(folder / f"{name}-00000-of-00001.tfrecord", [1])


@case
def names_that_forge_lines_of_shards(folder: Path, numbered: Any) -> None:
    numbered.write_shard(folder / f"{FORGING}-00000-of-00002.tfrecord", [1])
    (folder / f"{FORGING}-00001-of-00002.tfrecord").write_bytes(b"no records")
    (folder / f"{FORGING}b.tfrecord").mkdir()


@case
def names_that_forge_lines_of_folders(folder: Path, numbered: Any) -> None:
    (folder / FORGING).mkdir()
    shard = numbered.write_shard(folder / FORGING / "a.tfrecord", [1, 2, 3])
    shard.write_bytes(shard.read_bytes()[:-1])


@case
def names_that_are_not_utf8(folder: Path, numbered: Any) -> None:
    numbered.write_shard(folder / os.fsdecode(b"a\xff\xfe.tfrecord"), [1])


# ---- what stands where a shard is expected -------------------------------------------------------


@case
def pipes(folder: Path, numbered: Any) -> None:
    numbered.packed(folder, {"train": [1, 1]})
    (folder / "train-00000-of-00002.tfrecord").unlink()
    os.mkfifo(folder / "train-00000-of-00002.tfrecord")


@case
def pipes_without_a_manifest(folder: Path, numbered: Any) -> None:
    numbered.write_shard(folder / "a.tfrecord", [1])
    os.mkfifo(folder / "b.tfrecord")
    os.mkfifo(folder / "dataset.json")
    os.mkfifo(folder / "labels.txt")


@case
def folders_as_shards(folder: Path, numbered: Any) -> None:
    numbered.packed(folder, {"train": [1, 1]})
    (folder / "train-00000-of-00002.tfrecord").unlink()
    (folder / "train-00000-of-00002.tfrecord").mkdir()


@case
def links_in_a_circle(folder: Path, numbered: Any) -> None:
    numbered.write_shard(folder / "a.tfrecord", [1])
    (folder / "b.tfrecord").symlink_to("c.tfrecord")
    (folder / "c.tfrecord").symlink_to("b.tfrecord")
    (folder / "dataset.json").symlink_to("dataset.json")


@case
def links_to_nothing(folder: Path, numbered: Any) -> None:
    numbered.packed(folder, {"train": [1, 1]})
    (folder / "train-00001-of-00002.tfrecord").unlink()
    (folder / "train-00001-of-00002.tfrecord").symlink_to("nothing")


# ---- indexes -------------------------------------------------------------------------------------


def with_index(offsets: list[int], says: int, compression: str = "none") -> Case:
    """A good shard, and an index of it with matching checksums."""

    def write(folder: Path, numbered: Any) -> None:
        shard = numbered.write_shard(folder / "a.tfrecord", [1, 2, 3], compression)
        data = shard.read_bytes()
        version = shard.stat().st_mtime_ns  # an archive keeps the times of its files
        stops = [len(data) if offset < -(2**63) else offset for offset in offsets]
        table = np.array(stops, np.int64).tobytes()
        head = struct.pack("<8sQQIQ", b"RSINDEX\3", len(data), version, says, len(offsets) - 1)
        head += struct.pack("<I", crc32c(table))
        (folder / ".recordsmith").mkdir()
        (folder / ".recordsmith" / "a.tfrecord.index").write_bytes(
            head + struct.pack("<I", crc32c(head)) + table
        )

    return write


END = -(2**63) - 1  # stands for the size of the shard
CASES |= {
    "index_that_wraps_around": with_index([0, 2**63 - 1, -(2**63) + 20, END], 0),
    "index_of_a_compressed_shard": with_index([0, 2**33, 2**34], 1),
    "index_of_an_endless_shard": with_index([0, 2**40, 2**41], 1),
    "index_past_what_is_compressed": with_index([0, 2**61, 2**62], 1, "gzip"),
    "index_between_the_frames": with_index([0, 20, 40, END], 0),
    "index_with_too_many": with_index([0, 16, 32, 48, 64, 80, END], 0),
    "index_of_nothing": with_index([0], 1),
}


# ---- payloads and images -----------------------------------------------------------------------


def with_payloads(*payloads: bytes) -> Case:
    return lambda folder, _: (folder / "a.tfrecord").write_bytes(encode_records(payloads)) and None


def with_images(*images: bytes) -> Case:
    return with_payloads(
        *(rs.encode_example({"image/encoded": data, "image/class/label": 1}) for data in images)
    )


def image(name: str, size: int = 10) -> bytearray:
    stream = io.BytesIO()
    Image.new("L", (size, size)).save(stream, name)
    return bytearray(stream.getvalue())


def claiming(name: str, at: int, size: bytes, *, stop: int | None = None) -> bytes:
    """A small image whose header tells of a large one."""
    data = image(name)
    data[at : at + len(size)] = size
    return bytes(data[:stop])


JPEG_SIZE = bytes(image("JPEG")).index(b"\xff\xc0") + 5
CASES |= {
    "keys_and_texts_with_escapes": with_payloads(
        rs.encode_example(
            {
                ESCAPES: "x",
                f'"""\nraise SystemExit({ESCAPES}': 1,
                "image/filename": f"../../{ESCAPES}/x",
                "image/class/text": f"{ESCAPES}\n",
                "image/class/label": 1,
            }
        )
    ),
    "keys_and_texts_that_forge_lines": with_payloads(
        rs.encode_example(
            {
                FORGING: FORGING,
                "image/filename": FORGING,
                "image/class/text": FORGING,
                "image/class/label": 1,
            }
        ),
        rs.encode_example({FORGING: 1, f"{FORGING}2": [1.0, float("nan")]}),
    ),
    "kinds_that_differ": with_payloads(
        *(rs.encode_example({"a": value}) for value in (1, "x", 0.5, []))
    ),
    "no_examples": with_payloads(b"hello", b"\x08\x01", b"\xff" * 100, b""),
    "groups_in_groups": with_payloads(b"\x7b" * 90 + b"\x7c" * 90, b"\x7b" * 100_000),
    "sizes_past_all_memory": with_payloads(
        rs.encode_example(
            {
                "image/encoded": b"raw",
                "image/format": "raw",
                "image/height": 2**40,
                "image/width": -5,
                "image/channels": 3,
                "image/class/label": -(2**63),
            }
        )
    ),
    "boxes_of_no_sense": with_payloads(
        rs.encode_example(
            {
                "image/encoded": bytes(image("PNG")),
                "image/object/bbox/xmin": [float("nan"), float("inf")],
                "image/object/bbox/xmax": [1e38, -1e38],
                "image/object/bbox/ymin": [0.0, 0.0],
                "image/object/bbox/ymax": [0.0],
                "image/object/class/label": [1, 2**62],
            }
        )
    ),
    "png_of_16_exabytes": with_images(claiming("PNG", 16, struct.pack(">II", 2**31 - 1, 2**31))),
    "gif_of_4_gigabytes": with_images(claiming("GIF", 6, struct.pack("<HH", 65535, 65535))),
    "bmp_of_an_exabyte": with_images(claiming("BMP", 18, struct.pack("<ii", 2**30, 2**30))),
    "jpeg_of_4_gigabytes": with_images(
        claiming("JPEG", JPEG_SIZE, struct.pack(">HH", 65500, 65500)),
        claiming("JPEG", JPEG_SIZE, struct.pack(">HH", 65500, 65500), stop=-2),
    ),
}


@case
def members_of_nothing(folder: Path, numbered: Any) -> None:
    data = gzip.compress(encode_record(b"x")) + gzip.compress(b"") * 5000
    (folder / "a.tfrecord.gz").write_bytes(data)


def ran(command: tuple[str, ...], folder: Path, out: Path) -> tuple[int, str]:
    """The exit code, and all that is printed; what falls is raised."""
    first, *others = (part.replace("OUT", str(out)) for part in command)
    result = CliRunner().invoke(app, [first, str(folder), *others])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.mark.slow
@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", CASES)
def test_commands_do_not_crash(tmp_path: Path, numbered: Any, name: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    CASES[name](folder, numbered)
    for command in COMMANDS:
        code, shown = ran(command, folder, tmp_path)
        assert code in (0, 1, 2)
        moving = {char for char in shown if not char.isprintable() and char != "\n"}
        assert not moving or all("\ud800" <= char <= "\udfff" for char in moving), command
        assert FORGED not in {line.strip()[: len(FORGED)] for line in shown.splitlines()}, command
        if "--reader" in command and code == 0:
            compile(shown, "reader.py", "exec")
            assert "raise SystemExit" not in {line.lstrip()[:16] for line in shown.splitlines()}
    assert {path.name for path in tmp_path.iterdir()} <= {
        *("in", "verify.html", "stats.html", "salvaged", "reshaped", "edited"),
        *("sheet.png", "idx", "csv", "folder"),
    }


def attempt(action: Callable[[], object]) -> None:
    """What a program does; it may raise one of our errors."""
    with contextlib.suppress(rs.RecordsmithError, IndexError):
        action()


@pytest.mark.filterwarnings("ignore:feature 'id'.* 'id'")
@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", CASES)
def test_functions_do_not_crash(tmp_path: Path, numbered: Any, name: str) -> None:
    CASES[name](tmp_path, numbered)
    try:
        dataset = rs.open(tmp_path)
    except rs.RecordsmithError:
        return
    features = {"at": rs.Position(), "id": rs.Scalar("id", default=0)}
    for action in (
        lambda: len(dataset),
        lambda: dataset[-1],
        lambda: list(dataset),
        lambda: list(dataset[::-1].records()),
        lambda: dataset.read_records(range(min(3, len(dataset)))),
        lambda: records_of(dataset).record_sizes([0]),
        dataset.read_columns,
        lambda: list(dataset.batches(2)),
        lambda: list(rs.Loader(dataset, features, batch_size=2, shuffle=True, seed=0)),
    ):
        attempt(action)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", [name for name in CASES if "index" in name])
def test_indexes_never_give_wrong_records(tmp_path: Path, numbered: Any, name: str) -> None:
    CASES[name](tmp_path, numbered)
    dataset = rs.open(tmp_path)
    size = (tmp_path / "a.tfrecord").stat().st_size
    assert records_of(dataset).record_sizes(range(len(dataset))).sum() < 1032 * size
    if dataset.shards[0].compression == "none":
        with contextlib.suppress(rs.CorruptDataError):  # of an index that does not match
            assert numbered.ids_of(dataset[position] for position in range(3)) == [1, 2, 3]
            assert len(dataset.read_records([2, 0])) == 2
    if len(dataset) == 3:
        assert numbered.ids_of(dataset) == [1, 2, 3]
    else:  # an index can lie about how many there are, until somebody looks
        with pytest.raises(rs.CorruptDataError):
            list(dataset)
    assert rs.verify(tmp_path).record_count == 3


def test_images_never_start_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow would hand EPS to Ghostscript."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gs").write_text(f"#!/bin/sh\n: > {shlex.quote(str(tmp_path / 'ran'))}\n")
    (programs / "gs").chmod(0o755)
    if not os.access(programs / "gs", os.X_OK):
        pytest.skip("no program may be started from here")
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    from PIL import EpsImagePlugin

    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)  # not looked for yet
    postscript = (
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"
    )
    with Image.open(io.BytesIO(postscript)) as image, pytest.raises(OSError):
        image.load()
    assert (tmp_path / "ran").exists()  # so it would have been run
    (tmp_path / "ran").unlink()
    folder = tmp_path / "in"
    folder.mkdir()
    with_images(postscript)(folder, None)
    for command in COMMANDS:
        assert ran(command, folder, tmp_path)[0] in (0, 1, 2)
    with pytest.raises(rs.CorruptDataError):
        probe_image(postscript)
    assert not (tmp_path / "ran").exists()


# ---- sources -------------------------------------------------------------------------------------


def class_folder(folder: Path) -> None:
    (folder / "cat").mkdir()
    (folder / "cat" / f"{FORGING}.png").write_bytes(image("PNG"))
    (folder / "cat" / f"{FORGING}.jpg").write_bytes(b"no image")


def table(folder: Path) -> None:
    (folder / f"{FORGING}.csv").write_text(f'a,"{FORGING}"\n1,2\n1\n1,x\n')


def json_lines(folder: Path) -> None:
    rows = [{FORGING: 1, "a": FORGING}, {FORGING: "x"}]
    (folder / f"{FORGING}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def archive(folder: Path) -> None:
    with tarfile.open(folder / f"{FORGING}.tar", "w") as file:
        for name in (f"{FORGING}.cls", f"{FORGING}.json", FORGING, f"b.{FORGING}"):
            member = tarfile.TarInfo(name)
            member.size = 1
            file.addfile(member, io.BytesIO(b"x"))


def boxes(folder: Path) -> None:
    (folder / f"{FORGING}.jpg").write_bytes(image("JPEG"))
    documents = {
        "images": [{"id": FORGING, "file_name": f"{FORGING}.jpg"}, {"id": 2, "file_name": FORGING}],
        "annotations": [{"id": FORGING, "image_id": FORGING, "category_id": FORGING, "bbox": 1}],
        "categories": [{"id": 1, "name": "a"}, {"id": FORGING, "name": FORGING}],
    }
    (folder / "annotations.json").write_text(json.dumps(documents))


def voc_files(folder: Path) -> None:
    for inner in ("Annotations", "JPEGImages"):
        (folder / inner).mkdir()
    text = f"<annotation><filename>{FORGED}\n{FORGED}</filename></annotation>"
    (folder / "Annotations" / f"{FORGING}.xml").write_text(text)
    (folder / "Annotations" / f"{FORGING}b.xml").write_text("<a")
    (folder / "JPEGImages" / f"{FORGING}.jpg").write_bytes(image("JPEG"))


def yolo_files(folder: Path) -> None:
    names = json.dumps(FORGING)
    (folder / "data.yaml").write_text(f"train: {names}\nval: images\nnames: [{names}]\n")
    (folder / "images").mkdir()
    (folder / "images" / f"{FORGING}.jpg").write_bytes(image("JPEG"))
    (folder / "images" / f"{FORGING}.txt").write_text(f"x {FORGED}\n")


@pytest.mark.parametrize("skip", [(), ("--skip-errors",)], ids=["stop", "skip"])
@pytest.mark.parametrize(
    "write", [class_folder, table, json_lines, archive, boxes, voc_files, yolo_files]
)
def test_names_in_a_source_cannot_forge_a_line(
    tmp_path: Path, write: Callable[[Path], None], skip: tuple[str, ...]
) -> None:
    folder = tmp_path / FORGING
    folder.mkdir()
    write(folder)
    paths = [folder, *(path for path in folder.iterdir() if path.is_file())]
    for number, path in enumerate(paths):
        for out in (str(tmp_path / f"out{number}"), str(tmp_path / f"{FORGING}{number}")):
            code, shown = ran(("pack", out, *skip), path, tmp_path)
            assert code in (0, 1, 2)
            assert FORGED not in {line.strip()[: len(FORGED)] for line in shown.splitlines()}


def test_json_has_the_original_names(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    bad = tmp_path / "cat" / f"{FORGING}.jpg"
    bad.write_bytes(b"no image")
    result = CliRunner().invoke(app, ["pack", str(tmp_path), str(tmp_path) + "-out", "--json"])
    assert result.stdout.isascii()
    assert str(bad) in json.loads(result.stdout)["problems"][0]
