"""Images in the feature lists of SequenceExamples: `Steps(Image(key))`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from recordsmith.format.example import RaggedArray
from recordsmith.loading.features.feature import BatchRows, ColumnRequest, Kept
from recordsmith.loading.features.images.image import Image
from recordsmith.loading.features.images.image_lists import limited
from recordsmith.support.buffers import Int64Array, offsets_from_lengths


@dataclass(frozen=True)
class StepImages(Image):
    """The images of chosen steps: (batch, steps, height, width, channels), or a RaggedArray.

    Attributes:
        steps: the `Steps` that chooses them. Other attributes as in `Image`.
    """

    steps: Any = field(kw_only=True)

    @classmethod
    def of(cls, steps: Any) -> StepImages:
        """Return the images of a feature of steps."""
        image = steps.feature
        options = {one.name: getattr(image, one.name) for one in fields(Image) if one.init}
        options["count"] = "ragged" if steps.length == "ragged" else "padded"
        return cls(**options, steps=steps)

    def requests(self) -> Mapping[str, ColumnRequest]:
        requests: Mapping[str, ColumnRequest] = self.steps.requests()
        return requests

    def keep(self, rows: BatchRows, counts: Int64Array, area: int) -> Kept:
        for error in self.steps.errors({self.key: counts}):
            assert error.record is not None
            rows.fail(error.record, error)
        chosen = self.steps.choice(counts, rows.random_numbers)
        numbers = RaggedArray(chosen.within, offsets_from_lengths(chosen.counts))
        return limited(Kept(numbers, counts, self.steps.width), rows, self.key, "image", area)
