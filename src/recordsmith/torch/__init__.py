"""Batches and examples as PyTorch tensors, for DataLoader and DDP.

    stream = DataLoader(batches(loader), batch_size=None, pin_memory=True)
    for batch in stream: ...

`conversion` converts batches to tensors, `stream` is the dataset for a DataLoader,
`worker_iterations` synchronizes its workers, `worker_end` ends them with the main process,
`sequence` is for samplers, `ranks` finds the rank of this process.
"""

try:
    from recordsmith.loading.adapters import RaggedParts
    from recordsmith.torch.conversion import convert
    from recordsmith.torch.ranks import this_rank
    from recordsmith.torch.sequence import ExampleDataset, examples
    from recordsmith.torch.stream import TorchBatches, batches
except ModuleNotFoundError as error:
    from recordsmith.errors import MissingExtraError

    if error.name != "torch":
        raise
    raise MissingExtraError("torch", "torch") from error

__all__ = [
    "ExampleDataset",
    "RaggedParts",
    "TorchBatches",
    "batches",
    "convert",
    "examples",
    "this_rank",
]
