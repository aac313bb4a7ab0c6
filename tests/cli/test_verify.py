from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from PIL import Image

import recordsmith as rs

from ..places import flip


def test_a_good_dataset(run, packed: Path) -> None:
    outcome = run("verify", packed)
    assert outcome.code == 0
    assert outcome.out.startswith("good: 9 intact ")
    assert " 4 shards" in outcome.out.splitlines()[0]
    document = run("verify", packed, "--json").document
    assert document["records"] == 9
    assert document["defects"] == []


def test_defects_are_listed_with_their_place(run, packed: Path) -> None:
    shard = packed / "train-00000-of-00002.tfrecord"
    data = bytearray(shard.read_bytes())
    first_length = int.from_bytes(data[:8], "little")
    data[first_length + 16 + 12 + 5] ^= 1
    shard.write_bytes(data)
    outcome = run("verify", packed)
    assert outcome.code == 1
    assert outcome.out.startswith("1 defect")
    assert f"{shard}, record 1, byte {first_length + 16}: payload-crc-mismatch" in outcome.out
    outcome = run("verify", packed, "--json")
    assert outcome.code == 1
    (defect,) = outcome.document["defects"]
    assert {key: defect[key] for key in ("defect", "path", "record", "offset")} == {
        "defect": "payload-crc-mismatch",
        "path": str(shard),
        "record": 1,
        "offset": first_length + 16,
    }
    assert outcome.document["records"] == 8


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compression_for_tensorflow(run, numbered, tmp_path: Path, compression: str) -> None:
    """TensorFlow reports compressed files as damaged."""
    packed = numbered.write_shard(tmp_path / "a.tfrecord", [1, 2], compression)
    good = run("verify", packed)
    assert good.code == 0
    assert f"compressed with {compression}" in good.out
    assert f'compression_type="{compression.upper()}"' in good.out
    numbered.write_shard(tmp_path / "b.tfrecord", [1, 2])
    assert re.search(rf"\b1 of 2 .*with {compression}", run("verify", tmp_path).out)
    assert "compressed" not in run("verify", tmp_path / "b.tfrecord").out


def test_lost_records_are_named(run, numbered, tmp_path: Path) -> None:
    path = numbered.write_shard(tmp_path / "a.tfrecord", [1, 2, 3])
    flip(path, 3)  # in the first length
    out = run("verify", path).out
    assert "Records after the damage were not checked: `recordsmith salvage` searches them" in out


def test_a_missing_shard(run, packed: Path) -> None:
    (packed / "train-00001-of-00002.tfrecord").unlink()
    outcome = run("verify", packed)
    assert outcome.code == 1
    assert "missing-shard (1): A shard" in outcome.out  # the explanation
    document = run("verify", packed, "--json").document
    assert document["expected"] == 9 > document["records"]
    assert f": {document['records']} intact of 9 records " in outcome.out
    assert " 3 shards" in outcome.out.splitlines()[0]
    whole = run("verify", packed, "--split", "validation", "--json").document
    assert whole["expected"] == whole["records"] > 0
    shard = packed / "train-00000-of-00002.tfrecord"  # without a manifest the number is unknown
    assert run("verify", shard, "--json").document["expected"] is None


def test_many_equal_defects_are_counted(run, tmp_path: Path) -> None:
    rules, path = tmp_path / "rules.json", tmp_path / "a.tfrecord"
    for keys in (["old", "kept"], ["new", "kept"]):
        with rs.ShardWriter(path, overwrite=True) as writer:
            for number in range(30):
                writer.write_example(dict.fromkeys(keys, number))
        if keys[0] == "old":
            assert run("schema", path, "-o", rules).code == 0
    outcome = run("verify", path, "--schema", rules)
    lost = [line for line in outcome.out.splitlines() if ": missing-feature: feature" in line]
    assert len(lost) == 10
    assert [f"record {n}, " in lost[n] for n in range(10)] == [True] * 10
    assert "  … and 20 more" in outcome.out
    assert outcome.out.startswith("60 defects")
    document = run("verify", path, "--schema", rules, "--json").document
    found = [(each["feature"], each["record"]) for each in document["defects"]]
    assert sorted(found) == sorted((key, n) for key in ("old", "new") for n in range(30))


def test_other_libraries_print_nothing(run_process, tmp_path: Path) -> None:
    """OpenCV would log a truncated image without its file and record."""
    written = io.BytesIO()
    Image.effect_noise((90, 90), 50).save(written, "PNG")
    with rs.ShardWriter(tmp_path / "cut.tfrecord") as writer:
        cut = written.getvalue()[: written.tell() // 2]
        writer.write_example({"image/encoded": cut, "image/format": "png"})
    outcome = run_process("verify", tmp_path / "cut.tfrecord", "--deep")
    assert (outcome.code, outcome.err) == (1, "")
    assert "unreadable-image" in outcome.out
