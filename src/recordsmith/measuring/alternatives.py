"""Choose alternatives to the requested way of loading."""

from __future__ import annotations

from typing import Any, NamedTuple

from recordsmith.dataset import Dataset, records_of
from recordsmith.loading import BlockShuffle, BufferShuffle, Loader
from recordsmith.measuring.bench_report import Trial


class Alternative(NamedTuple):
    """A dataset and how to load it, as a trial without rounds.

    blocks: what the order `blocks` is.
    """

    trial: Trial
    dataset: Dataset
    blocks: BlockShuffle = BlockShuffle()

    def loader(self, features: Any, options: dict[str, Any]) -> Loader:
        """Create a loader for this alternative."""
        shuffles: dict[str, Any] = {
            "shuffled": True,
            "blocks": self.blocks,
            "buffer": BufferShuffle(),
        }
        shuffle = shuffles.get(self.trial.order, False)
        threads = self.trial.thread_count
        return Loader(self.dataset, features, shuffle=shuffle, threads=threads, **options)


def alternatives_to(requested: Alternative, processor_count: int) -> list[Alternative]:
    """Alternatives: 1, 2, 4, … threads up to the number of processors, and other orders.

    Blocks are tried only if a window of them is smaller than the dataset; otherwise they would
    shuffle all records. Compressed shards can only be read in order or through a buffer.
    """
    threads = sorted({*(1 << n for n in range(processor_count.bit_length())), processor_count})
    orders = ["in order", "buffer" if requested.trial.order == "buffer" else "shuffled"]
    if requested.trial.order == "in order" and _is_compressed(requested.dataset):
        orders = ["buffer"]
    elif (
        requested.trial.order != "buffer"
        and len(requested.dataset) > requested.blocks.size * requested.blocks.window
    ):
        orders.append("blocks")
    trials = [
        *(Trial("threads", count, requested.trial.order) for count in threads),
        *(Trial("order", requested.trial.thread_count, order) for order in orders),
    ]
    same = (requested.trial.thread_count, requested.trial.order)
    return [
        Alternative(trial, requested.dataset, requested.blocks)
        for trial in trials
        if (trial.thread_count, trial.order) != same
    ]


def _is_compressed(dataset: Dataset) -> bool:
    return records_of(dataset).compressed_shard() is not None
