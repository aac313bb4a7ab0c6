"""Batches and examples as PyTorch tensors, for DataLoader and DDP.

    stream = DataLoader(batches(loader), batch_size=None, pin_memory=True)
    for batch in stream: ...

`stream` is the dataset for a DataLoader, with or without workers; `tensors` converts batches, and
has single examples for samplers.
"""

from recordsmith.support.errors import needs_extra

with needs_extra("torch"):
    from recordsmith.loading import RaggedParts
    from recordsmith.torch.stream import TorchBatches, batches, this_rank
    from recordsmith.torch.tensors import ExampleDataset, convert, examples

__all__ = [
    "ExampleDataset",
    "RaggedParts",
    "TorchBatches",
    "batches",
    "convert",
    "examples",
    "this_rank",
]
