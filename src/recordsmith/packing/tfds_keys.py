"""The preset `tfds`: records and shard names that TensorFlow Datasets loads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recordsmith.building import ShardResult
from recordsmith.dataset import DEFAULT_TEMPLATE, ClassNames, Manifest
from recordsmith.dataset.tfds.describing import TfdsImages, describe_records
from recordsmith.dataset.tfds.features import TfdsDescription
from recordsmith.dataset.tfds.records import RecordConverter
from recordsmith.dataset.tfds.roles import BOXES
from recordsmith.errors import OptionError, option
from recordsmith.example import Kind
from recordsmith.example.keys import BOX
from recordsmith.packing.keys import KeyScheme

PRESET = "tfds"
SHARD_NAMES = "dataset-{split}.tfrecord-{shard:05d}-of-{shards:05d}"
_NUMBERS = "{shard:05d}-of-{shards:05d}"
_NAME = re.compile(r"([A-Za-z]\w*)-\{split\}")


@dataclass(frozen=True)
class TfdsKeys(KeyScheme):
    """Converts records to those that TFDS stores.

    converter: converts each record.
    images: has seen the images of the converted records.
    """

    converter: RecordConverter = field(default_factory=lambda: RecordConverter(None, None))
    images: TfdsImages = field(
        default_factory=lambda: TfdsImages(RecordConverter(None, None)), compare=False
    )

    @classmethod
    def of(cls, class_names: ClassNames | None, tfds: Mapping[str, Any] | None) -> TfdsKeys:
        """The scheme for samples with these classes and the description of their source."""
        known = None if tfds is None else TfdsDescription.from_json(tfds)
        converter = RecordConverter(class_names, known)
        return cls(PRESET, {}, converter=converter, images=TfdsImages(converter))

    def new_key(self, key: str) -> str | None:
        return self.converter.path_of(BOXES if key in BOX else key)

    def apply(self, features: Mapping[str, Any]) -> dict[str, Any]:
        record = self.converter.convert(features)
        self.images.add(record)
        return record

    def renamed(self, values: Mapping[str, Kind]) -> dict[str, Kind]:  # type: ignore[override]
        return self.converter.kinds(values)

    def images_seen(self) -> Mapping[str, Any]:
        return self.images.to_json()

    def description(
        self, manifest: Manifest, shard_names: str, results: Iterable[ShardResult]
    ) -> tuple[dict[str, Any], list[str]]:
        """Describe the packed records, for the manifest; with notices."""
        for result in results:
            self.images.merge(result.images)
        name, template = tfds_template(shard_names)
        found, problems = describe_records(manifest.schema, self.converter, self.images, name)
        return replace(found, file_template=template).to_json(), problems


def tfds_template(shard_names: str) -> tuple[str, str]:
    """The name of the dataset and TFDS's template for a template of shard names."""
    template = shard_names.replace("{split}", "{SPLIT}").replace(_NUMBERS, "{SHARD_X_OF_Y}")
    if "tfrecord" not in template:
        template += ".tfrecord"
    template = template.replace("tfrecord", "{FILEFORMAT}", 1)
    if re.sub(r"\{(SPLIT|SHARD_X_OF_Y|FILEFORMAT)\}", "", template).count("{"):
        raise OptionError(
            f"{option('keys', PRESET)} does not support these shard names",
            option="shard_names",
            value=shard_names,
            expected=f"{SHARD_NAMES!r}, with another name at the start",
        )
    match = _NAME.match(shard_names)
    return match[1].lower() if match else "dataset", template


def shard_names_for(keys: object, shard_names: str) -> str:
    """The template of shard names: by default that of TFDS for its preset."""
    return SHARD_NAMES if keys == PRESET and shard_names == DEFAULT_TEMPLATE else shard_names
