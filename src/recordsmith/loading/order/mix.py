"""Mixes several datasets, or windows of episodes, by weight.

An epoch of a mix has a fixed number of draws from each dataset. The draws of a dataset continue
from epoch to epoch, pass after pass, so that all of its records are read equally often. Places and
draws are computed, so the epoch is all that a state needs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recordsmith.dataset import (
    Dataset,
    Faults,
    RecordLocation,
    SelectedRecords,
    ShardGroup,
    gather,
    payload_sizes,
)
from recordsmith.format.example import BytesArray, FeatureSchema, KeyAction, Rewriter, Schema
from recordsmith.format.example.payload import encode_key
from recordsmith.loading.order.inputs import (
    LoaderInput,
    MadePayloads,
    RecordSource,
    as_input,
    bytes_read,
    in_order,
)
from recordsmith.loading.order.shuffle import BlockShuffle, DatasetOrder, PositionOrder
from recordsmith.loading.preview import FindKey, Preview
from recordsmith.support.buffers import AllocateBytes, Int64Array, empty_bytes, offsets_from_lengths
from recordsmith.support.errors import (
    DataError,
    NotAnExampleError,
    OptionError,
    option,
    shown_value,
)
from recordsmith.support.number_options import whole_number
from recordsmith.support.permutation import Permutations
from recordsmith.support.words import suggest_names

if TYPE_CHECKING:
    from fractions import Fraction

_MAX_DRAWS = 1 << 31  # so that products of two of them fit in int64
_PARTS = "pairs of dataset and weight, such as [(dataset, 0.5), (other, 0.5)]"


class Mix(LoaderInput):
    """Datasets, or windows of `Episodes`, mixed by weight, for a Loader.

    Each epoch reads the datasets in proportion to their weights. A small dataset with a large
    weight is read several times in an epoch; a large one with a small weight continues in the next.
    Positions count through the datasets one after the other.

    Attributes:
        datasets: in the order in which they were passed; of Episodes, those that they cut.
        draw_counts: how many examples an epoch reads from each: of the first epoch, if they differ.
        draws_by_epoch: draw_counts of the first epochs; the last of them holds for all later ones.

    Example:
        roses = dataset.filter("image/class/label == 1")
        mix = rs.Mix([(dataset, 0.75), (roses, 0.25)], length=40)
        loader = rs.Loader(mix, ["image/class/label"], batch_size=8, shuffle=True)
    """

    def __init__(
        self,
        parts: Sequence[tuple[Dataset | LoaderInput, float | Sequence[float]]],
        *,
        length: int | None = None,
        rename: Sequence[Mapping[str, str] | None] | None = None,
    ) -> None:
        """Mix datasets.

        Args:
            parts: pairs of dataset, or Episodes, and weight; only the proportions of the weights
                matter. A list has a weight for each epoch, of which the last holds for all later
                ones: with `[(easy, [3, 1, 0]), (hard, 1)]`, easy examples end with the third epoch.
            length: how many examples an epoch has; by default, the records of all datasets.
            rename: for each part, new names of its features by old ones, or None: where datasets
                have other keys for the same thing, the loader has the new ones. A feature whose
                name another one gets is left out.

        Raises:
            OptionError: a dataset is empty; a weight is not positive, or so small that an epoch
                would read nothing from its dataset; in lists, weights may be 0, but not all; a
                dataset does not have a feature that is renamed.
        """
        if not isinstance(parts, Sequence):
            raise OptionError(option="parts", value=parts, expected=_PARTS)
        for part in parts:
            is_pair = isinstance(part, (tuple, list)) and len(part) == 2
            if not is_pair or not (
                isinstance(part[0], Dataset)
                or (isinstance(part[0], LoaderInput) and part[0].has_each_once)
            ):
                raise OptionError(
                    f"{option('parts')} contains {shown_value(part)}",
                    option="parts",
                    value=part,
                    expected="a dataset or Episodes and its weight, such as (dataset, 0.5)",
                    remedy="A Mix does not keep the weights of a Weighted, the batches of a "
                    "ByClass, the rows of a Packed or another Mix. To balance classes, mix one "
                    "filtered dataset for each class.",
                )
        if not parts:
            raise OptionError(option="parts", value=parts, expected=_PARTS)
        self._inputs = [
            _Renamed(as_input(part), number, names) if names else as_input(part)
            for number, ((part, _), names) in enumerate(
                zip(parts, _checked_names(rename, len(parts)), strict=True)
            )
        ]
        self.datasets = tuple(own for part in self._inputs for own in part.datasets)
        self.record_counts = tuple(part.record_count for part in self._inputs)
        for number, count in enumerate(self.record_counts):
            if count == 0:
                raise OptionError(
                    f"dataset {number} of the mix is empty", option="parts", remedy="Leave it out."
                )
        draw_count = sum(self.record_counts) if length is None else length
        draw_count = whole_number("length", draw_count, 1, _MAX_DRAWS)
        self.draws_by_epoch = tuple(
            _draws_of(draw_count, weights) for weights in _weights_by_epoch(parts)
        )
        self.draw_counts = self.draws_by_epoch[0]
        self.record_count = sum(self.record_counts)
        self.records = self._mixed([part.records for part in self._inputs])

    def __len__(self) -> int:
        """Return how many examples an epoch has."""
        return sum(self.draw_counts)

    def __repr__(self) -> str:
        parts = zip(self.record_counts, self.draw_counts, strict=True)
        words = ", ".join(f"{draws} draws of {count} records" for count, draws in parts)
        return f"Mix({words})"

    def order(self, *, shuffle: bool | BlockShuffle, seed: int) -> MixOrder:
        """Return the order of an epoch."""
        return MixOrder(self.record_counts, self.draws_by_epoch, shuffle=shuffle, seed=seed)

    def reading(self, keys: Collection[str], images: Collection[str] = ()) -> RecordSource:
        """Return the records for a reader that uses only some features, some of them as images."""
        return self._mixed([part.reading(keys, images) for part in self._inputs])

    def _mixed(self, sources: Sequence[RecordSource]) -> MixedRecords:
        return MixedRecords(sources, np.array([0, *accumulate(self.record_counts)], np.int64))

    def describe(self) -> Any:
        """Return a JSON-able description of the records of all parts; None for whole datasets."""
        described = [part.describe() for part in self._inputs]
        return None if all(one is None for one in described) else described

    def previews(self) -> list[Preview]:
        """Return what is known of the records of each part."""
        return [preview for part in self._inputs for preview in part.previews()]

    def first_payloads(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield number of part, position in it and payload of the first records of each."""
        for number, part in enumerate(self._inputs):
            for _, position, payload in part.first_payloads():
                yield number, position, payload


class _Renamed(LoaderInput):
    """A part of a mix whose features have other names."""

    def __init__(self, part: LoaderInput, number: int, names: Mapping[str, str]) -> None:
        """`names`: new ones by old ones."""
        self._part = part
        self._names = names
        self._old_names = {new: old for old, new in names.items()}
        self.datasets = part.datasets
        self.record_count = part.record_count
        for preview in part.previews():
            if preview.schema.payload == "SequenceExample":
                raise NotAnExampleError(preview.schema.payload, "Examples, to rename features")
            known = preview.features
            unknown = next((key for key in names if key not in known), None)
            is_sure = preview.is_complete or preview.is_sure
            if unknown is not None and preview.schema.record_count and is_sure:
                hint = suggest_names(str(unknown), known, "they have no features")
                raise OptionError(
                    f"the records of dataset {number} of the mix have no feature {unknown!r}; "
                    f"{hint}",
                    option="rename",
                    value=unknown,
                )
        self.records = _RenamedRecords(part.records, names)

    def __len__(self) -> int:
        return len(self._part)

    def order(self, *, shuffle: bool | BlockShuffle, seed: int) -> PositionOrder:
        return self._part.order(shuffle=shuffle, seed=seed)

    def reading(self, keys: Collection[str], images: Collection[str] = ()) -> RecordSource:
        own, of_images = (
            {self._old_names.get(key, key) for key in some} for some in (keys, images)
        )
        return _RenamedRecords(self._part.reading(own, of_images), self._names)

    def describe(self) -> Any:
        return self._part.describe()

    def previews(self) -> list[Preview]:
        return [
            preview._replace(
                schema=self._renamed(preview.schema),
                listed=None if preview.listed is None else self._renamed_keys(preview.listed),
                records=partial(self._renamed_records, preview),
                find_key=partial(self._find_key, preview.find_key),
            )
            for preview in self._part.previews()
        ]

    def _find_key(
        self, search: FindKey, key: str, max_bytes: int
    ) -> FeatureSchema | Literal[False] | None:
        if key in self._names and key not in self._old_names:
            return False  # it has another name
        return search(self._old_names.get(key, key), max_bytes)

    def _renamed_records(self, preview: Preview) -> Iterator[tuple[int, bytes]]:
        for position, payload in preview.records():
            yield position, _renamed(BytesArray.from_values([payload]), self._names)[0]

    def first_payloads(self) -> Iterator[tuple[int, int, bytes]]:
        for number, position, payload in self._part.first_payloads():
            yield number, position, _renamed(BytesArray.from_values([payload]), self._names)[0]

    def _renamed(self, schema: Schema) -> Schema:
        features = self._renamed_keys(schema.features)
        return replace(schema, sections={**schema.sections, "features": features})

    def _renamed_keys(self, features: Mapping[str, FeatureSchema]) -> dict[str, FeatureSchema]:
        names, replaced = self._names, {*self._names.values()}
        return {
            names.get(key, key): feature
            for key, feature in features.items()
            if key in names or key not in replaced
        }


class _RenamedRecords:
    """Records whose features have other names: a RecordSource."""

    def __init__(self, source: RecordSource, names: Mapping[str, str]) -> None:
        self._source = source
        self._names = names
        self.record_sizes = source.record_sizes
        self.locate_record = source.locate_record

    def read_records(
        self,
        positions: Int64Array,
        allocate: AllocateBytes = empty_bytes,  # noqa: ARG002
        faults: Faults | None = None,
    ) -> BytesArray:
        payloads = self._source.read_records(positions, empty_bytes, faults)
        return MadePayloads(_renamed(payloads, self._names), bytes_read(payloads))


def _renamed(payloads: BytesArray, names: Mapping[str, str]) -> BytesArray:
    """Return payloads with other names of features; those that are no Examples do not change."""
    news = {encode_key(old): encode_key(new) for old, new in names.items()}
    numbers = {key: number for number, key in enumerate(dict.fromkeys((*news, *news.values())), 1)}
    actions = [KeyAction(drops=key not in news, name=news.get(key), key=key) for key in numbers]
    rewriter = Rewriter(
        [KeyAction(), *actions], lambda key: numbers.get(key, 0), {}, lambda _: None
    )
    pieces, count = [], 0
    try:
        for data, offsets in rewriter.rewrite(
            payloads.buffer, payloads.offsets[:-1], payloads.lengths
        ):
            rows = np.arange(count, count + len(offsets) - 1)
            pieces.append((rows, BytesArray(np.frombuffer(data, np.uint8), offsets)))
            count += len(rows)
    except (DataError, OptionError):  # what decodes it raises the error, with its place
        if len(payloads) == 1:
            return payloads
        each = (BytesArray.from_values([one]) for one in payloads.tolist())
        return BytesArray.from_values([_renamed(one, names)[0] for one in each])
    return in_order(pieces, len(payloads), empty_bytes)


class MixedRecords:
    """The records of several sources, one source after the other: a RecordSource."""

    def __init__(self, sources: Sequence[RecordSource], starts: Int64Array) -> None:
        """`starts`: the positions at which the sources begin, and the end of the last."""
        self._sources = sources
        self._starts = starts

    def read_records(
        self,
        positions: Int64Array,
        allocate: AllocateBytes = empty_bytes,
        faults: Faults | None = None,
    ) -> BytesArray:
        groups = self._by_shard(positions)
        if groups is not None:  # in one round, over a network
            offsets = offsets_from_lengths(payload_sizes(len(positions), groups))
            data = allocate(int(offsets[-1]))
            gather(groups, offsets[:-1], data, faults=faults)
            return BytesArray(data, offsets)
        pieces = []
        for source, members, own in self._by_source(positions):
            own_faults: Faults | None = None if faults is None else {}
            pieces.append((members, source.read_records(own, empty_bytes, own_faults)))
            if faults is not None and own_faults:
                faults |= {int(members[row]): error for row, error in own_faults.items()}
        read_byte_count = sum(bytes_read(payloads) for _, payloads in pieces)
        return MadePayloads(in_order(pieces, len(positions), allocate), read_byte_count)

    def record_sizes(self, positions: Int64Array) -> Int64Array:
        sizes = np.empty(len(positions), np.int64)
        for source, members, own in self._by_source(positions):
            sizes[members] = source.record_sizes(own)
        return sizes

    def locate_record(self, position: int) -> RecordLocation:
        at = int(np.searchsorted(self._starts, position, side="right")) - 1
        return self._sources[at].locate_record(position - int(self._starts[at]))

    def _by_source(
        self, positions: Int64Array
    ) -> Iterator[tuple[RecordSource, Int64Array, Int64Array]]:
        """Yield the sources of positions, which of the positions they have, and their own ones."""
        of = np.searchsorted(self._starts, positions, side="right") - 1
        for at in np.unique(of).tolist():
            members = np.flatnonzero(of == at)
            yield self._sources[at], members, positions[members] - self._starts[at]

    def _by_shard(self, positions: Int64Array) -> list[ShardGroup] | None:
        """Group positions by the shards of all datasets; None if records are made of others."""
        groups = []
        for source, members, own in self._by_source(positions):
            if not isinstance(source, SelectedRecords):
                return None
            groups += [
                group._replace(members=members[group.members]) for group in source.by_shard(own)
            ]
        return groups


class MixOrder(PositionOrder):
    """The order of a mix's positions.

    The draws of a dataset, epoch after epoch, are numbers of its own endless sequence: passes
    through the dataset, each in another order with `shuffle=True`, otherwise in the dataset's.
    """

    def __init__(
        self,
        record_counts: Sequence[int],
        draws_by_epoch: Sequence[tuple[int, ...]],
        *,
        shuffle: bool | BlockShuffle,
        seed: int,
    ) -> None:
        self.count = sum(draws_by_epoch[0])
        self._record_counts = tuple(record_counts)
        self._draws_by_epoch = tuple(draws_by_epoch)
        self._draw_order = DatasetOrder(self.count, shuffle=shuffle, seed=seed)
        self._shuffle = shuffle
        self._laps = [
            Permutations(count, seed, "mix", number) for number, count in enumerate(record_counts)
        ]

    def describe(self) -> dict[str, Any]:
        parts = zip(self._record_counts, *self._draws_by_epoch, strict=True)
        return {**self._draw_order.describe(), "mix": [list(part) for part in parts]}

    def runs(self, epoch: int, places: Int64Array) -> Int64Array | None:
        return self._draw_order.runs(epoch, places)

    def positions(self, epoch: int, places: Int64Array) -> Int64Array:
        last = len(self._draws_by_epoch) - 1
        draw_counts = self._draws_by_epoch[min(epoch, last)]
        earlier = self._draws_by_epoch[:epoch]
        if self._shuffle is False:
            draws = _interleaved(places, draw_counts)
        else:
            draws = self._draw_order.positions(epoch, places)
        positions = np.empty_like(places)
        first_draw = first_position = 0
        for number, (count, draw_count, laps) in enumerate(
            zip(self._record_counts, draw_counts, self._laps, strict=True)
        ):
            before = sum(counts[number] for counts in earlier)
            before += (epoch - len(earlier)) * self._draws_by_epoch[last][number]
            chosen = np.flatnonzero((draws >= first_draw) & (draws < first_draw + draw_count))
            lap, own = np.divmod(draws[chosen] + (before - first_draw), count)
            if self._shuffle is True:
                own = laps.numbers(lap, own)
            positions[chosen] = own + first_position
            first_draw += draw_count
            first_position += count
        return positions


def _checked_names(rename: object, part_count: int) -> Sequence[Mapping[str, str] | None]:
    if rename is None:
        return [None] * part_count
    is_list = isinstance(rename, (list, tuple)) and len(rename) == part_count
    for names in rename if is_list else [0]:  # type: ignore[attr-defined]
        texts = [*names, *names.values()] if isinstance(names, Mapping) else [names]
        if names is not None and not all(isinstance(text, str) for text in texts):
            raise OptionError(
                option="rename",
                value=rename,
                expected=f"a list of {part_count}: for each part None or a dict of new names of "
                "features by old ones",
            )
        if names and len({*names.values()}) < len(names):
            raise OptionError(
                f"{option('rename')} gives several features of a dataset one name",
                option="rename",
                value=names,
            )
    return rename  # type: ignore[return-value]


def _weights_by_epoch(parts: Sequence[tuple[Any, Any]]) -> list[list[Fraction]]:
    """Return the weights of all datasets in the first epochs, after which they stay the same."""
    lists = []
    for number, (_, weight) in enumerate(parts):
        if isinstance(weight, (list, tuple)) and weight:
            lists.append([_weight(number, one, may_be_zero=True) for one in weight])
        else:
            lists.append([_weight(number, weight)])
    epochs = [
        [weights[min(epoch, len(weights) - 1)] for weights in lists]
        for epoch in range(max(map(len, lists)))
    ]
    for epoch, weights in enumerate(epochs):
        if not any(weights):
            raise OptionError(
                f"all weights of epoch {epoch} are 0",
                option="parts",
                expected="a positive weight in each epoch",
            )
    return epochs


def _draws_of(draw_count: int, weights: Sequence[Fraction]) -> tuple[int, ...]:
    counts = tuple(shared_out(draw_count, weights))
    for number, (count, weight) in enumerate(zip(counts, weights, strict=True)):
        if weight and count == 0:
            raise OptionError(
                f"dataset {number} of the mix has weight {float(weight):.4g}, too small for one of "
                f"the {draw_count} examples of an epoch",
                option="parts",
                value=float(weight),
                remedy=f"Increase the weight or {option('length')}, or leave the dataset out.",
            )
    return counts


def _weight(number: int, weight: object, *, may_be_zero: bool = False) -> Fraction:
    is_number = isinstance(weight, (int, float, np.integer, np.floating))
    if (
        not is_number
        or isinstance(weight, bool)
        or not math.isfinite(weight)  # type: ignore[arg-type]
        or weight < 0  # type: ignore[operator]
        or (weight == 0 and not may_be_zero)
    ):
        raise OptionError(
            f"the weight of dataset {number} is {weight!r:.40}",
            option="parts",
            value=weight,
            expected="a positive number",
        )
    from fractions import Fraction

    return Fraction(float(weight))  # type: ignore[arg-type]


def shared_out(count: int, weights: Sequence[Fraction | float]) -> list[int]:
    """Return whole shares that add up to `count`: the rest goes to the largest remainders."""
    from fractions import Fraction

    exact = [Fraction(weight) for weight in weights]
    total = sum(exact)
    exact = [count * weight / total for weight in exact]
    shares = [math.floor(share) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda at: (shares[at] - exact[at], at))
    for at in by_remainder[: count - sum(shares)]:
        shares[at] += 1
    return shares


def _interleaved(places: Int64Array, counts: Sequence[int]) -> Int64Array:
    """Return which draw is at each place, when the draws of all datasets are spread evenly.

    Draws are numbered dataset by dataset. The first dataset takes its places evenly among all, the
    second evenly among the remaining ones, and so on.
    """
    draws = np.empty_like(places)
    rest, left = np.arange(len(places)), places
    first, total = 0, sum(counts)
    for count in counts:
        before = (left * count + total // 2) // total
        is_own = ((left + 1) * count + total // 2) // total > before
        draws[rest[is_own]] = first + before[is_own]
        rest, left = rest[~is_own], (left - before)[~is_own]
        first, total = first + count, total - count
    return draws
