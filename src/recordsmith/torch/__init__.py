"""Batches and examples as PyTorch's tensors, for its DataLoader and for DDP.

    stream = DataLoader(batches(loader), batch_size=None, pin_memory=True)
    for batch in stream: ...

`conversion` makes tensors of batches, `stream` is what a DataLoader reads, `turns` brings its
workers together, `sequence` is for samplers, `launcher` says which rank this is.
"""

try:
    from recordsmith.torch.conversion import Ragged, convert
    from recordsmith.torch.launcher import this_rank
    from recordsmith.torch.sequence import ExampleDataset, examples
    from recordsmith.torch.stream import Batches, batches
except ModuleNotFoundError as error:
    from recordsmith.errors import MissingExtraError

    if error.name != "torch":
        raise
    raise MissingExtraError("torch", "torch") from error

__all__ = [
    "Batches",
    "ExampleDataset",
    "Ragged",
    "batches",
    "convert",
    "examples",
    "this_rank",
]
