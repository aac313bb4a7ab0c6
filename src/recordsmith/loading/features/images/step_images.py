"""Images in the feature lists of SequenceExamples: `Steps(Image(key))`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import msgspec
import numpy.typing as npt

from recordsmith.format.example import BytesArray, Column, RaggedArray
from recordsmith.image import Fit
from recordsmith.loading.features.feature import (
    BatchRows,
    ColumnRequest,
    Feature,
    ImageFeature,
    RowFeature,
    images_in,
)
from recordsmith.loading.features.images.frames import one_thread_in_opencv
from recordsmith.loading.features.images.image import DecodedImageBuffer, Image
from recordsmith.loading.features.numbers import pad
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import CorruptDataError, DataError, Defect, OptionError, option

if TYPE_CHECKING:
    from recordsmith.loading.features.steps import Steps


@dataclass(frozen=True)
class StepImages(Image):
    """The images of chosen steps: (batch, steps, height, width, channels).

    Attributes:
        steps: the feature that chooses them. Other attributes as in `Image`.
    """

    steps: Steps = field(kw_only=True)

    @classmethod
    def of(cls, steps: Steps) -> StepImages:
        """Return the images of a feature of steps."""
        image = steps.feature
        options = {one.name: getattr(image, one.name) for one in fields(Image) if one.init}
        return cls(**options, steps=steps)

    def requests(self) -> Mapping[str, ColumnRequest]:
        return self.steps.requests()

    def outputs(self, name: str) -> tuple[str, ...]:
        return self.steps.outputs(name)

    @property
    def image_count(self) -> int | None:
        return self.steps.width

    def check(self, name: str, features: Mapping[str, Feature]) -> None:
        super().check(name, features)
        is_only = len(images_in(features)) == 1
        for other, follower in features.items():
            of = getattr(follower, "of", None)
            is_follower = isinstance(follower, RowFeature) and not isinstance(
                follower, ImageFeature
            )
            if is_follower and (of == name or (of is None and is_only)):
                raise OptionError(
                    f"feature {other!r} cannot follow {name!r}, which has the images of several "
                    "steps",
                    option="features",
                    remedy=f"Leave it out, or pass {option('of')} with another image.",
                )

    def size_of(self, columns: Mapping[str, Column]) -> tuple[int, int]:
        images = _steps_of(columns[self.key])
        images = images[images.lengths > 0][:1]
        if not len(images):
            raise CorruptDataError(
                Defect.UNREADABLE_IMAGE, f"feature {self.key!r} has no images", feature=self.key
            )
        return super().size_of({self.key: images})

    def begin(self, name: str, rows: BatchRows) -> DecodedImageBuffer:
        from recordsmith.loading.features.steps import padded_bytes

        column = rows.columns[self.key]
        assert isinstance(column, RaggedArray)
        for error in self.steps.errors({self.key: column}):
            assert error.record is not None
            rows.fail(error.record, error)
        chosen = self.steps.choice(column.lengths, rows.random_numbers)
        width = self.steps.width or max(1, int(chosen.counts.max(initial=0)))
        image = copy(self)
        object.__setattr__(image, "count", width)
        images = {self.key: padded_bytes(chosen.of(column), chosen.counts, width)}
        of_batch = msgspec.structs.replace(rows, columns={**rows.columns, **images})
        one_thread_in_opencv()
        steps, _ = pad(chosen.within, chosen.counts, width, 0)
        buffer = _StepImageBuffer(image, name, of_batch, steps.ravel())
        buffer.entries[f"{name}_lengths"] = chosen.counts
        return buffer


class _StepImageBuffer(DecodedImageBuffer):
    """Images whose errors have the step of their record."""

    def __init__(self, feature: Image, name: str, rows: BatchRows, steps: Int64Array) -> None:
        self._steps = steps
        super().__init__(feature, name, rows)

    def _look(self, number: int, fit: Fit) -> tuple[int, int] | None:
        with self._of_step(number):
            return super()._look(number, fit)

    def _fill_image(self, number: int, out: npt.NDArray[Any]) -> None:
        with self._of_step(number):
            super()._fill_image(number, out)

    @contextmanager
    def _of_step(self, number: int) -> Iterator[None]:
        try:
            yield
        except DataError as error:
            error.feature = error.feature or self._feature.key
            error.problem = f"step {self._steps[number]}: {error.problem}"
            raise


def _steps_of(column: Column) -> BytesArray:
    assert isinstance(column, RaggedArray)
    assert isinstance(column.values, BytesArray)
    return column.values
