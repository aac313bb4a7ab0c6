"""Runs what recordsmith promises with NumPy and msgspec alone, and the errors of all else.

    python tests/core_alone.py

`tests/test_core_alone.py` hides the other libraries from it; CI runs it with the wheel alone.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import recordsmith as rs

LABEL = "image/class/label"


def write(folder: Path) -> None:
    """Write 100 records in two shards, with an image in each that nothing here decodes."""
    folder.mkdir()
    for shard in range(2):
        with rs.ShardWriter(folder / f"train-0000{shard}-of-00002.tfrecord") as writer:
            for number in range(50 * shard, 50 * shard + 50):
                example = {LABEL: [number % 3], "score": [0.5 * number], "name": [b"rose"]}
                writer.write_example(example | {"image/encoded": [png()]})


def png() -> bytes:
    """An image of one grey pixel."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes(2)))
    return b"\x89PNG\r\n\x1a\n" + header + pixels + chunk(b"IEND", b"")


def check_records() -> None:
    write(Path("data"))
    dataset = rs.open("data")
    assert len(dataset) == 100
    assert dataset[7]["score"].tolist() == [3.5]
    assert [rs.decode_example(payload)[LABEL][0] for payload in dataset.records()][:4] == [
        0,
        1,
        2,
        0,
    ]
    columns = dataset.read_columns([LABEL, "score", "name"])
    assert columns["score"].sum() == 0.5 * 4950
    assert columns["name"][0] == b"rose"
    assert len(dataset.filter(f"{LABEL} == 1").shuffle(seed=1)) == 33
    with open("data/train-00000-of-00002.tfrecord", "rb") as stream:
        assert len(list(rs.read_records(stream))) == 50
    steps = rs.decode_sequence_example(rs.encode_sequence_example({"id": [1]}, {"a": [[1], [2]]}))
    assert steps.context["id"].tolist() == [1]


def check_jobs() -> None:
    assert rs.verify("data").is_good
    assert rs.inspect("data").record_count == 100
    assert rs.index("data").record_count == 100
    rs.reshard("data", "new", shards=3, shuffle=True)
    assert rs.diff("data", "new").is_equal
    rs.edit("new", "edited", drop=["name"], add={"year": 2026})
    assert rs.open("edited")[0]["year"].tolist() == [2026]
    with open("data/train-00001-of-00002.tfrecord", "r+b") as shard:
        shard.seek(40)
        shard.write(b"\xff\xff")
    assert not rs.verify("data").is_good
    assert rs.salvage("data", "rescued").record_count == 99
    rs.schema("new").save("schema.json")
    assert rs.verify("new", schema="schema.json").is_good
    assert rs.stats("new").record_count == 100
    assert len(rs.card("new").croissant["distribution"]) == 4


def check_packing() -> None:
    rows = [{"x": number, "text": "abc"} for number in range(20)]
    rs.pack(rs.Rows(rows), "rows", shards=2)
    assert sorted(rs.open("rows").read_columns(["x"])["x"].tolist()) == list(range(20))


def check_loading() -> None:
    loader = rs.Loader(rs.open("new"), [LABEL, "score"], batch_size=16, shuffle=True, seed=3)
    batches = iter(loader)
    first = [next(batches) for _ in range(3)]
    state = loader.state_dict()
    assert first[0]["score"].dtype == np.float32
    resumed = rs.Loader(rs.open("new"), [LABEL, "score"], batch_size=16, shuffle=True, seed=3)
    resumed.load_state_dict(state)
    rest = np.concatenate([batch["score"] for batch in resumed])
    assert sorted([*np.concatenate([batch["score"] for batch in first]), *rest]) == [
        0.5 * number for number in range(100)
    ]


def check_missing() -> None:
    """What needs more names the extra to install."""
    features: dict[str, Any] = {"image": rs.Image(size=8)}
    for extra, call in (
        ("images", lambda: next(iter(rs.Loader(rs.open("new"), features, batch_size=2)))),
        ("images", lambda: rs.sheet("new", "sheet.png")),
        ("images", lambda: rs.verify("new", deep=True)),
        ("cli", lambda: rs.save_html(rs.inspect("new"), "page.html")),
        ("arrow", lambda: rs.open("new").to_arrow()),
        ("arrow", lambda: rs.export("new", "tables", "parquet")),
        ("remote", lambda: rs.open("s3://bucket/data")),
    ):
        error = None
        try:
            call()
        except rs.MissingExtraError as raised:
            error = raised
        assert error is not None, extra
        assert error.extra == extra, error
        assert f"pip install 'recordsmith[{error.extra}]'" in str(error), error


def check_command() -> None:
    """The command itself names the extra."""
    program = (
        "import sys; sys.argv[0] = 'recordsmith'; from recordsmith.__main__ import main; main()"
    )
    hidden = f"import sys; sys.modules.update({{n: None for n in {HIDDEN}}}); " if HIDDEN else ""
    process = subprocess.run(
        [sys.executable, "-c", hidden + program, "verify", "new"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2, process
    assert "pip install 'recordsmith[cli]'" in process.stderr, process
    assert "Traceback" not in process.stderr, process


def check_interpreter_lock() -> None:
    """No module of the core turns the lock of a free-threaded build on."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return
    for module in pkgutil.walk_packages(rs.__path__, "recordsmith."):
        try:
            importlib.import_module(module.name)
        except ImportError:  # of an extra
            continue
        assert not sys._is_gil_enabled(), module.name  # type: ignore[attr-defined]


HIDDEN = os.environ.get("HIDDEN_LIBRARIES", "").split()
"""Libraries that are installed and have to look as if they were not."""

if __name__ == "__main__":
    for name in HIDDEN:
        sys.modules[name] = None  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        for check in (
            check_records, check_jobs, check_packing, check_loading, check_missing, check_command,
            check_interpreter_lock,
        ):  # fmt: skip
            check()
            print(check.__name__, "passed")
        os.chdir("/")
