"""What a dataset knows about its TFDS features: types, class names, and their keys in records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recordsmith.dataset.tfds.features import DICT, TfdsFeature, parse_features


@dataclass(frozen=True)
class TfdsDescription:
    """The features of a dataset as TFDS describes them.

    features: the tree of features.
    class_names: of labels and labeled images, by path.
    keys: standard keys of features, by path; others have their path as key.
    supervised: the paths of input and output; may be empty.
    name: of the dataset.
    is_stored: whether the records are as TFDS stores them.
    file_template: how TFDS finds the shards, if it can load the folder; empty for others.
    """

    features: TfdsFeature = field(default_factory=lambda: TfdsFeature(DICT))
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    supervised: tuple[str, ...] = ()
    name: str = "dataset"
    is_stored: bool = False
    file_template: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "features": self.features.to_json(),
            "class_names": {path: list(names) for path, names in self.class_names.items()},
            "keys": dict(self.keys),
            "supervised": list(self.supervised),
            "name": self.name,
            "is_stored": self.is_stored,
            "file_template": self.file_template,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TfdsDescription:
        """Restore a description from `to_json`."""
        return cls(
            parse_features(document["features"]),
            {str(k): tuple(map(str, names)) for k, names in document["class_names"].items()},
            {str(path): str(key) for path, key in document["keys"].items()},
            tuple(map(str, document["supervised"])),
            str(document["name"]),
            bool(document["is_stored"]),
            str(document["file_template"]),
        )
