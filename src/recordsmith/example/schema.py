"""Which features does a dataset have? Inferred from the records themselves.

`SchemaSurvey` counts over any number of blocks; `infer_schema` reads its counts. Nothing is
decoded: lengths are counted on the wire, and bytes are looked at only to tell pictures and text
from other bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import kernel
from recordsmith.example.payload import KIND_NAMES, PAYLOAD_KINDS

Content: TypeAlias = Literal["image", "text", "raw"]
DatasetPayload: TypeAlias = Literal[
    "Example", "SequenceExample", "ELWC", "Event", "other", "mixed", "none"
]

# where each message keeps its features: section of the schema -> (field, is it FeatureLists)
_SECTIONS: dict[str, dict[str, tuple[int, bool]]] = {
    "Example": {"features": (1, False)},
    "SequenceExample": {"context": (1, False), "feature_lists": (2, True)},
    "ELWC": {"context": (2, False), "examples": (1, False)},
}


@dataclass(frozen=True)
class FeatureSchema:
    """What all records together say about one feature.

    kind: bytes, float or int64; "mixed" if records disagree, "none" if none has a kind.
    min_length, max_length: of its list of values, over the records that carry it.
    present: how many records carry it (of a ranking list: how many of its Examples).
    shape: of one example, () or (n,), if every record has as many values; None if ragged.
    content: of bytes: image, text (UTF-8 without control characters) or raw; else None.
    value_bytes: how many bytes its values take on the wire.
    min_steps, max_steps: of a feature list: how many steps; else None.
    """

    kind: Literal["bytes", "float", "int64", "mixed", "none"]
    min_length: int
    max_length: int
    present: int
    shape: tuple[int, ...] | None = None
    content: Content | None = None
    value_bytes: int = 0
    min_steps: int | None = None
    max_steps: int | None = None

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict; keys that do not apply are left out."""
        document: dict[str, Any] = {
            "kind": self.kind,
            "shape": None if self.shape is None else list(self.shape),
            "min_length": self.min_length,
            "max_length": self.max_length,
            "present": self.present,
            "value_bytes": self.value_bytes,
        }
        if self.content is not None:
            document["content"] = self.content
        if self.min_steps is not None:
            document |= {"min_steps": self.min_steps, "max_steps": self.max_steps}
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> FeatureSchema:
        shape = document.get("shape")
        return cls(**{**document, "shape": None if shape is None else tuple(shape)})


@dataclass(frozen=True)
class Schema:
    """Which features a dataset has.

    payload: what its records are; "mixed" if they differ, "none" if there are no records.
    record_count: how many records were counted.
    sections: where the features are: "features" for Examples; "context" and "feature_lists" for
        SequenceExamples; "context" and "examples" for ranking lists (ELWC); none for others.
    """

    payload: DatasetPayload
    record_count: int
    sections: Mapping[str, Mapping[str, FeatureSchema]] = field(default_factory=dict)

    @property
    def features(self) -> Mapping[str, FeatureSchema]:
        """The features of Examples, by key."""
        return self.sections.get("features", {})

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict: payload, records, and a key for each section."""
        sections = {
            name: {key: feature.to_json() for key, feature in section.items()}
            for name, section in self.sections.items()
        }
        return {"payload": self.payload, "records": self.record_count, **sections}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Schema:
        sections = {
            name: {key: FeatureSchema.from_json(feature) for key, feature in section.items()}
            for name, section in document.items()
            if name not in ("payload", "records")
        }
        return cls(document["payload"], document["records"], sections)


class SchemaSurvey:
    """Counts the features of payloads, block by block."""

    def __init__(self) -> None:
        self._payloads = [0] * len(PAYLOAD_KINDS)
        self._record_count = 0
        self._surveys: dict[tuple[str, str], kernel.FeatureSurvey] = {}

    def update(self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> None:
        """Count the payloads at buffer[starts[i]:starts[i] + lengths[i]]."""
        kinds = np.empty(len(starts), np.uint8)
        kernel.classify_many(buffer, starts, lengths, kinds)
        for number, payload in enumerate(PAYLOAD_KINDS):
            chosen = kinds == number
            self._payloads[number] += int(np.count_nonzero(chosen & (lengths > 0)))
            if payload not in _SECTIONS or not chosen.any():
                continue
            if chosen.all():
                self._update_sections(payload, buffer, starts, lengths)
            else:
                self._update_sections(payload, buffer, starts[chosen], lengths[chosen])
        self._record_count += len(starts)

    def _update_sections(
        self, payload: str, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> None:
        for section, (number, lists) in _SECTIONS[payload].items():
            survey = self._surveys.setdefault((payload, section), kernel.FeatureSurvey())
            if payload == "ELWC":  # each Example in a ranking list counts for itself
                _, inner_starts, inner_lengths = kernel.submessages(buffer, starts, lengths, number)
                if not len(inner_starts):
                    continue
                spans: Any = [np.frombuffer(m, np.int64) for m in (inner_starts, inner_lengths)]  # type: ignore[call-overload]
                survey.update(buffer, spans[0], spans[1], 1, lists=False)
                continue
            at = survey.update(buffer, starts, lengths, number, lists)
            if at < len(starts):
                raise CorruptDataError(
                    Defect.MALFORMED_EXAMPLE, f"a {payload} is not well-formed", position=at
                )

    def finish(self) -> Schema:
        """The schema of everything counted so far."""
        payload = self._payload()
        sections = {
            section: _features(self._surveys[payload, section], self._record_count)
            for section in _SECTIONS.get(payload, {})
            if (payload, section) in self._surveys
        }
        return Schema(payload, self._record_count, sections)

    def _payload(self) -> DatasetPayload:
        if self._record_count == 0:
            return "none"
        found = {kind for kind, count in zip(PAYLOAD_KINDS, self._payloads, strict=True) if count}
        if not found:  # empty payloads are Examples without features
            return "Example"
        if found == {"Example", "SequenceExample"}:  # one without lists looks like an Example
            return "SequenceExample"
        return found.pop() if len(found) == 1 else "mixed"


def _features(survey: kernel.FeatureSurvey, record_count: int) -> dict[str, FeatureSchema]:
    features = {}
    for key, kinds, contents, present, lengths, steps, value_bytes in survey.finish():
        shortest, longest = lengths
        names = [name for name, count in zip(KIND_NAMES[1:], kinds[1:], strict=True) if count]
        kind: Any = "none" if not names else names[0] if len(names) == 1 else "mixed"
        fixed = (
            shortest == longest and present == record_count and kind in ("bytes", "float", "int64")
        ) and steps == (0, 0)
        raw, text, image = contents
        content: Content | None = None
        if kind == "bytes":
            content = "raw" if raw or (text and image) else "image" if image else "text"
        features[key.decode("utf-8", "surrogateescape")] = FeatureSchema(
            kind=kind,
            min_length=shortest,
            max_length=longest,
            present=present,
            shape=None if not fixed else () if longest == 1 else (longest,),
            content=content,
            value_bytes=value_bytes,
            min_steps=None if steps == (0, 0) else steps[0],
            max_steps=None if steps == (0, 0) else steps[1],
        )
    return dict(sorted(features.items()))
