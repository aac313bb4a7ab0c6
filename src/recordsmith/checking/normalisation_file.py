"""Statistics for normalising numbers, by dimension: mean, deviation, range and percentiles.

One pass over the records of one split. All values of a dimension are counted by value; from 65,536
different ones on, neighbouring values are counted together, so that memory does not grow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.dataset import (
    Dataset,
    EpisodeLayout,
    LocatedBlock,
    Manifest,
    Paths,
    dataset_of,
    find_layout,
    json_of,
    records_of,
    write_json,
)
from recordsmith.format.example import FeatureSpec, RaggedArray, decode_columns
from recordsmith.format.example.spans import join_payloads
from recordsmith.stores import PlaceLike, as_location, read_document
from recordsmith.support.buffers import BytesLike, Int64Array
from recordsmith.support.errors import CorruptDataError, Defect, OptionError
from recordsmith.support.words import suggest_names
from recordsmith.support.work import Progress, WorkerPool

NORMALISATION_NAME = "normalisation.json"
"""The document of a dataset, next to its manifest."""

MAX_BINS = 1 << 16
MAX_DIMENSIONS = 1 << 12
_PENDING_VALUES = 1 << 17
_PENDING_ROWS = 1 << 13  # fewer would sort the counted values too often
_STEPS = "steps/"
_SIGN = np.uint64(1 << 63)

_Floats: TypeAlias = npt.NDArray[np.float64]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class FeatureStatistics(msgspec.Struct, frozen=True):
    """Statistics of a feature: a number for each dimension, of its finite values.

    count: the number of steps, or of records.
    nan, infinite: how many values are left out.
    std: with the number of values as divisor.
    q01, q99: percentiles, linear between neighbouring values, as `numpy.quantile`.
    quantile_error: how much a percentile may differ from the exact one, relative to it.
    """

    count: _Count
    nan: _Count
    infinite: _Count
    mean: tuple[float, ...]
    std: tuple[float, ...]
    min: tuple[float, ...]
    max: tuple[float, ...]
    q01: tuple[float, ...]
    q99: tuple[float, ...]
    quantile_error: float


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    split: str | None
    record_count: _Count
    shards: str | None
    features: dict[str, FeatureStatistics]
    format: Literal["recordsmith-normalisation"] = "recordsmith-normalisation"
    version: Literal[1] = 1


@dataclass(frozen=True)
class Normalisation:
    """Statistics of features for normalising.

    features: by key.
    split: the records are those of this split; None for all.
    shards: a digest of the shards of the split in the manifest; None if they are others.
    """

    features: Mapping[str, FeatureStatistics]
    split: str | None
    record_count: int
    shards: str | None = None

    @classmethod
    def load(cls, path: PlaceLike) -> Normalisation:
        """Read a document.

        Raises:
            FileAccessError: the file cannot be read.
            OptionError: it is not such a document.
        """
        place = as_location(path)
        try:
            read = msgspec.convert(json_of(read_document(place)), _Document, strict=False)
        except ValueError as error:  # also those of msgspec
            raise OptionError(
                f"invalid statistics {place}: {error}",
                option="statistics",
                value=str(place),
                remedy="Pass a file that `recordsmith normalisation` wrote.",
            ) from None
        return cls(read.features, read.split, read.record_count, read.shards)

    def save(self, path: PlaceLike, *, overwrite: bool = False) -> None:
        """Write the document atomically.

        Raises:
            OptionError: the file exists, and `overwrite` is False.
            FileAccessError: the file cannot be written.
        """
        write_json(path, self.to_json(), overwrite=overwrite)

    def to_json(self) -> dict[str, Any]:
        """Return the document, as described in docs/reference/json.md."""
        document = _Document(self.split, self.record_count, self.shards, dict(self.features))
        fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))  # with lists
        return {name: fields.pop(name) for name in ("format", "version")} | fields


def normalisation(
    paths_or_dataset: Paths | Dataset,
    features: Sequence[str],
    split: str | None = None,
    *,
    progress: Progress | None = None,
) -> Normalisation:
    """Compute statistics of features for normalising, by dimension: one pass over one split.

    A feature of the steps of episodes (`steps/…`, or a feature list) has as many dimensions as
    values in each step; another feature as many as values in each record. Records without it do not
    count. NaN and infinite values are counted and left out.

    Mean, deviation, minimum and maximum are of float64. Percentiles are exact for up to 65,536
    different values of a dimension; from there on, `quantile_error` limits their relative error,
    which is at most 0.004 for float32. Memory does not grow: 3 MB for each dimension.

    Args:
        paths_or_dataset: a file, folder, glob, or a list of these; or a Dataset.
        features: keys of numeric features.
        split: the split to read. None for train, or for the only split of a dataset.
        progress: called as `progress(done_bytes, total_bytes)`.

    Returns:
        The statistics, for `Normalise`. Saved as `normalisation.json` next to the manifest,
        `normalise` of features finds them.

    Raises:
        OptionError: the records lack a feature, it has no numbers or more than 4,096 dimensions;
            or the dataset has several splits and none is called train.
        CorruptDataError: a record is damaged, or has another number of dimensions.
        FileAccessError: as in `recordsmith.open`.

    Example:
        statistics = rs.normalisation("out", ["image/width", "image/height"])
        width = statistics.features["image/width"]
        print(width.mean, width.q01, width.q99)
    """
    dataset = dataset_of(paths_or_dataset)
    split = _training_split(dataset) if split is None else split
    dataset = dataset_of(dataset, split)
    is_list = isinstance(features, (list, tuple))
    if not is_list or not features or not all(isinstance(key, str) for key in features):
        raise OptionError(option="features", value=features, expected="a list of keys")
    schema, _ = dataset.view.preview_schema()
    layout = None
    if schema.payload == "SequenceExample" or any(key.startswith(_STEPS) for key in features):
        layout = find_layout(dataset, _STEPS, None)
    known = {key: feature.kind for section in schema.sections.values()
             for key, feature in section.items()}  # fmt: skip
    for key in features:
        if known.get(key) not in ("int64", "float"):
            raise OptionError(
                f"the records have no feature {key!r} with numbers; "
                f"{suggest_names(key, known, 'they have no features')}",
                option="features",
                value=key,
            )
    kinds: Any = {key: known[key] for key in features}
    records = records_of(dataset).in_file_order()
    workers = WorkerPool(1, progress, sum(part.size_bytes for part in records.parts()))
    builders = {key: _FeatureBuilder(key) for key in features}
    for located in records.blocks():
        with located.located():
            for key, values, step_counts in _columns(located, kinds, layout):
                builders[key].add(values, step_counts)
        workers.advance(len(located.block.frames()))
    workers.finish()
    files = [
        file
        for shard in (records.all_shards if records.has_all else ())
        for file in (shard, *shard.layers)
        if file is shard or file.features.intersection(features)
    ]
    return Normalisation(
        {key: builder.finish() for key, builder in builders.items()},
        split,
        len(records),
        shards_digest([file.entry for file in files]),
    )


def _training_split(dataset: Dataset) -> str | None:
    names = dataset.view.split_names
    if "train" in names:
        return "train"
    if len(names) > 1:
        raise OptionError(
            f"the dataset has the splits {', '.join(names)}, and none is called train",
            option="split",
            expected="the split that the model is trained on",
        )
    return None


def shards_digest(entries: Sequence[Any]) -> str | None:
    """Return a digest of the shards of a manifest; None if there are none, or others."""
    if not entries or None in entries:
        return None
    numbers = [[entry.record_count, entry.size_bytes, entry.crc32c] for entry in entries]
    return hashlib.blake2b(json.dumps(numbers).encode(), digest_size=8).hexdigest()


def is_current(statistics: Normalisation, manifest: Manifest) -> bool:
    """Whether statistics are of the records that a manifest lists."""
    splits = manifest.splits if statistics.split is None else [statistics.split]
    layers = [layer for layer in manifest.layers if statistics.features.keys() & layer.features]
    entries = [
        file
        for split in splits
        for entry in manifest.splits.get(split, ())
        for file in (entry, *(layer.shards.get(entry.key) for layer in layers))
        if file is not None
    ]
    return statistics.shards is not None and statistics.shards == shards_digest(entries)


def _columns(
    located: LocatedBlock, kinds: Mapping[str, Any], layout: EpisodeLayout | None
) -> Iterator[tuple[str, RaggedArray, Int64Array | None]]:
    """Yield key, values and, of features of steps, the number of steps of each record."""
    block = located.block
    buffer: BytesLike = block.buffer
    starts, lengths = block.starts, block.lengths
    specs = {key: FeatureSpec(kind, "ragged") for key, kind in kinds.items()}
    if layout is not None:
        kind = layout.kinds.get(layout.count_key)
        specs.setdefault(layout.count_key, FeatureSpec(kind, "ragged"))
        if layout.is_sequence:
            payloads = [layout.as_example(record, specs) for record in block.records()]
            buffer, starts, lengths = join_payloads(payloads)
            counts = layout.lengths_key(layout.count_key)
            specs[str(counts)] = FeatureSpec("int64", "ragged")
    columns: Any = decode_columns(buffer, starts, lengths, specs)
    for key in kinds:
        steps = None
        if layout is not None and layout.is_of_steps(key):
            steps = layout.step_counts(columns)
        yield key, columns[key], steps


class _FeatureBuilder:
    """Collects the values of a feature."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._width: int | None = None
        self._pending: list[npt.NDArray[Any]] = []
        self._pending_count = 0
        self._count = self._nan = self._infinite = 0

    def add(self, column: RaggedArray, step_counts: Int64Array | None) -> None:
        """Add the values of some records; `step_counts` of each, (rows,); None for one."""
        lengths = column.lengths
        steps = (lengths > 0).astype(np.int64) if step_counts is None else step_counts
        if self._width is None and len(column.values):
            row = int(np.argmax(lengths > 0))
            self._width = max(1, int(lengths[row]) // max(1, int(steps[row])))
            if self._width > MAX_DIMENSIONS:
                raise OptionError(
                    f"feature {self._key!r} has {self._width} dimensions",
                    option="features",
                    value=self._key,
                    expected=f"up to {MAX_DIMENSIONS}",
                )
            self._dimensions = [_Dimension() for _ in range(self._width)]
        is_whole = (lengths == 0) | (lengths == steps * (self._width or 0))
        if not is_whole.all():
            row = int(np.argmin(is_whole))
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"feature {self._key!r} has another number of dimensions than before",
                found=f"{lengths[row]} values in {steps[row]} steps",
                expected=f"{self._width} values in each",
                feature=self._key,
                record=row,
            )
        if len(column.values):
            self._pending.append(np.array(column.values))
            self._pending_count += len(column.values)
        if self._pending_count >= max(_PENDING_VALUES, _PENDING_ROWS * (self._width or 0)):
            self._settle()

    def _settle(self) -> None:
        if not self._pending:
            return
        values = np.concatenate(self._pending).astype(np.float64).reshape(-1, self._width or 1)
        self._pending, self._pending_count = [], 0
        self._count += len(values)
        self._nan += int(np.isnan(values).sum())
        self._infinite += int(np.isinf(values).sum())
        for number, dimension in enumerate(self._dimensions):
            own = values[:, number]
            dimension.add(own[np.isfinite(own)])

    def finish(self) -> FeatureStatistics:
        self._settle()
        if self._width is None or not all(dimension.count for dimension in self._dimensions):
            raise OptionError(
                f"feature {self._key!r} has no finite values in the split",
                option="features",
                value=self._key,
            )
        figures = np.array([dimension.figures() for dimension in self._dimensions]).T
        mean, std, low, high, q01, q99, error = map(tuple, figures.tolist())
        return FeatureStatistics(
            self._count, self._nan, self._infinite, mean, std, low, high, q01, q99, max(error)
        )


class _Dimension:
    """Collects finite numbers: their moments, and how often each occurs.

    Numbers are counted by their bits, in an order that is that of the numbers. While there are more
    than MAX_BINS different ones, the last bit that is counted is left out, whatever the order in
    which they come.
    """

    def __init__(self) -> None:
        self.count = 0
        self._mean = self._squares = 0.0
        self._low, self._high = np.inf, -np.inf
        self._keys, self._counts = np.empty(0, np.uint64), np.empty(0, np.int64)
        self._shift = 0

    def add(self, values: _Floats) -> None:
        if not len(values):
            return
        mean, total = float(values.mean()), self.count + len(values)
        difference = mean - self._mean
        self._squares += float(np.square(values - mean).sum())
        self._squares += difference**2 * self.count * len(values) / total
        self._mean += difference * len(values) / total
        self.count = total
        keys, counts = np.unique(_keys_of(values) >> np.uint64(self._shift), return_counts=True)
        self._keys, self._counts = _counted(
            np.concatenate((self._keys, keys)), np.concatenate((self._counts, counts))
        )
        while len(self._keys) > MAX_BINS:
            self._shift += 1
            self._keys, self._counts = _counted(self._keys >> np.uint64(1), self._counts)
        self._low = min(self._low, float(values.min()))
        self._high = max(self._high, float(values.max()))

    def figures(self) -> tuple[float, ...]:
        """Return mean, std, min, max, both percentiles and the error of these."""
        low, high = self._low, self._high
        mean = min(max(self._mean, low), high)
        std = 0.0 if low == high else (self._squares / self.count) ** 0.5
        error = 0.0 if not self._shift else 2.0 ** (self._shift - 53)
        return mean, std, low, high, self._quantile(0.01), self._quantile(0.99), error

    def _quantile(self, share: float) -> float:
        place = (self.count - 1) * share
        ends = np.cumsum(self._counts)
        ranks = np.array([np.floor(place), np.ceil(place)])
        keys = self._keys[np.searchsorted(ends, ranks, side="right")] << np.uint64(self._shift)
        if self._shift:  # the middle of those counted together
            keys |= np.uint64(1 << (self._shift - 1))
        below, above = np.clip(_values_of(keys), self._low, self._high).tolist()
        return float(below + (above - below) * (place - ranks[0]))


def _keys_of(values: _Floats) -> npt.NDArray[np.uint64]:
    """Return integers in the order of the numbers."""
    bits = (values + 0.0).view(np.uint64)  # minus zero is zero
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _values_of(keys: npt.NDArray[np.uint64]) -> _Floats:
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)


def _counted(
    keys: npt.NDArray[np.uint64], counts: Int64Array
) -> tuple[npt.NDArray[np.uint64], Int64Array]:
    """Add up the counts of equal keys, and sort them."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    firsts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[firsts], np.add.reduceat(counts[order], firsts)
