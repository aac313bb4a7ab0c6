"""Creates the BatchMaker of a loader: resolves its features against the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from recordsmith.format.example import FeatureSpec, decode_columns
from recordsmith.loading.batches.batch import BatchMaker
from recordsmith.loading.batches.user_functions import UserFunctions
from recordsmith.loading.features.declaration import Features, declare_features
from recordsmith.loading.features.feature import images_in
from recordsmith.loading.features.requests import resolve_for_all, warn_of_absent
from recordsmith.loading.order.inputs import LoaderInput
from recordsmith.loading.preview import Preview
from recordsmith.support.errors import DataError, OptionError

if TYPE_CHECKING:
    from recordsmith.loading.features.images.image import Image


def make_batch_maker(
    source: LoaderInput,
    features: Features | None,
    *,
    seed: int,
    functions: UserFunctions,
    may_skip: bool = False,
) -> BatchMaker:
    """Return a BatchMaker for these features. Reads only the schema, or the first records."""
    previews = source.previews()
    preview = Preview.merged(previews)
    declared = declare_features(features, preview)
    specs, absent = resolve_for_all(declared, previews, may_skip=may_skip)
    watched = warn_of_absent(absent)
    for name, feature in declared.items():
        declared[name] = feature.of_datasets(source.datasets, specs)
        declared[name].check(name, declared)  # also what the datasets show
    images: set[str] = set()
    if images_in(declared):
        from recordsmith.loading.features.images.image import Image

        for name, feature in declared.items():
            if isinstance(feature, Image) and feature.needs_one_size:
                declared[name] = _of_one_size(name, feature, specs, source)
            if isinstance(feature, Image) and feature.stored() is None:
                images.add(feature.key)
    keys = {key for feature in declared.values() for key in feature.requests()}
    return BatchMaker(
        source.reading(keys, images),
        declared,
        specs,
        seed=seed,
        functions=functions,
        may_skip=may_skip,
        watched=watched,
    )


def _of_one_size(
    name: str, image: Image, specs: Mapping[str, FeatureSpec], source: LoaderInput
) -> Image:
    """Return an Image with the size of the first images; the others are checked when loaded."""
    from recordsmith.loading.features.images.image import in_words, line_with_size

    sizes: dict[tuple[int, int], str] = {}  # with the record that first has it
    for number, position, size in _first_sizes(image, specs, source):
        of_mix = f" of dataset {number}" if len(source.datasets) > 1 else ""
        sizes.setdefault(size, f"record {position}{of_mix}")
    if len(sizes) == 1:
        return image.of_one_size(next(iter(sizes)))
    if not any(map(len, source.datasets)):
        return image
    problem = "none of the first images can be read, so their size is unknown"
    if sizes:
        some = list(sizes.items())[:2]
        found = " and ".join(f"{in_words(size)} ({record})" for size, record in some)
        problem = f"the images have different sizes, {found}"
    raise OptionError(
        f"feature {name!r}: {problem}",
        option="size",
        value=list(sizes),
        expected="one size for all images, or a size to fit them to",
        remedy=f"Declare one: {line_with_size(name, image)}.",
    )


def _first_sizes(
    image: Image, specs: Mapping[str, FeatureSpec], source: LoaderInput
) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Yield number of dataset, position and size of the first images."""
    wanted = {key: specs[key] for key in image.requests()}
    start = np.zeros(1, np.int64)
    for number, position, payload in source.first_payloads():
        with suppress(DataError):
            columns = decode_columns(payload, start, start + len(payload), wanted)
            size = image.size_of(columns)
            if size is not None:
                yield number, position, size
