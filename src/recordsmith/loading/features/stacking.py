"""Numbers of several keys as one array, such as the bands of an image that each have a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np

from recordsmith.format.example import Column, FeatureSpec
from recordsmith.image import Layout
from recordsmith.loading.features.feature import BatchRows, ColumnRequest, ValueFeature
from recordsmith.loading.features.numbers import Tensor, as_dtype, check_shape
from recordsmith.support.errors import OptionError
from recordsmith.support.explaining import check_word

if TYPE_CHECKING:
    from recordsmith.dataset import Dataset
    from recordsmith.loading.features.normalising import NormaliseLike


@dataclass(frozen=True)
class Stack(ValueFeature):
    """Numbers of several keys, the bands, as one array: (batch, *shape, bands).

    A record without one of the bands, or with another number of values, is an error.

    Attributes:
        keys: the keys of the bands in the records, in this order.
        shape: of each band, in C order: (257, 257) for images, () for a number.
        layout: HWC, or CHW for (batch, bands, *shape).
        dtype: as in `Tensor`. Default: int64 if all bands are, otherwise float32.
        default: the value for bands that a record lacks: a number, or an array of `shape`.
        normalise: as in `Tensor`, with the statistics of each key. The dimensions of `mask` are the
            bands. For images, pass a `Normalise` with one number for each band, such as
            {"B2": {"mean": 0.1, "std": 0.05}}.

    Example:
        sizes = rs.Stack(["image/height", "image/width"], shape=())
        loader = rs.Loader(dataset, {"size": sizes}, batch_size=8)
        print(next(iter(loader))["size"].shape)  # (8, 2)
    """

    keys: Sequence[str]
    shape: tuple[int, ...]
    _: KW_ONLY
    layout: Layout = "HWC"
    dtype: str | None = None
    default: Any = None
    normalise: NormaliseLike = None
    bands: tuple[Tensor, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        keys: Any = self.keys
        if not isinstance(keys, (list, tuple)) or not keys or not all(
            isinstance(key, str) for key in keys
        ):  # fmt: skip
            raise OptionError(
                option="keys", value=keys, expected="a list of keys, such as ['B2', 'B3', 'B4']"
            )
        check_shape(self.shape, "(257, 257)")
        check_word("layout", self.layout, get_args(Layout))
        how: Any = self.normalise
        all_how = [how] * len(keys)
        if getattr(how, "mask", None) is not None:
            mask = np.atleast_1d(np.array(how.mask, object))
            if len(mask) != len(keys):
                raise OptionError(
                    option="mask", value=how.mask, expected=f"{len(keys)} values of True or False"
                )
            all_how = [replace(how, mask=[value]) for value in mask]
        bands = [
            Tensor(key, self.shape, dtype=self.dtype, default=self.default, normalise=how)
            for key, how in zip(keys, all_how, strict=True)
        ]
        object.__setattr__(self, "keys", tuple(keys))
        object.__setattr__(self, "bands", tuple(bands))

    def requests(self) -> dict[str, ColumnRequest]:
        return {key: request for band in self.bands for key, request in band.requests().items()}

    def of_datasets(self, datasets: Sequence[Dataset], specs: Mapping[str, FeatureSpec]) -> Self:
        """Return this feature with the statistics to normalise it with."""
        feature = copy(self)
        bands = tuple(band.of_datasets(datasets, specs) for band in self.bands)
        object.__setattr__(feature, "bands", bands)
        return feature

    def scaling_digest(self) -> str | None:
        return "; ".join(filter(None, (band.scaling_digest() for band in self.bands))) or None

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        columns: list[Any] = [band.values(rows)[0] for band in self.bands]
        are_whole = all(column.dtype == np.int64 for column in columns)
        dtype = self.dtype or ("int64" if are_whole else "float32")
        bands = [as_dtype(*band, dtype) for band in zip(self.keys, columns, strict=True)]
        return (np.stack(bands, axis=-1 if self.layout == "HWC" else 1),)
