"""Malicious inputs to pack: no command crashes, exhausts memory or emits control sequences.

Each case writes one folder. It is detected, packed, linted and forecast, and the output of pack is
read and exported, within a memory that is unrelated to what the files claim. Nothing is written
outside the outputs, and no file outside the folder is read.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import traceback
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.format.wire import encode_records

from ..sources import lerobot_folder
from .test_hostile import ESCAPES, FORGED, FORGING, ROOM_BYTES, image, ran

pytestmark = pytest.mark.posix

CANARY = b"what no output may contain"
SECONDS = 30
COMMANDS = (
    ("detect",),
    ("lint",),
    ("forecast",),
    ("pack", "OUT/packed", "--skip-errors", "--check-images"),
)
COMMANDS_OF_PACKED = (
    ("verify", "--deep"),
    ("stats",),
    ("head",),
    ("export", "OUT/folder", "--format", "folder"),
    ("export", "OUT/csv", "--format", "csv"),
)
OUTPUTS = frozenset(("in", "canary.png", "packed", "folder", "csv"))

Case = Callable[[Path], object]
CASES: dict[str, Case] = {}


def case(write: Case) -> Case:
    CASES[write.__name__.strip("_")] = write
    return write


def png(width: int = 10, height: int = 10, extra: bytes = b"", rows: bytes | None = None) -> bytes:
    """A PNG of black pixels; a large one is a bomb of a thousandth of its pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    packed = zlib.compressobj(9)
    row = bytes(1 + width)
    data = b"".join(packed.compress(row) for _ in range(height)) if rows is None else rows
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + extra
        + chunk(b"IDAT", data + (packed.flush() if rows is None else b""))
        + chunk(b"IEND", b"")
    )


def in_classes(folder: Path, **images: bytes) -> None:
    for name, data in {"good_png": png(), **images}.items():
        (folder / "cat").mkdir(exist_ok=True)
        (folder / "cat" / ".".join(name.rsplit("_", 1))).write_bytes(data)


# ---- images --------------------------------------------------------------------------------------


@case
def png_bombs(folder: Path) -> None:
    text = b"zTXt" + b"a\0\0" + zlib.compress(bytes(20_000_000))
    extra = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
    profile = b"iCCP" + b"a\0\0" + zlib.compress(bytes(20_000_000))
    icc = struct.pack(">I", len(profile) - 4) + profile + struct.pack(">I", zlib.crc32(profile))
    in_classes(
        folder,
        large_png=png(2_000, 2_000),
        text_png=png(extra=extra),
        profile_png=png(extra=icc),
        rows_png=png(rows=zlib.compress(bytes(20_000_000))),
        claims_png=bytes(png())[:16] + struct.pack(">II", 2**31 - 1, 2**31 - 1) + bytes(png())[24:],
        zero_png=bytes(png())[:16] + bytes(8) + bytes(png())[24:],
    )


@case
def webp_bombs(folder: Path) -> None:
    data = bytearray(image("WEBP"))
    whole = io.BytesIO()
    from PIL import Image

    Image.new("RGB", (2000, 2000)).save(whole, "WEBP", lossless=True, method=0)
    extended = b"VP8X" + struct.pack("<I", 10) + bytes(4) + b"\xff\xff\xff" * 2
    riff = b"WEBP" + extended + bytes(data[12:])
    in_classes(
        folder,
        large_webp=whole.getvalue(),
        claims_webp=b"RIFF" + struct.pack("<I", len(riff)) + riff,
        sizes_webp=bytes(data[:4]) + b"\xff\xff\xff\xff" + bytes(data[8:]),
    )


@case
def tiff_bombs(folder: Path) -> None:
    def tiff(*tags: tuple[int, int, int, int], data: bytes = b"") -> bytes:
        entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
        return b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + bytes(4) + data

    base = [(258, 3, 1, 8), (262, 3, 1, 1), (277, 3, 1, 1)]
    packed = zlib.compress(bytes(100_000_000))
    at = 8 + 2 + 9 * 12 + 4
    strips = [(278, 4, 1, 10_000), (273, 4, 1, at), (279, 4, 1, len(packed))]
    in_classes(
        folder,
        claims_tif=tiff((256, 4, 1, 2**31), (257, 4, 1, 2**31), *base, *strips, data=b"x"),
        deflate_tif=tiff(
            (256, 4, 1, 10_000), (257, 4, 1, 10_000), (259, 3, 1, 8), *base, *strips, data=packed
        ),
        counts_tif=tiff((256, 4, 1, 9), (257, 4, 1, 9), *base, (273, 4, 2**32 - 1, 8)),
        circle_tif=b"II*\0\x08\0\0\0\0\0\x08\0\0\0",
    )


@case
def gif_bombs(folder: Path) -> None:
    frame = b",\0\0\0\0\xff\xff\xff\xff\0\x08\x01\0\0"
    head = b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0x80, 0, 0) + bytes(6)
    in_classes(folder, frames_gif=head + frame * 50_000 + b";", endless_gif=head + b"!\xfe\xff" * 9)


# ---- arrays --------------------------------------------------------------------------------------


def npy(header: str, data: bytes = b"", version: bytes = b"\1\0", size: int | None = None) -> bytes:
    text = header.encode()
    form = "<H" if version[0] == 1 else "<I"
    return (
        b"\x93NUMPY"
        + version
        + struct.pack(form, len(text) if size is None else size)
        + text
        + data
    )


def npy_header(shape: str, descr: str = "'|u1'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"


NPY = {
    "shape": npy(npy_header("(1099511627776, 28, 28)"), bytes(99)),
    "product": npy(npy_header(f"({2**62}, {2**62}, 0)"), bytes(99)),
    "negative": npy(npy_header("(-1, 28, 28)"), bytes(99)),
    "digits": npy(npy_header(f"({'9' * 5000},)"), bytes(99)),
    "nested": npy("(" * 9000 + ")" * 9000),
    "header": npy(npy_header("(1,)"), version=b"\2\0", size=2**32 - 1),
    "code": npy("__import__('os').system('touch ran')"),
    "pickle": npy(npy_header("(1,)", "'|O'"), b"cos\nsystem\n(S'touch ran'\ntR."),
    "fields": npy(npy_header("(9,)", repr([("x" * 9, "<i4")] * 3)), bytes(999)),
    "wide": npy(npy_header("(1,)", f"'|S{2**31 - 1}'"), bytes(99)),
    "void": npy(npy_header("(10000000000,)", "'|V0'")),
}


@case
def npy_files(folder: Path) -> None:
    for name, data in NPY.items():
        (folder / f"{name}_images.npy").write_bytes(data)
    np.save(folder / "labels.npy", np.arange(3))


for _name, _data in NPY.items():

    @case
    def one_npy(folder: Path, data: bytes = _data) -> None:
        (folder / "x_train.npy").write_bytes(data)
        np.save(folder / "y_train.npy", np.arange(3))

    CASES[f"npy_{_name}"] = CASES.pop("one_npy")


@case
def npz_of_no_good(folder: Path) -> None:
    with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x_train.npy", npy(npy_header("(1000000, 28, 28)"), bytes(100_000_000)))
        file.writestr("../../escaped.npy", npy(npy_header("(3,)"), b"abc"))
        file.writestr(f"{FORGING}.npy", npy(npy_header("(3,)"), b"abc"))
        file.writestr("y_train.npy", NPY["pickle"])


@case
def npz_with_entries_in_each_other(folder: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("x_train.npy", npy(npy_header("(3, 4, 4)"), bytes(48)))
    whole = data.getvalue()
    at = whole.index(b"PK\1\2")
    (folder / "a.npz").write_bytes(
        whole[:at] + whole[at : whole.index(b"PK\5\6")] * 9 + whole[-22:]
    )
    (folder / "b.npz").write_bytes(whole[: at - 9])
    (folder / "c.npz").write_bytes(whole.replace(struct.pack("<I", 48 + 128), b"\xff" * 4))


@case
def idx_files(folder: Path) -> None:
    images = struct.pack(">IIII", 0x803, 2**31 - 1, 2**31 - 1, 2**31 - 1)
    (folder / "train-images-idx3-ubyte").write_bytes(images + bytes(99))
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(
        gzip.compress(struct.pack(">II", 0x801, 2**32 - 1) + bytes(20_000_000))
    )


@case
def idx_of_odd_types(folder: Path) -> None:
    (folder / "train-images-idx3-ubyte").write_bytes(b"\0\0\x0e\xff" + bytes(2000))
    (folder / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, 0))


# ---- archives ------------------------------------------------------------------------------------


def tar(folder: Path, *members: tuple[str, bytes | dict[str, Any]]) -> None:
    with tarfile.open(folder / "a-000000.tar", "w", format=tarfile.PAX_FORMAT) as file:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, dict):
                vars_of = {"size": 0, **content}
                for key, value in vars_of.items():
                    setattr(member, key, value)
                file.addfile(member)
            else:
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))


@case
def tar_of_paths(folder: Path) -> None:
    outside = str(folder.parent / "canary.png")
    tar(
        folder,
        ("../../escaped.png", png()),
        ("../../escaped.cls", b"1"),
        ("/tmp/escaped.png", png()),
        ("a\\..\\..\\b.png", png()),
        (f"{FORGING}.png", png()),
        ("nul\0name.png", png()),
        ("A.png", png()),
        ("a.png", png()),
        ("e\u0301.png", png()),
        ("\xe9.png", png()),
        ("CON.png", png()),
        ("link.png", {"type": tarfile.SYMTYPE, "linkname": outside}),
        ("hard.png", {"type": tarfile.LNKTYPE, "linkname": outside}),
        ("fifo.png", {"type": tarfile.FIFOTYPE}),
        ("device.png", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 5}),
    )


@case
def tar_of_sizes(folder: Path) -> None:
    tar(folder, ("a.png", png()), ("a.cls", b"0"), ("b.png", png()), ("b.cls", b"0"))
    path = folder / "a-000000.tar"
    data = bytearray(path.read_bytes())

    def with_size(at: int, size: bytes) -> bytes:
        changed = bytearray(data)
        changed[at + 124 : at + 136] = size
        changed[at + 148 : at + 156] = b" " * 8
        changed[at + 148 : at + 156] = b"%06o\0 " % sum(changed[at : at + 512])
        return bytes(changed)

    path.write_bytes(with_size(1024, b"77777777777\0"))
    (folder / "b-000000.tar").write_bytes(with_size(0, b"\x80" + b"\xff" * 11))
    (folder / "c-000000.tar").write_bytes(with_size(1024, b"\xff" * 12))
    (folder / "d-000000.tar").write_bytes(with_size(1024, b"-1234567890\0"))


@case
def tar_headers_of_pax(folder: Path) -> None:
    with tarfile.open(folder / "a-000000.tar", "w", format=tarfile.PAX_FORMAT) as file:
        for number in range(5):
            member = tarfile.TarInfo(f"{number}.png")
            member.size = len(png())
            member.pax_headers = {
                "comment": "x" * 1_000_000,
                "GNU.sparse.major": "1",
                "GNU.sparse.realsize": "9" * 30,
                "path": "../" * 1000 + f"{number}.png",
            }
            file.addfile(member, io.BytesIO(png()))


@case
def tar_of_json(folder: Path) -> None:
    tar(
        folder,
        ("a.png", png()),
        ("a.json", b"[" * 100_000),
        ("b.png", png()),
        ("b.json", b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
        ("c.png", png()),
        ("c.cls", b"9" * 100_000),
        ("d.npy", NPY["shape"]),
        ("d.cls", b"-1"),
        ("e.txt", b"\0\xff" + ESCAPES.encode()),
    )


# ---- tables --------------------------------------------------------------------------------------


@case
def csv_of_odd_columns(folder: Path) -> None:
    names = f'"{FORGING}","../x","a\0b","A","a","e\u0301","\xe9","","image","' + "y" * 99_999 + '"'
    rows = ",".join(["1"] * 9)
    (folder / "a.csv").write_text(f"{names}\n{rows},../canary.png\n{rows},{FORGING}\n")


@case
def csv_of_paths(folder: Path) -> None:
    outside = folder.parent / "canary.png"
    (folder / "a.png").write_bytes(png())
    names = ("a.png", "../canary.png", str(outside), "in/../../canary.png", "link.png", "a\0.png")
    (folder / "a.csv").write_text("image,label\n" + "".join(f"{name},1\n" for name in names))


@case
def json_lines_nested(folder: Path) -> None:
    lines = [
        '{"a": 1}',
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"a":' * 50_000 + "1" + "}" * 50_000,
        '{"a": ' + "9" * 100_000 + "}",
        '{"a": 1e999999, "a": 2, "\\u0000": 3, "\\ud800": "\\udfff"}',
        '{"a": [' + "[]," * 100_000 + "1]}",
    ]
    (folder / "a.jsonl").write_text("\n".join(lines))


@case
def json_of_a_long_line(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"a": "' + "x" * 40_000_000)


def parquet(folder: Path, metadata: dict[bytes, bytes] | None = None, **columns: Any) -> Path:
    arrow = pytest.importorskip("pyarrow")

    table = arrow.table(columns or {"a": list(range(1000)), "b": ["x"] * 1000})
    pytest.importorskip("pyarrow.parquet").write_table(
        table.replace_schema_metadata(metadata), folder / "a.parquet"
    )
    return folder / "a.parquet"


@case
def parquet_cut(folder: Path) -> None:
    data = parquet(folder).read_bytes()
    (folder / "a.parquet").write_bytes(data[:-9])


@case
def parquet_footer_of_4_gigabytes(folder: Path) -> None:
    path = parquet(folder)
    path.write_bytes(path.read_bytes()[:-8] + b"\xff\xff\xff\x7fPAR1")


@case
def parquet_changed(folder: Path) -> None:
    data = parquet(folder).read_bytes()
    random = np.random.default_rng(0)
    for number in range(10):
        changed = bytearray(data)
        for at in random.integers(4 if number % 2 else len(data) - 900, len(data) - 8, 4):
            changed[at] = random.integers(256)
        (folder / f"{number}").mkdir()
        (folder / f"{number}" / "a.parquet").write_bytes(changed)


@case
def parquet_bomb(folder: Path) -> None:
    arrow = pytest.importorskip("pyarrow")

    text = arrow.DictionaryArray.from_arrays(np.zeros(2000, np.int32), ["x" * 1_000_000])
    pytest.importorskip("pyarrow.parquet").write_table(
        arrow.table({"a": text}), folder / "a.parquet", store_schema=False, compression="zstd"
    )


@case
def parquet_of_odd_columns(folder: Path) -> None:
    parquet(folder, **{FORGING: [1], "../x": [1], "a\0b": [1], "A": [1], "a": [1], "": [1]})


@case
def parquet_of_paths(folder: Path) -> None:
    outside = str(folder.parent / "canary.png")
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": [FORGING]}}
    info = json.dumps({"info": {"features": features}}).encode()
    images = [
        {"bytes": png(), "path": "../../escaped.png"},
        *({"bytes": None, "path": name} for name in ("../canary.png", outside, "a\0.png")),
    ]
    parquet(folder, {b"huggingface": info}, image=images, label=[0, 0, 0, 2**40])


@case
def parquet_metadata_nested(folder: Path) -> None:
    parquet(folder, {b"huggingface": b"[" * 200_000, b"ARROW:schema": b"!" * 99, b"pandas": b"{"})


@case
def feather_cut(folder: Path) -> None:
    arrow = pytest.importorskip("pyarrow")

    pytest.importorskip("pyarrow.feather").write_feather(
        arrow.table({"a": list(range(1000))}), folder / "a.feather"
    )
    data = (folder / "a.feather").read_bytes()
    for number, at in enumerate(range(8, len(data), max(1, len(data) // 10))):
        (folder / f"{number}").mkdir()
        changed = data[:at] + b"\xff" * 8 + data[at + 8 :]
        (folder / f"{number}" / "a.feather").write_bytes(changed)


# ---- documents -----------------------------------------------------------------------------------

LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@case
def yaml_of_aliases(folder: Path) -> None:
    (folder / "data.yaml").write_text(f"{LAUGHS}train: images\nval: images\nnames: *a11\n")
    (folder / "images").mkdir()
    (folder / "images" / "a.png").write_bytes(png())
    (folder / "images" / "a.txt").write_text("0 .5 .5 .1 .1\n")


@case
def yaml_of_paths(folder: Path) -> None:
    text = "path: ../..\ntrain: ../../\nval: /\ntest: [/etc, ../canary.png]\nnames: [a]\n"
    (folder / "data.yaml").write_text(
        text + "download: !!python/object/apply:os.system ['touch ran']"
    )
    (folder / "images").mkdir()
    (folder / "images" / "a.png").write_bytes(png())


@case
def yaml_nested(folder: Path) -> None:
    (folder / "data.yaml").write_text(f"train: a\nval: a\nnames: {'[' * 100_000}\n")


@case
def readme_of_hugging_face(folder: Path) -> None:
    configs = "configs:\n- config_name: ../x\n  data_files:\n  - split: ../y\n    path: ../**\n"
    infos = "dataset_info:\n  features:\n  - name: image\n    dtype: image\n"
    (folder / "README.md").write_text(f"---\n{LAUGHS}{configs}{infos}---\n{FORGING}\n")
    (folder / "data").mkdir()
    parquet(folder / "data").rename(folder / "data" / "train-00000-of-00001.parquet")


@case
def saved_dataset_of_hugging_face(folder: Path) -> None:
    files = [{"filename": name} for name in ("../canary.png", "/etc/passwd", FORGING, "a.arrow")]
    (folder / "state.json").write_text(json.dumps({"_data_files": [*files, {}, 5]}))
    (folder / "dataset_info.json").write_text('{"features": ' + '{"a": ' * 50_000)
    (folder / "a.arrow").write_bytes(b"\xff\xff\xff\xff" + b"\xff\xff\xff\x7f" * 99)


@case
def splits_of_hugging_face(folder: Path) -> None:
    names = ["../..", "/etc", FORGING, "train", 5, "train/../.."]
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": names}))
    (folder / "train").mkdir()
    (folder / "train" / "state.json").write_text('{"_data_files": [{"filename": "a.arrow"}]}')
    (folder / "train" / "dataset_info.json").write_text("{}")
    (folder / "train" / "a.arrow").symlink_to(folder.parent / "canary.png")


def tfds(folder: Path, info: Any, features: Any) -> None:
    for name, document in (("dataset_info", info), ("features", features)):
        text = document if isinstance(document, str) else json.dumps(document)
        (folder / f"{name}.json").write_text(text)
    data = rs.encode_example({"a": 1, "image": png()})
    (folder / "x-train.tfrecord-00000-of-00001").write_bytes(encode_records([data]))


TENSOR = {
    "pythonClassName": "tensorflow_datasets.core.features.tensor_feature.Tensor",
    "tensor": {"shape": {"dimensions": [str(2**62), "-5", "9" * 5000]}, "dtype": "int64"},
}

SCALAR = {**TENSOR, "tensor": {"shape": {}, "dtype": "int64"}}


def features_dict(features: Any) -> Any:
    return {
        "pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
        "featuresDict": {"features": features},
    }


def tfds_info(**others: Any) -> Any:
    split = {
        "name": "train",
        "shardLengths": ["1"],
        "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
    }
    return {
        "name": "x",
        "version": "1.0.0",
        "fileFormat": "tfrecord",
        "splits": [{**split, **others}],
    }


CASES |= {
    "tfds_nested": lambda folder: tfds(folder, tfds_info(), '{"a": ' * 100_000),
    "tfds_features_in_features": lambda folder: tfds(
        folder,
        tfds_info(),
        '{"pythonClassName": "x.FeaturesDict", "featuresDict": {"features": {"a": ' * 300
        + "{}"
        + "}}}" * 300,
    ),
    "tfds_shapes": lambda folder: tfds(folder, tfds_info(), features_dict({"a": TENSOR})),
    "tfds_names": lambda folder: tfds(
        folder,
        tfds_info(),
        features_dict({FORGING: TENSOR, "../x": TENSOR, "a\0b": TENSOR, "": {}}),
    ),
    "tfds_lengths": lambda folder: tfds(
        folder, tfds_info(shardLengths=[str(10**30), "x", -1]), features_dict({"a": SCALAR})
    ),
    "tfds_many_lengths": lambda folder: tfds(
        folder, tfds_info(shardLengths=["1"] * 2_000_000), features_dict({"a": SCALAR})
    ),
    "tfds_templates": lambda folder: tfds(
        folder,
        tfds_info(
            name="../..", filepathTemplate="../../{SPLIT}/{0.__class__}{SHARD_INDEX:>999999999}"
        ),
        features_dict({"a": SCALAR}),
    ),
    "tfds_empty_lists": lambda folder: tfds(folder, '{"a": [' + "[]," * 100_000 + "1]}", "{}"),
}


def lerobot(folder: Path, features: Any = None, **info: Any) -> None:
    lerobot_folder.write(folder, "image")
    known = json.loads((folder / "meta/info.json").read_text())["features"]
    lerobot_folder.change_info(folder, features=known | (features or {}), **info)


@case
def lerobot_videos_that_name_other_files(folder: Path) -> None:
    lerobot(folder, {"observation.images.front": lerobot_folder.feature("video", 48, 64, 3)})
    prefix = "videos/observation.images.front"
    zeros = [0, 0, 0, 0]
    places = {f"{prefix}/{name}_index": zeros for name in ("chunk", "file")}
    lerobot_folder.change_episodes(folder, **places, **{f"{prefix}/from_timestamp": [0.0] * 4})
    (folder / prefix / "chunk-000").mkdir(parents=True)
    text = f"#EXTM3U\n#EXTINF:1,\nfile://{folder.parent}/canary.png\n#EXT-X-ENDLIST\n"
    (folder / prefix / "chunk-000/file-000.mp4").write_text(text)


CASES |= {
    "lerobot_templates": lambda folder: lerobot(
        folder, data_path="{0.__class__}{chunk_index:>999999999}"
    ),
    "lerobot_above": lambda folder: lerobot(folder, data_path="../canary.png"),
    "lerobot_names": lambda folder: lerobot(
        folder,
        {FORGING: lerobot_folder.feature("int64", 1), "../x": lerobot_folder.feature("int64", 2)},
        robot_type=FORGING,
        splits={FORGING: "0:1", "../..": "1:9"},
    ),
    "lerobot_shapes": lambda folder: lerobot(
        folder, {"action": lerobot_folder.feature("float32", *[1 << 24] * 999)}
    ),
    "lerobot_nested": lambda folder: (
        lerobot(folder),
        (folder / "meta/info.json").write_text('{"codebase_version": ' + "[" * 500_000),
    ),
}


# ---- names and links -----------------------------------------------------------------------------


@case
def names_that_are_twins(folder: Path) -> None:
    for name in ("A", "a", "e\u0301", "\xe9", "CON", "nul.txt", "x" * 200, "a.", "a ", "\u202e"):
        (folder / name).mkdir()
        for file in ("A.png", "a.png", "e\u0301.png", "\xe9.png", f"{FORGING}.png"):
            (folder / name / file).write_bytes(png())


@case
def links(folder: Path) -> None:
    in_classes(folder)
    (folder / "cat" / "circle.png").symlink_to("circle.png")
    (folder / "cat" / "nothing.png").symlink_to("nothing")
    (folder / "cat" / "device.png").symlink_to("/dev/zero")
    (folder / "dog").symlink_to(".")
    os.mkfifo(folder / "cat" / "pipe.png")


@case
def labels_that_are_devices(folder: Path) -> None:
    (folder / "images").mkdir()
    (folder / "images" / "a.png").write_bytes(png())
    for name in ("classes.txt", "data.yaml", "annotations.json", "a.csv", "README.md"):
        (folder / name).symlink_to("/dev/zero")
    (folder / "images" / "a.txt").symlink_to("/dev/zero")


@pytest.fixture(scope="module")
def limited() -> Iterator[subprocess.Popen[str]]:
    """A new process that forks for each case: this one may have threads and libraries of others."""
    pytest.importorskip("resource")
    command = [sys.executable, "-c", f"from {__name__} import serve; serve()"]
    repository = Path(__file__).parent.parent.parent
    with subprocess.Popen(
        command, cwd=repository, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_sources_do_not_crash_commands(
    tmp_path: Path, limited: subprocess.Popen[str], name: str
) -> None:
    """In a process of its own, as native code may end it, with limits of memory and time."""
    folder, failure = tmp_path / "in", tmp_path / "failure.txt"
    folder.mkdir()
    (tmp_path / "canary.png").write_bytes(png() + CANARY)
    CASES[name](folder)
    assert limited.stdin is not None
    assert limited.stdout is not None
    print(tmp_path, file=limited.stdin, flush=True)
    status = int(limited.stdout.readline())
    assert not status, failure.read_text() if failure.exists() else f"ended by signal {status}"


def serve() -> None:
    """Attack in the folders of standard input, one a line, and print how each attack ended."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            attack_within_limits(Path(line.rstrip("\n")))
        print(os.waitpid(child, 0)[1], flush=True)


def attack_within_limits(out: Path) -> NoReturn:
    import resource

    try:
        os.dup2(2, 1)  # standard output is for the status
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + ROOM_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        signal.alarm(SECONDS)
        attack(out / "in", out)
        os._exit(0)
    except BaseException:
        (out / "failure.txt").write_text(traceback.format_exc())
    finally:
        os._exit(1)


def attack(folder: Path, out: Path) -> None:
    targets = [path for path in sorted(folder.iterdir()) if path.is_file()]
    targets += [path for path in sorted(folder.iterdir()) if path.name.isdigit()]
    if len(targets) != 1:
        targets.append(folder)
    for target in targets:
        run(COMMANDS, target, out)
        if (out / "packed").exists():
            run(COMMANDS_OF_PACKED, out / "packed", out)
        for path in out.rglob("*"):
            if path.is_file() and not path.is_relative_to(folder) and path.name != "canary.png":
                assert CANARY not in path.read_bytes(), path
        assert {path.name for path in out.iterdir()} <= OUTPUTS
        for name in OUTPUTS - {"in", "canary.png"}:
            shutil.rmtree(out / name, ignore_errors=True)
    assert not Path("ran").exists()


def run(commands: tuple[tuple[str, ...], ...], target: Path, out: Path) -> None:
    for command in commands:
        code, shown = ran(command, target, out)
        assert code in (0, 1, 2), command
        assert "out of memory" not in shown, command
        moving = {char for char in shown if not char.isprintable() and char != "\n"}
        assert not moving or all("\ud800" <= char <= "\udfff" for char in moving), command
        assert FORGED not in {line.strip()[: len(FORGED)] for line in shown.splitlines()}, command
