"""A folder that TensorFlow Datasets loads: `tfds.builder_from_directory(folder).as_dataset()`.

    <name>-<split>.tfrecord-00000-of-00001, …
    features.json, dataset_info.json, <label>.labels.txt

The image is the feature `image`, its class `label`, its mask `mask`, and its objects are the
sequence `objects`; other features keep their keys. A dataset that was packed from TFDS gets the
features that it had there. Raw pixels become PNG.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.dataset.documents import NOT_AS_EXPECTED, describe_fault
from recordsmith.dataset.tfds.describing import TfdsImages, describe_records, make_documents
from recordsmith.dataset.tfds.features import TfdsDescription
from recordsmith.dataset.tfds.folder import TfdsSplit, read_description
from recordsmith.dataset.tfds.records import RecordConverter
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import Features, SchemaSurvey, encode_example
from recordsmith.example.keys import DEPTH, DTYPE, IMAGE, MASK, MASK_DTYPE
from recordsmith.example.schema import SchemaCounts
from recordsmith.exporting.export_writer import Divisible, ExportWriter
from recordsmith.exporting.images import read_image, read_mask
from recordsmith.exporting.record_shards import RecordFiles, name_files
from recordsmith.exporting.values import get_bytes
from recordsmith.wire import RecordWriter

_NO_SPLIT_NAME = re.compile(r"[^\w-]")
_RAW = frozenset((DEPTH, DTYPE, MASK_DTYPE))


class TfdsFiles(Divisible):
    """Writes the records as TFDS stores them, and the documents that describe them."""

    def __init__(self, shard_size_bytes: int | None = None) -> None:
        self._shard_size_bytes = shard_size_bytes

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self._out = out
        out.rename_split = _split_name
        known = read_known(dataset)
        self._name = "dataset" if known is None else known.name
        self._converter = RecordConverter(dataset.class_names, known)
        self._images = TfdsImages(self._converter)
        self._survey = SchemaSurvey()
        named = name_files(dataset, self._shard_size_bytes, out, self.part_names)
        self._splits = {
            split: _Shards(out, names, count) for split, (names, count) in named.items()
        }

    def add(self, example: Features, split: str, position: int) -> None:
        record = self._converter.convert(self._with_encoded_images(example))
        self._images.add(record)
        payload = encode_example(record)
        size = np.array([len(payload)], np.int64)
        self._survey.update(payload, np.zeros(1, np.int64), size)
        self._splits[split].add(payload)

    def part_names(self, split: str, count: int) -> Sequence[str]:
        return TfdsSplit(split, (0,) * count).file_names(self._name)

    def finish(self) -> None:
        for shards in self._splits.values():
            shards.finish()

    def result(self) -> dict[str, Any]:
        return {
            "schema": self._survey.counts().to_json(),
            "images": self._images.to_json(),
            "splits": {
                split: [shards.lengths, shards.size_bytes] for split, shards in self._splits.items()
            },
        }

    def describe(self, results: Iterable[Any]) -> None:
        counts = SchemaSurvey().counts()
        images = TfdsImages(self._converter)
        splits: dict[str, TfdsSplit] = {}
        sizes: Counter[str] = Counter()
        for result in results:
            counts.merge(SchemaCounts.from_json(result["schema"]))
            images.merge(result["images"])
            for split, (lengths, size_bytes) in result["splits"].items():
                known = splits.get(split) or TfdsSplit(self._out.split_name(split), ())
                splits[split] = replace(known, shard_lengths=(*known.shard_lengths, *lengths))
                sizes[split] += size_bytes
        description, problems = describe_records(
            counts.schema(), self._converter, images, self._name
        )
        for problem in problems:
            self._out.problems.add(problem)
        described = [(of_split, sizes[split]) for split, of_split in splits.items()]
        for name, data in make_documents(description, described).items():
            self._out.write(name, data)

    def _with_encoded_images(self, example: Features) -> Mapping[str, Any]:
        """The example with raw pixels as PNG."""
        if self._converter.is_stored or not _RAW & example.keys():
            return example
        image = read_image(example, self._out.warn)
        mask = read_mask(example, image, self._out.warn)
        found: dict[str, Any] = dict(example)
        for key, encoded in ((IMAGE, image), (MASK, mask)):
            if encoded is not None and encoded.data is not get_bytes(example, key):
                found[key] = [encoded.data]
                for dropped in (DEPTH, DTYPE) if key == IMAGE else (MASK_DTYPE,):
                    found.pop(dropped, None)
        return found


def _split_name(split: str) -> str:
    """A name that TFDS can parse; `all` means all splits."""
    return "all_" if split == "all" else _NO_SPLIT_NAME.sub("_", split)


class _Shards(RecordFiles):
    """Writes the shards of one split.

    size_bytes: of the records written so far.
    """

    def __init__(self, out: ExportWriter, names: Sequence[str], record_count: int) -> None:
        super().__init__(names, record_count)
        self.size_bytes = 0
        self._out = out

    def begin(self, name: str) -> None:
        self._writer = RecordWriter(self._out.open(name))

    def write(self, payload: bytes) -> None:
        self._writer.write(payload)
        self.size_bytes += len(payload)

    def end(self, name: str) -> None:
        self._out.close(name)


def read_known(dataset: Dataset) -> TfdsDescription | None:
    """How TFDS described the dataset, if it was packed from TFDS or is a folder of TFDS."""
    document = dataset.view.formats.get("tfds")
    if document is not None:
        try:
            return TfdsDescription.from_json(document)
        except NOT_AS_EXPECTED as error:
            raise CorruptDataError(
                Defect.BROKEN_MANIFEST,
                f"the description of the TFDS features is invalid: {describe_fault(error)}",
                remedy="Pack again.",
            ) from None
    folders = {shard.location.parent for shard in dataset.shards}
    return read_description(folders.pop()) if len(folders) == 1 else None
