"""Code for grain, by recordsmith.grain."""

from __future__ import annotations

from recordsmith.errors import OptionError
from recordsmith.readers.description import Description
from recordsmith.readers.loader_features import dataset_line, feature_lines, stacks


def program(description: Description) -> str:
    """A program that gives batches, or examples where those cannot be stacked.

    Raises:
        OptionError: shards are compressed, which grain would have to read at positions.
    """
    if description.compression != "none":
        raise OptionError(
            f"{description.name} is compressed with {description.compression}, so its records "
            "cannot be read at positions, as grain does: write the shards uncompressed, with "
            "`recordsmith pack PATH OUT --as shards`"
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
                else [
                    "# what differs in length cannot be stacked: give batch() a batch_fn of yours"
                ]
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
