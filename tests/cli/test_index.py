from __future__ import annotations

from pathlib import Path

import recordsmith as rs


def test_own_indexes(run, packed: Path) -> None:
    outcome = run("index", packed)
    assert outcome.code == 0
    shards = sorted(packed.glob("*.tfrecord"))
    assert "4 shards" in outcome.out
    for shard in shards:
        assert f"  {packed}/.recordsmith/{shard.name}.index\n" in outcome.out
    for options, done in (((), "nothing to do"), (("--overwrite",), "wrote 4 indexes")):
        head = run("index", packed, *options).out.splitlines()[0]
        assert head.startswith(done)
        assert "9 records in 4" in head


def test_text_for_dali(run, packed: Path, tmp_path: Path) -> None:
    arguments = ("index", packed, "--split", "train", "--format", "dali", "--to", tmp_path / "idx")
    document = run(*arguments, "--json").document
    assert document["format"] == "dali"
    assert document["records"] == sum(file["records"] for file in document["files"]) == 6
    assert [file["is_new"] for file in document["files"]] == [True, True]
    for file in document["files"]:
        assert Path(file["path"]) == tmp_path / "idx" / f"{Path(file['shard']).name}.idx"
        assert len(Path(file["path"]).read_text().splitlines()) == file["records"]
    (tmp_path / "idx" / "train-00000-of-00002.tfrecord.idx").write_text("mine")
    refused = run(*arguments)
    assert refused.code == 2
    assert "train-00000-of-00002.tfrecord.idx" in refused.err
    outcome = run(*arguments, "--overwrite")
    head = outcome.out.splitlines()[0]
    assert head.startswith("wrote 1 index, ")
    assert "6 records in 2" in head
    assert "; 1 were" in head


def test_compressed_shards_have_no_index_for_dali(run, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord.gz", compression="gzip") as writer:
        writer.write_example({"a": 1})
    refused = run("index", tmp_path / "x.tfrecord.gz", "--format", "dali")
    assert refused.code == 2
    assert "recordsmith pack" in refused.err
