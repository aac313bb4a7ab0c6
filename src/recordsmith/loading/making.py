"""What makes batches of a dataset? The features that were meant, and what is read for them."""

from __future__ import annotations

from collections.abc import Mapping

from recordsmith.dataset import Dataset
from recordsmith.errors import OptionError
from recordsmith.loading.batches import BatchMaker
from recordsmith.loading.declaring import declare_features
from recordsmith.loading.features import Feature
from recordsmith.loading.functions import Changes
from recordsmith.loading.mix import Mix
from recordsmith.loading.requests import merged_glance, resolve_for_all

_GLANCE_COUNT = 64  # records that are looked at where the schema is not known


def check_dataset(dataset: object) -> None:
    """Raise OptionError unless it is something that batches can be made of."""
    if not isinstance(dataset, (Dataset, Mix)):
        raise OptionError(
            f"the dataset is {dataset!r:.60}; expected what recordsmith.open() answers, or a "
            "Mix of several"
        )


def batch_maker(
    dataset: Dataset | Mix,
    features: Mapping[str, Feature | str] | None,
    *,
    seed: int,
    changes: Changes,
    may_skip: bool = False,
) -> BatchMaker:
    """What makes batches of these features.

    Nothing is read but what shows that the records have them.

    Raises:
        OptionError: as of `declare_features`; or the records lack what is declared.
    """
    datasets = dataset.datasets if isinstance(dataset, Mix) else (dataset,)
    glances = [one.glance(_GLANCE_COUNT) for one in datasets]
    schema, is_complete = merged_glance(glances)
    declared = declare_features(features, schema, is_complete=is_complete)
    return BatchMaker(
        dataset,
        declared,
        resolve_for_all(declared, glances, may_skip=may_skip),
        seed=seed,
        changes=changes,
        may_skip=may_skip,
    )
