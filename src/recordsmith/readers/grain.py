"""Generate code for grain, with recordsmith.grain."""

from __future__ import annotations

from recordsmith.errors import OptionError
from recordsmith.readers.description import Description
from recordsmith.readers.loader_features import dataset_line, feature_lines, stacks


def source_code(description: Description) -> str:
    """A program that loads batches, or examples if they cannot be stacked.

    Raises:
        OptionError: the shards are compressed, so they have no random access.
    """
    if description.compression != "none":
        raise OptionError(
            f"{description.name} is compressed with {description.compression}, but grain needs "
            "random access",
            remedy="Write uncompressed shards with `recordsmith pack PATH OUT --format shards`.",
        )
    batches = stacks(description)
    made = ".batch(32)" if batches else ""
    one = "batch" if batches else "example"
    return "\n".join(
        [
            "import grain",
            "import numpy as np",
            "import recordsmith as rs",
            "import recordsmith.grain",
            "",
            dataset_line(description),
            *feature_lines(description),
            "examples = recordsmith.grain.examples(dataset, features)",
            *(
                []
                if batches
                else ["# features of varying length cannot be stacked: pass a batch_fn to batch()"]
            ),
            f"loaded = grain.MapDataset.source(examples).seed(0).shuffle(){made}.to_iter_dataset()",
            "",
            f"for {one} in loaded:",
            f"    for key, value in {one}.items():",
            '        print(f"{key!r}: {np.asarray(value).dtype} {np.shape(value)}")',
            "    break",
            "",
        ]
    )
