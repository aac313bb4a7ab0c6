"""Generate code for PyTorch, with recordsmith.torch."""

from __future__ import annotations

from recordsmith.readers.description import Description
from recordsmith.readers.loader_features import dataset_line, feature_lines


def source_code(description: Description) -> str:
    """A program that loads batches of tensors."""
    shuffle = "True" if description.compression == "none" else "rs.BufferShuffle()"
    return "\n".join(
        [
            "import recordsmith as rs",
            "import recordsmith.torch",
            "",
            dataset_line(description),
            *feature_lines(description),
            f"loader = rs.Loader(dataset, features, batch_size=32, shuffle={shuffle})",
            "",
            "for batch in recordsmith.torch.batches(loader):",
            "    for key, value in batch.items():",
            '        print(f"{key!r}:", getattr(value, "shape", f"{len(value)} values"))',
            "    break",
            "",
        ]
    )
