"""Manifests, labels, label maps, and the notes of jobs: small texts that decide much.

The invariant: any JSON gives a Manifest or broken-manifest; what a Manifest names lies in its
folder, each once. Opening the folder gives a dataset whose
length is a number that its files could hold, or an error of ours. Any labels give names or
none; any label map names or an OptionError; any note of a job is read as one, or as none.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

from harness import mutated, mutated_json

import recordsmith as rs
from recordsmith.dataset import (
    LARGEST_LABEL,
    MANIFEST_NAME,
    BegunNote,
    Manifest,
    ShardEntry,
    begun_location,
    label_map_to_bytes,
    labels_to_bytes,
    read_begun_note,
    read_label_map,
    read_labels,
    read_manifest,
)
from recordsmith.format.example import Schema
from recordsmith.stores import as_folder
from recordsmith.writing import ShardResult
from recordsmith.writing.building.shards import Occurrences, done_location, load_result, save_result

NAMES = (None, "daisy", 'a "b" \\c', "it's", "müsli", "", "x\ty")


class Fuzz:
    watches_memory = False
    reached = (
        "manifests",
        "broken",
        "opened",
        "labels",
        "label maps",
        "notes",
        "publishing",
    )

    def __init__(self, folder: Path) -> None:
        self.last = b""
        self.folder = folder
        entries = []
        for number in range(2):
            path = folder / f"train-0000{number}-of-00002.tfrecord"
            with rs.ShardWriter(path) as writer:
                for row in range(3):
                    writer.write_example({"id": row, "text": "x", "score": 0.5})
            entries.append(writer.entry())
        schema = rs.open(folder).schema
        manifest = Manifest(
            {"train": tuple(entries[:1]), "test": tuple(entries[1:])},
            schema,
            {"train": schema, "test": schema},
            "none",
            NAMES,
            {"fingerprint": "x", "skipped": [], "bytes_in": 5, "source": {"kind": "Rows"}},
        )
        self.manifest = manifest.to_bytes()
        self.labels = [labels_to_bytes(NAMES), b"1:a\r\n2:b", b"0:x\n\n 5 :y\n", b"item {"]
        self.maps = [
            label_map_to_bytes(NAMES),
            b"# c\nitem <id: 1, name: 'a' keypoints { id: 2 }>\nitem{id:2;name:'\\303\\266'}",
        ]
        (folder / ".recordsmith").mkdir(exist_ok=True)
        result = ShardResult(
            ShardEntry("s", 3, 9, 1), Schema("none", 0), 9, {1: "why"}, {"n": Occurrences(1, ["p"])}
        )
        save_result(as_folder(folder), None, replace(result, fingerprint="plan"))
        self.note = done_location(folder, "s").read_bytes()
        self.note = BegunNote("x", ("a.tfrecord", "b")).to_bytes()

    def text(self, good: bytes, dice: random.Random) -> bytes:
        if dice.random() < 0.8:
            document = json.loads(good)
            for _ in range(dice.choice((0, 1, 1, 2, 4))):
                document = mutated_json(document, dice)
            self.last = json.dumps(document).encode()
        else:
            self.last = mutated(good, [good], dice)
        return self.last

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        choice = dice.randrange(8)
        if choice < 4:
            self.one_manifest(dice, counts)
        elif choice == 4:
            self.last = mutated(dice.choice(self.labels), self.labels, dice)
            (self.folder / "labels.txt").write_bytes(self.last)
            names = read_labels(as_folder(self.folder))
            assert names is None or len(names) <= LARGEST_LABEL + 1
            counts["labels"] += names is not None
        elif choice == 5:
            self.last = mutated(dice.choice(self.maps), self.maps, dice)
            path = self.folder / "map.pbtxt"
            path.write_bytes(self.last)
            try:
                read_label_map(path)
                counts["label maps"] += 1
            except rs.OptionError:
                counts["no label maps"] += 1
        elif choice == 6:
            done_location(as_folder(self.folder), "s").put(self.text(self.note, dice))
            note = load_result(as_folder(self.folder), "plan", lambda: None, "s", trusting=True)
            assert note is None  # there is no such shard
            counts["notes"] += 1
        else:
            begun_location(as_folder(self.folder)).put(self.text(self.note, dice))
            note = read_begun_note(as_folder(self.folder))
            assert note is not None
            assert all(Path(name).name == name for name in note.removed)
            counts["publishing"] += bool(note.removed)
            begun_location(as_folder(self.folder)).delete()

    def one_manifest(self, dice: random.Random, counts: Counter[str]) -> None:
        (self.folder / MANIFEST_NAME).write_bytes(self.text(self.manifest, dice))
        try:
            manifest = read_manifest(self.folder)
        except rs.CorruptDataError as error:
            assert error.defect is rs.Defect.BROKEN_MANIFEST  # noqa: PT017
            counts["broken"] += 1
            return
        assert manifest is not None
        files = [entry.file for entries in manifest.splits.values() for entry in entries]
        assert len(set(files)) == len(files)
        assert all((self.folder / file).parent == self.folder for file in files)
        counts["manifests"] += 1
        assert json.loads(manifest.to_bytes())["records"] == manifest.record_count
        try:
            dataset = rs.open(self.folder)
        except rs.RecordsmithError:
            counts["not opened"] += 1
            return
        counts["opened"] += 1
        assert 0 <= len(dataset) <= 1032 * sum(shard.size_bytes for shard in dataset.shards)
        try:
            list(dataset)
            rs.inspect(self.folder).to_json()
        except rs.RecordsmithError:
            counts["not read"] += 1
