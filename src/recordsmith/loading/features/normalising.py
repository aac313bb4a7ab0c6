"""Normalises numbers by statistics of the dataset, by dimension."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.checking import NORMALISATION_NAME, Normalisation, is_current
from recordsmith.dataset import Dataset, read_manifest, records_of
from recordsmith.stores import PlaceLike
from recordsmith.support.errors import MissingFileError, OptionError, option
from recordsmith.support.explaining import check_word
from recordsmith.support.words import suggest_names

Method = Literal["q99", "mean"]
_NEEDED = {"q99": ("q01", "q99"), "mean": ("mean", "std")}
_EPSILON = 1e-8


@dataclass(frozen=True)
class Normalise:
    """How to normalise a feature: the method, its statistics, and which dimensions.

    Constant dimensions, whose minimum is their maximum, become 0. Without minimum and maximum, a
    standard deviation of 0 is an error, unless `mask` leaves its dimension as it is.

    Attributes:
        method: `q99` maps the 1st percentile to -1 and the 99th to 1, and clips the rest; `mean`
            subtracts the mean and divides by the standard deviation.
        statistics: of `normalisation`, or the path of a file of them; or a dict of lists by name
            (`q01`, `q99`, `mean`, `std`, `min`, `max`), or of such dicts by key. None for
            `normalisation.json` next to the manifest of the dataset.
        mask: which dimensions are normalised, (dimensions,); the others keep their values, such as
            that of a gripper. None for all.

    Example:
        sizes = rs.normalisation(dataset, ["image/width"])
        features = {"width": rs.Scalar("image/width", normalise=rs.Normalise("mean", sizes))}
    """

    method: Method
    statistics: Normalisation | Mapping[str, Any] | PlaceLike | None = None
    _: KW_ONLY
    mask: Sequence[bool] | None = None

    def __post_init__(self) -> None:
        check_word("method", self.method, get_args(Method))

    def scaling(self, key: str, shape: tuple[int, ...], datasets: Sequence[Dataset]) -> Scaling:
        """Return the numbers to normalise a feature with."""
        statistics = self.statistics
        if statistics is None:
            statistics = _of_folder(datasets)
        elif not isinstance(statistics, (Mapping, Normalisation)):
            statistics = Normalisation.load(statistics)
        low, high, is_constant = self._figures(key, statistics)
        width = len(low)
        mask = np.ones(width, np.bool_)
        if self.mask is not None:
            values = np.array(self.mask, object)
            if values.shape != (width,) or not all(
                isinstance(value, (bool, np.bool_)) for value in values
            ):
                raise OptionError(
                    option="mask", value=self.mask, expected=f"{width} values of True or False"
                )
            mask = values.astype(np.bool_)
        is_flat = (high == 0) & ~is_constant & mask
        if self.method == "mean" and is_flat.any():
            raise OptionError(
                f"the statistics of {key!r} have std 0 for dimension {int(np.argmax(is_flat))}",
                option="statistics",
                value=high.tolist(),
                expected="a positive std, or a min that equals its max for a constant dimension",
                remedy=f"Leave the dimension as it is with {option('mask')}.",
            )
        if width not in (1, *shape[-1:]):
            raise OptionError(
                f"the statistics of {key!r} have {width} dimensions, but the feature has shape "
                f"{shape}",
                option="shape",
                value=shape,
                expected=f"{width} as the last axis",
            )
        return Scaling(self.method, low, high, is_constant, mask)

    def _figures(
        self, key: str, statistics: Normalisation | Mapping[str, Any]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Return both numbers of the method by dimension, and which dimensions are constant."""
        names = _NEEDED[self.method]
        all_features = statistics if isinstance(statistics, Mapping) else statistics.features
        known: Any = all_features.get(key, None if names[0] not in all_features else all_features)
        if known is None:
            raise OptionError(
                f"the statistics have no feature {key!r}; "
                f"{suggest_names(key, all_features, 'they have no features')}",
                option="statistics",
                value=key,
            )
        figures: list[npt.NDArray[np.float64]] = []
        for name in (*names, "min", "max"):
            own = known.get(name) if isinstance(known, Mapping) else getattr(known, name, None)
            if own is None and name in ("min", "max"):
                continue
            try:
                numbers = np.atleast_1d(np.asarray(own, np.float64))
            except (TypeError, ValueError):
                numbers = np.full(1, np.nan)
            if numbers.ndim != 1 or not np.isfinite(numbers).all() or (
                figures and len(numbers) != len(figures[0])
            ):  # fmt: skip
                raise OptionError(
                    f"the statistics of {key!r} have {name} {own!r:.80}",
                    option="statistics",
                    value=own,
                    expected="a finite number for each dimension",
                )
            figures.append(numbers)
        low, high = figures[:2]
        lowest = low if self.method == "q99" else np.zeros(1)
        if (high < lowest).any():
            raise OptionError(
                f"the statistics of {key!r} have {names[1]} {high.tolist()!r:.80}",
                option="statistics",
                value=high.tolist(),
                expected="at least q01" if self.method == "q99" else "0 or more",
            )
        is_constant = np.zeros(len(low), np.bool_)
        if len(figures) == 4:
            is_constant = figures[2] == figures[3]
        elif self.method == "q99":
            is_constant = high == low
        return low, high, is_constant


NormaliseLike: TypeAlias = Normalise | Method | None


class Scaling(NamedTuple):
    """The numbers that normalise a feature, (dimensions,)."""

    method: Method
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    is_constant: npt.NDArray[np.bool_]
    mask: npt.NDArray[np.bool_]

    def apply(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return normalised values, float32; the last axis are the dimensions if there are many."""
        numbers = values.astype(np.float64)
        if self.method == "q99":
            span = self.high - self.low + _EPSILON
            scaled = np.clip(2 * (numbers - self.low) / span - 1, -1, 1)
        else:
            scaled = (numbers - self.low) / (self.high + _EPSILON)
        scaled[..., self.is_constant] = 0
        return np.where(self.mask, scaled, numbers).astype(np.float32)

    def digest(self) -> str:
        """Return the method and a short hash of all numbers, for the state of a loader."""
        numbers = b"".join(np.asarray(part).tobytes() for part in self[1:])
        return f"{self.method} {hashlib.blake2b(numbers, digest_size=8).hexdigest()}"


def _of_folder(datasets: Sequence[Dataset]) -> Normalisation:
    folders = {
        shard.location.parent
        for dataset in datasets
        for shard in records_of(dataset).all_shards
        if shard.entry is not None
    }
    remedy = (
        f"Compute them with `recordsmith normalisation`, and pass {option('statistics')} of "
        "Normalise."
    )
    if len(datasets) != 1 or len(folders) != 1:
        raise OptionError(
            "only a single dataset with a manifest has its own statistics for normalising",
            option="normalise",
            remedy=remedy,
        )
    (folder,) = folders
    location = folder / NORMALISATION_NAME
    try:
        statistics = Normalisation.load(location)
    except MissingFileError:
        raise OptionError(
            f"{folder} has no statistics for normalising",
            option="normalise",
            remedy=f"Write them with `recordsmith normalisation {folder} --feature KEY`.",
        ) from None
    manifest = read_manifest(folder)
    if manifest is None or not is_current(statistics, manifest):
        raise OptionError(
            f"{location} has statistics of other records than those of the dataset",
            option="normalise",
            value=str(location),
            remedy="Write them again with `recordsmith normalisation --overwrite`, or pass "
            f"{option('statistics')} of Normalise.",
        )
    return statistics
