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
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.exporter import RecordFiles, WrittenFile
from recordsmith.exporting.images import get_bytes, read_image, read_mask
from recordsmith.wire import RecordWriter

_NO_SPLIT_NAME = re.compile(r"[^\w-]")
_RAW = frozenset((DEPTH, DTYPE, MASK_DTYPE))


class TfdsFiles(RecordFiles, format="tfds", what="for TensorFlow Datasets"):
    """Writes the records as TFDS stores them, and the documents that describe them."""

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self._out = out
        out.rename_split = _split_name
        known = _read_known(dataset)
        self._name = "dataset" if known is None else known.name
        self._converter = RecordConverter(dataset.class_names, known)
        self._images = TfdsImages(self._converter)
        self._survey = SchemaSurvey()
        self._sizes: Counter[str] = Counter()  # of the records of each split

    def formats_of(self, dataset: Dataset) -> Mapping[str, Any]:
        known = _read_known(dataset)
        return {} if known is None else {"tfds": known.to_json()}

    def file_names(self, split: str, count: int) -> Sequence[str]:
        return TfdsSplit(split, (0,) * count).file_names(self._name)

    def open(self, name: str, split: str) -> None:
        self._file, self._split = name, split
        self._writer = RecordWriter(self._out.open(name))

    def add(self, record: Features) -> None:
        converted = self._converter.convert(self._with_encoded_images(record))
        self._images.add(converted)
        payload = encode_example(converted)
        size = np.array([len(payload)], np.int64)
        self._survey.update(payload, np.zeros(1, np.int64), size)
        self._writer.write(payload)
        self._sizes[self._split] += len(payload)

    def close(self) -> None:
        self._out.close(self._file)

    def result(self) -> tuple[Any, ...]:
        return self._survey.counts().to_json(), self._images, self._sizes

    def describe(self, files: Sequence[WrittenFile], results: Iterable[Any]) -> None:
        counts = SchemaSurvey().counts()
        images = TfdsImages(self._converter)
        sizes: Counter[str] = Counter()
        for schema, seen, written in results:
            counts.merge(SchemaCounts.from_json(schema))
            images.merge(seen)
            sizes += written
        lengths: dict[str, list[int]] = {}
        for file in files:
            lengths.setdefault(file.split, []).append(file.record_count)
        description, problems = describe_records(
            counts.schema(), self._converter, images, self._name
        )
        for problem in problems:
            self._out.tally.problems.add(problem)
        described = [
            (TfdsSplit(self._out.split_name(split), tuple(of_split)), sizes[split])
            for split, of_split in lengths.items()
        ]
        for name, data in make_documents(description, described).items():
            self._out.write(name, data)

    def _with_encoded_images(self, example: Features) -> Mapping[str, Any]:
        """The example with raw pixels as PNG."""
        if self._converter.is_stored or not _RAW & example.keys():
            return example
        image = read_image(example, self._out.warn)
        mask = read_mask(example, image, self._out.warn)
        result: dict[str, Any] = dict(example)
        for key, encoded in ((IMAGE, image), (MASK, mask)):
            if encoded is not None and encoded.data is not get_bytes(example, key):
                result[key] = [encoded.data]
                for dropped in (DEPTH, DTYPE) if key == IMAGE else (MASK_DTYPE,):
                    result.pop(dropped, None)
        return result


def _split_name(split: str) -> str:
    """A name that TFDS can parse; `all` means all splits."""
    return "all_" if split == "all" else _NO_SPLIT_NAME.sub("_", split)


def _read_known(dataset: Dataset) -> TfdsDescription | None:
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
