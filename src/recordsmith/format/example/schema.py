"""Infer the schema of a dataset from its records.

`SchemaSurvey` counts features over any number of blocks and returns a `Schema`. Nothing is decoded:
lengths are counted in wire format, and bytes are read only to detect images and text.

A file may have a new feature name in each record. To bound memory, a schema with too many names
keeps only the first ones by name and is marked as incomplete. The result does not depend on the
order of the records or on the shards.
"""

from __future__ import annotations

import json
import sys
import threading
import zlib
from collections.abc import Collection, ItemsView, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np

from recordsmith.format.example.kernel.payloads import submessages
from recordsmith.format.example.kernel.survey import FeatureSurvey
from recordsmith.format.example.payload import KIND_NAMES, PAYLOAD_KINDS, decode_key
from recordsmith.format.example.serialized_tensor import TensorSchema
from recordsmith.support.buffers import BytesLike, Int64Array
from recordsmith.support.errors import CorruptDataError, Defect, OptionError

Content: TypeAlias = Literal["image", "text", "raw", "tensor"]
DatasetPayload: TypeAlias = Literal[
    "Example", "SequenceExample", "ELWC", "Event", "other", "mixed", "none"
]

UNBOUNDED = 2**62
"""For a FeatureSurvey without a limit on the bytes of names."""

MAX_FEATURES = 65_536
"""The maximum number of features of a section; a table of all human genes has 60,000."""

MAX_NAME_BYTES = 1 << 24
"""The maximum total length of the names of a section."""

LISTED_FEATURES = 100
"""How many features an incomplete schema keeps, as a sample: the first by name."""

LONGEST_LISTED_NAME = 1024
"""In bytes; an incomplete schema omits features with longer names."""

PACKED_FROM = 1000
"""Sections with at least this many features are compressed in memory."""

_MERGED_AT_ONCE = 200_000  # features

# by message: section of the schema -> (field, whether it is FeatureLists)
_SECTIONS: dict[str, dict[str, tuple[int, bool]]] = {
    "Example": {"features": (1, False)},
    "SequenceExample": {"context": (1, False), "feature_lists": (2, True)},
    "ELWC": {"context": (2, False), "examples": (1, False)},
}
_OF_MIXED = ("features", "context", "feature_lists")
_SECTION_NAMES = tuple(dict.fromkeys(name for names in _SECTIONS.values() for name in names))


_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """The schema of one feature over all records.

    kind: bytes, float or int64; "mixed" if records differ, "none" if no record has a kind.
    min_length, max_length: of its list of values, over the records that have it.
    present: how many records have it (how many Examples, in ranking lists).
    shape: of one example, () or (n,), if every record has equally many values; None if ragged.
    content: of bytes: image, text (UTF-8 without control characters), tensor (serialised by
        `tf.io.serialize_tensor`) or raw; else None.
    value_bytes: the encoded size of its values.
    min_steps, max_steps: the number of steps of a feature list; else None.
    tensor: dtype and shape of serialised tensors; else None.

    Example:
        print(dataset.schema.features["image/class/label"].kind)  # int64
    """

    kind: Literal["bytes", "float", "int64", "mixed", "none"]
    min_length: _Count
    max_length: _Count
    present: _Count
    shape: tuple[_Count, ...] | None = None
    content: Content | None = None
    value_bytes: _Count = 0
    min_steps: _Count | None = None
    max_steps: _Count | None = None
    tensor: TensorSchema | None = None

    @property
    def content_text(self) -> str | None:
        """The content, of tensors with dtype and shape."""
        return self.content if self.tensor is None else f"tensor {self.tensor}"

    @property
    def shape_if_present(self) -> tuple[int, ...] | None:
        """The shape if all records that have the feature have as many values, else None."""
        if self.min_length != self.max_length:
            return None
        return () if self.max_length == 1 else (self.max_length,)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict; keys that do not apply are omitted."""
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
        if self.tensor is not None:
            document["tensor"] = msgspec.to_builtins(self.tensor)
        return document

    @classmethod
    def from_json(cls, document: Any) -> FeatureSchema:
        """Make it from the result of `to_json`; unknown keys are ignored.

        Raises:
            ValueError: a value is missing or invalid, or values contradict each other.
        """
        feature: FeatureSchema = msgspec.convert(document, cls)
        feature._check()
        return feature

    def _check(self) -> None:
        """Raise ValueError for values that no records have together."""
        low, high = self.min_length, self.max_length
        if low > high:
            raise ValueError(f"min_length {low} is above max_length {high}")
        if (self.min_steps is None) != (self.max_steps is None):
            raise ValueError("min_steps and max_steps belong together")
        if (self.min_steps or 0) > (self.max_steps or 0):
            raise ValueError(f"min_steps {self.min_steps} is above max_steps {self.max_steps}")
        if self.shape is not None and (low != high or self.shape != (() if high == 1 else (high,))):
            raise ValueError(
                f"the shape {list(self.shape)} contradicts the lengths {low} to {high}"
            )
        if self.content is not None and self.kind != "bytes":
            raise ValueError(f"the kind {self.kind} has no content, but {self.content} is stated")
        if (self.tensor is None) == (self.content == "tensor"):
            raise ValueError(f"the content is {self.content}, but the tensor is {self.tensor}")

    def is_known_without(self, old: FeatureSchema, new: FeatureSchema | None) -> bool:
        """Whether this stays true of all records if those of `old` became those of `new`."""
        for name in ("min_length", "max_length", "min_steps", "max_steps"):
            value = getattr(self, name)
            if self.min_length == self.max_length and self.min_steps == self.max_steps:
                break
            if getattr(old, name) == value != getattr(new, name, None):
                return False
        return all(
            getattr(old, name) in (None, "none") or getattr(new, name, None) == getattr(self, name)
            for name in ("kind", "content", "tensor")
        )


class _SchemaDocument(msgspec.Struct):
    """The JSON form of a schema, with features that are read one by one."""

    payload: DatasetPayload
    records: _Count
    is_complete: bool = True
    features: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    feature_lists: dict[str, Any] | None = None
    examples: dict[str, Any] | None = None


@dataclass(frozen=True)
class Schema:
    """The features of a dataset.

    payload: the type of the records; "mixed" if they differ, "none" if there are no records.
    record_count: how many records were counted.
    sections: the features: "features" for Examples; "context" and "feature_lists" for
        SequenceExamples; "context" and "examples" for ranking lists (ELWC); for "mixed" those of
        the Examples and SequenceExamples; empty for others.
    is_complete: False if there are more features than a schema can have; then the sections have
        only the first ones by name, with correct values.

    A SequenceExample without lists has the same bytes as an Example. Among SequenceExamples, such a
    record counts as one if their context has all of its features with the same kinds; otherwise the
    payload is "mixed".

    Example:
        for key, feature in dataset.schema.features.items():
            print(key, feature.kind, feature.shape)
    """

    payload: DatasetPayload
    record_count: int
    sections: Mapping[str, Mapping[str, FeatureSchema]] = field(default_factory=dict)
    is_complete: bool = True

    @property
    def features(self) -> Mapping[str, FeatureSchema]:
        """The features of Examples, by key."""
        return self.sections.get("features", {})

    @property
    def columns(self) -> Mapping[str, FeatureSchema]:
        """What can be read as columns, by key; of SequenceExamples, also the feature lists.

        A feature list is known by its `min_steps`. A key that the context has, too, is that of the
        context.
        """
        if self.payload == "ELWC":
            return {}
        lists, context = self.sections.get("feature_lists", {}), self.sections.get("context", {})
        return {**lists, **context, **self.features}

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict: payload, records, and a key for each section.

        An incomplete schema also has "is_complete": False.
        """
        sections = {
            name: {key: feature.to_json() for key, feature in section.items()}
            for name, section in self.sections.items()
        }
        document: dict[str, Any] = {"payload": self.payload, "records": self.record_count}
        return document | ({} if self.is_complete else {"is_complete": False}) | sections

    @classmethod
    def from_json(cls, document: Any) -> Schema:
        """Make it from the result of `to_json`; unknown keys are ignored.

        Raises:
            ValueError: a value is missing or invalid.
        """
        read = msgspec.convert(document, _SchemaDocument)
        sections: dict[str, dict[str, FeatureSchema]] = {}
        for name in _SECTION_NAMES:
            section = getattr(read, name)
            if section is None:
                continue
            sections[name] = features = {}
            for key, feature in section.items():
                try:
                    features[sys.intern(key)] = parsed = FeatureSchema.from_json(feature)
                    if parsed.present > read.records and name != "examples":
                        raise ValueError(f"present is {parsed.present} of {read.records} records")
                except ValueError as error:
                    raise ValueError(f"{name}: {key!r}: {error}") from None
        return _limited(cls(read.payload, read.records, sections, read.is_complete))

    def packed(self) -> Schema:
        """Return the schema in less memory, to be merged or written later."""
        sections = {
            name: _CompressedSection(section) if len(section) >= PACKED_FROM else section
            for name, section in self.sections.items()
        }
        return replace(self, sections=sections)

    @classmethod
    def merged(cls, parts: Iterable[Schema]) -> Schema:
        """Merge the schemas of several parts, such as the shards of a dataset."""
        waiting: list[Schema] = []
        feature_count = 0
        for part in parts:
            if part.record_count:
                unpacked = {name: dict(section.items()) for name, section in part.sections.items()}
                waiting.append(replace(part, sections=unpacked))
                feature_count += sum(map(len, part.sections.values()))
            if feature_count > _MERGED_AT_ONCE:
                waiting = [
                    cls._merged([one for one in waiting if one.payload == payload])
                    for payload in dict.fromkeys(one.payload for one in waiting)
                ]
                feature_count = 0
        return cls._merged(waiting)

    @classmethod
    def _merged(cls, parts: Sequence[Schema]) -> Schema:
        found = {part.payload for part in parts}
        payload: DatasetPayload = found.pop() if len(found) == 1 else "mixed" if parts else "none"
        if found == {"Example", "SequenceExample"} and _are_contexts(parts):
            payload = "SequenceExample"
            parts = [
                replace(part, payload=payload, sections={"context": part.features})
                if part.payload == "Example"
                else part
                for part in parts
            ]
        record_count = sum(part.record_count for part in parts)
        names: Iterable[str] = _OF_MIXED if payload == "mixed" else _SECTIONS.get(payload, {})
        shown = [part for part in parts if part.payload != "ELWC" or payload == "ELWC"]
        merged = cls(
            payload,
            record_count,
            {
                name: _merged_section([part.sections[name] for part in having], record_count)
                for name in names
                if (having := [part for part in shown if name in part.sections])
            },
            all(part.is_complete for part in parts),
        )
        return _limited(merged)

    def replacing(self, old: Schema, new: Schema) -> Schema | None:
        """Return the schema after some of the records, `old`, became `new`.

        None if it depends on the other records, such as the most values when those are in `old`
        and not in `new`.
        """
        if self.record_count == old.record_count:
            return new
        payloads = {self.payload, old.payload, new.payload} - {"none"}
        is_complete = self.is_complete and old.is_complete and new.is_complete
        if payloads != {"Example"} or not is_complete or self.record_count < old.record_count:
            return None
        rest: dict[str, dict[str, FeatureSchema]] = {}
        for name, section in self.sections.items():
            before, after = old.sections.get(name, {}), new.sections.get(name, {})
            rest[name] = {}
            for key, feature in section.items():
                gone = before.get(key)
                if gone is None:
                    rest[name][key] = feature
                elif feature.present < gone.present or feature.value_bytes < gone.value_bytes:
                    return None  # the schema was not of these records
                elif feature.present > gone.present:
                    if not feature.is_known_without(gone, after.get(key)):
                        return None
                    rest[name][key] = replace(
                        feature,
                        present=feature.present - gone.present,
                        value_bytes=feature.value_bytes - gone.value_bytes,
                    )
        others = Schema(self.payload, self.record_count - old.record_count, rest)
        return Schema.merged([others, new])

    def covered(self, layer: Schema) -> Schema:
        """Return the schema of these records after a layer gave them its features.

        Args:
            layer: of the Examples of the layer, one for each record.
        """
        is_sequence = "context" in self.sections or self.payload == "SequenceExample"
        name = "context" if is_sequence else "features"
        section = {**self.sections.get(name, {}), **layer.columns}
        payload = layer.payload if self.payload == "none" else self.payload
        return replace(
            self, payload=payload, sections={**self.sections, name: dict(sorted(section.items()))}
        )

    def without(self, keys: Collection[str]) -> Schema:
        """Return the schema of these records without some features, but feature lists."""
        sections = {
            name: section
            if name == "feature_lists"
            else {key: feature for key, feature in section.items() if key not in keys}
            for name, section in self.sections.items()
        }
        return replace(self, sections=sections)

    @property
    def omission(self) -> str | None:
        """Why the schema is incomplete, as a clause; None if it is complete."""
        if self.is_complete:
            return None
        names = [f"{name!r:.40}" for section in self.sections.values() for name in section]
        listed = f"only the first ones by name (such as {', '.join(names[:3])})"
        if not names:
            listed = f"no features, as their names are longer than {LONGEST_LISTED_NAME:,} bytes"
        return (
            f"the records have more than {MAX_FEATURES:,} different features, or names of more "
            f"than {MAX_NAME_BYTES:,} bytes in total, so the schema lists {listed}. The names may "
            "contain values, such as ids: store these in a feature with the same name in all "
            "records"
        )

    def check_complete(self, need: str) -> None:
        """Raise an error if the schema is incomplete.

        Args:
            need: why all features are needed, or what to do instead; begins the message.

        Raises:
            OptionError: the schema is incomplete.
        """
        if not self.is_complete:
            raise OptionError(f"{need}: {self.omission}")


def _limited(schema: Schema) -> Schema:
    """Return a schema with only the first features by name if it has too many."""
    if schema.is_complete and all(
        len(section) <= MAX_FEATURES and sum(map(_name_bytes, section)) <= MAX_NAME_BYTES
        for section in schema.sections.values()
    ):
        return schema
    sections = {
        name: {key: section[key] for key in _listed(section)}
        for name, section in schema.sections.items()
    }
    return replace(schema, sections=sections, is_complete=False)


def _listed(keys: Iterable[str]) -> list[str]:
    short = (key for key in keys if _name_bytes(key) <= LONGEST_LISTED_NAME)
    return sorted(short, key=_stored)[:LISTED_FEATURES]


def _name_bytes(key: str) -> int:
    return len(key) if key.isascii() else len(_stored(key))


def _stored(key: str) -> bytes:
    """Encode a name as records do; a name from a document may not be valid in records."""
    try:
        return key.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return key.encode("utf-8", "surrogatepass")


def _are_contexts(parts: Sequence[Schema]) -> bool:
    """Return whether the contexts of the SequenceExamples have all features of the Examples."""
    contexts = [p.sections.get("context", {}) for p in parts if p.payload == "SequenceExample"]
    known = {
        (key, kind)
        for context in contexts
        for key, feature in context.items()
        for kind in (feature.kind, "none")
    }
    return all(
        (key, feature.kind) in known
        for part in parts
        if part.payload == "Example"
        for key, feature in part.features.items()
    )


def _merged_section(
    sections: Sequence[Mapping[str, FeatureSchema]], record_count: int
) -> dict[str, FeatureSchema]:
    keys = sorted({key for section in sections for key in section})
    return {
        key: _merged_feature([section[key] for section in sections if key in section], record_count)
        for key in keys
    }


def _merged_feature(parts: Sequence[FeatureSchema], record_count: int) -> FeatureSchema:
    steps = [(part.min_steps, part.max_steps or 0) for part in parts if part.min_steps is not None]
    return _feature(
        {part.kind for part in parts} - {"none"},
        {part.content for part in parts if part.content is not None and part.max_length},
        _widest((part.min_length, part.max_length) for part in parts),
        present=sum(part.present for part in parts),
        record_count=record_count,
        steps=_widest(steps) if steps else None,
        value_bytes=sum(part.value_bytes for part in parts),
        tensors=[part.tensor for part in parts if part.tensor is not None],
    )


def _feature(
    kinds: Collection[str],
    contents: Collection[Content],
    lengths: tuple[int, int],
    *,
    present: int,
    record_count: int,
    steps: tuple[int, int] | None,
    value_bytes: int,
    tensors: Sequence[TensorSchema],
) -> FeatureSchema:
    kind: Any = "none" if not kinds else next(iter(kinds)) if len(kinds) == 1 else "mixed"
    shortest, longest = lengths
    fixed = (
        shortest == longest
        and present == record_count
        and kind not in ("none", "mixed")
        and steps is None
    )
    content: Content | None = None
    if kind == "bytes":
        # bytes without values count as text
        content = next(iter(contents), "text") if len(contents) < 2 else "raw"
    return FeatureSchema(
        kind=kind,
        min_length=shortest,
        max_length=longest,
        present=present,
        shape=None if not fixed else () if longest == 1 else (longest,),
        content=content,
        value_bytes=value_bytes,
        min_steps=None if steps is None else steps[0],
        max_steps=None if steps is None else steps[1],
        tensor=reduce(TensorSchema.merged, tensors) if content == "tensor" else None,
    )


def new_survey() -> FeatureSurvey:
    """Return a survey of one section with the limits of a schema."""
    return FeatureSurvey(MAX_FEATURES, MAX_NAME_BYTES, LISTED_FEATURES, LONGEST_LISTED_NAME)


class SchemaSurvey:
    """Counts the features of payloads block by block. Safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._payloads = [0] * len(PAYLOAD_KINDS)
        self._record_count = 0
        self._surveys: dict[tuple[str, str], FeatureSurvey] = {}
        self._examples = new_survey()  # added to them with the first Example

    def update(self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> None:
        """Count the payloads at buffer[starts[i]:starts[i] + lengths[i]]."""
        kinds = np.empty(len(starts), np.uint8)
        with self._lock:
            # nearly all payloads are Examples: detect the type and count in one pass
            self._examples.update_examples(buffer, starts, lengths, kinds)
            counts = np.bincount(kinds, minlength=len(PAYLOAD_KINDS))
            empty = np.bincount(kinds[lengths == 0], minlength=len(PAYLOAD_KINDS))
            for number, payload in enumerate(PAYLOAD_KINDS):
                self._payloads[number] += int(counts[number] - empty[number])
                if payload not in _SECTIONS or not counts[number]:
                    continue
                if payload == "Example":
                    self._surveys["Example", "features"] = self._examples
                else:
                    is_kind = kinds == number
                    self._update_sections(payload, buffer, starts[is_kind], lengths[is_kind])
            self._record_count += len(starts)

    def _update_sections(
        self, payload: str, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> None:
        for section, (number, lists) in _SECTIONS[payload].items():
            survey = self._surveys.setdefault((payload, section), new_survey())
            if payload == "ELWC":  # count each Example of a ranking list
                _, inner_starts, inner_lengths = submessages(buffer, starts, lengths, number)
                if not len(inner_starts):
                    continue
                spans: Any = [np.frombuffer(m, np.int64) for m in (inner_starts, inner_lengths)]  # type: ignore[call-overload]
                survey.update(buffer, spans[0], spans[1], 1, lists=False)
                continue
            at = survey.update(buffer, starts, lengths, number, lists)
            if at < len(starts):
                raise CorruptDataError(
                    Defect.MALFORMED_EXAMPLE, f"the {payload} is malformed", record=at
                )

    def finish(self) -> Schema:
        """Return the schema of all payloads so far."""
        with self._lock:
            found = zip(PAYLOAD_KINDS, self._payloads, strict=True)
            counts: dict[Any, int] = {payload: count for payload, count in found if count}
            if empty_count := self._record_count - sum(counts.values()):
                # they may be of any type; if all are empty, they are Examples without features
                counts[next(iter(counts), "Example")] = empty_count + next(iter(counts.values()), 0)
            is_complete = all(survey.settle() for survey in self._surveys.values())
            parts = []
            for payload, count in counts.items():
                sections = {
                    name: _features(self._surveys[payload, name], count, has_steps)
                    for name, (_, has_steps) in _SECTIONS.get(payload, {}).items()
                    if (payload, name) in self._surveys
                }
                parts.append(Schema(payload, count, sections, is_complete))
        return _limited(parts[0]) if len(parts) == 1 else Schema.merged(parts)


def _widest(spans: Iterable[tuple[int, int]]) -> tuple[int, int]:
    lows, highs = zip(*spans, strict=True)
    return min(lows), max(highs)


def _features(
    survey: FeatureSurvey, record_count: int, has_steps: bool
) -> dict[str, FeatureSchema]:
    features = {}
    for key, kinds, contents, present, lengths, steps, value_bytes, tensors in survey.finish():
        tensor = TensorSchema.of_counts(*tensors) if tensors else None
        names: tuple[Content, ...] = ("raw" if tensor is None else "tensor", "text", "image")
        features[decode_key(key)] = _feature(
            {name for name, count in zip(KIND_NAMES[1:], kinds[1:], strict=True) if count},
            [content for content, count in zip(names, contents, strict=True) if count],
            lengths,
            present=present,
            record_count=record_count,
            steps=steps if has_steps else None,
            value_bytes=value_bytes,
            tensors=[] if tensor is None else [tensor],
        )
    return dict(sorted(features.items()))


class _CompressedSection(Mapping[str, FeatureSchema]):
    """Features by name, compressed in memory. Use `items()` to get more than one of them.

    A job keeps the schema of each shard until it writes the manifest. With tens of thousands of
    features per shard, schemas would take most of its memory.
    """

    def __init__(self, section: Mapping[str, FeatureSchema]) -> None:
        document = [[key, feature.to_json()] for key, feature in section.items()]
        self._data = zlib.compress(json.dumps(document).encode(), 1)
        self._length = len(section)

    def items(self) -> ItemsView[str, FeatureSchema]:
        """Return names and features, decompressed on each call."""
        document = json.loads(zlib.decompress(self._data))
        return {key: FeatureSchema.from_json(feature) for key, feature in document}.items()

    def __getitem__(self, key: str) -> FeatureSchema:
        return dict(self.items())[key]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self.items()))

    def __len__(self) -> int:
        return self._length
