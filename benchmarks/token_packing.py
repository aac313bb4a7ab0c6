"""Measure the packing of documents into rows of tokens: CPU time of a token and fill, and grain's.

    python benchmarks/token_packing.py

Prints a Markdown table. The documents are packed TFRecords in the page cache; checksums are
verified. All run in this process with one thread, in turn; the median of the rounds counts. grain
reads with the source of recordsmith, and once more from arrays in memory: its packing alone.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import recordsmith as rs

LENGTH, BATCH, BINS = 2048, 8, 64
TOKENS = 4_000_000  # of each distribution
LONG = "a million each"
BASE = "recordsmith, best fit"
VOCABULARY = 50_257

Job = Callable[[], tuple[int, int]]
"""Reads all rows; returns how many tokens and how many rows there were."""


def drawn_lengths() -> dict[str, Any]:
    """Lengths of documents, by distribution."""
    rng = np.random.default_rng(0)
    many = TOKENS // 10
    lengths = {
        "log-normal, median 245": np.exp(rng.normal(5.5, 1, many)),
        "uniform up to a row": rng.integers(1, LENGTH + 1, many),
        "mostly short, mean 60": rng.geometric(1 / 60, many),
    }
    whole = {name: np.clip(drawn, 1, LENGTH).astype(np.int64) for name, drawn in lengths.items()}
    cut = {name: drawn[: np.searchsorted(drawn.cumsum(), TOKENS)] for name, drawn in whole.items()}
    return cut | {LONG: np.full(8, 1_000_000)}


def write(folder: Path, lengths: Any, shards: int = 4) -> rs.Dataset:
    """Documents of random tokens, packed."""
    rng = np.random.default_rng(1)
    folder.mkdir()
    for number, part in enumerate(np.array_split(lengths, shards)):
        with rs.ShardWriter(folder / f"train-{number:05}-of-{shards:05}.tfrecord") as writer:
            splits = np.concatenate([[0], part.cumsum()])
            values = rng.integers(0, VOCABULARY, int(splits[-1]))
            writer.write_columns({"tokens": rs.RaggedArray(values, splits)})
    return rs.open(folder)


def ours(dataset: rs.Dataset, shuffle: bool | rs.BlockShuffle = True, **options: Any) -> Job:
    def read() -> tuple[int, int]:
        packed = rs.Packed(dataset, "tokens", length=LENGTH, **options)
        loader = rs.Loader(packed, batch_size=BATCH, shuffle=shuffle, threads=0)
        return _counted(loader, "document_ids")

    return read


def grain_jobs(dataset: rs.Dataset, lengths: Any) -> dict[str, Job]:
    import grain
    from grain import experimental

    from recordsmith.grain import examples

    source = examples(dataset, {"tokens": rs.Ragged("tokens")})
    in_memory = [{"tokens": np.asarray(source[at]["tokens"])} for at in range(len(lengths))]

    def job(documents: Any, packing: Any, **options: Any) -> Job:
        def read() -> tuple[int, int]:
            one_thread = grain.ReadOptions(num_threads=0)
            shuffled = grain.MapDataset.source(documents).shuffle(seed=0)
            rows = packing(
                shuffled.to_iter_dataset(one_thread), length_struct={"tokens": LENGTH}, **options
            )
            return _counted(rows.batch(BATCH), "tokens_segment_ids")

        return read

    first, best = experimental.FirstFitPackIterDataset, experimental.BestFitPackIterDataset
    return {
        f"grain, first fit, {BINS} bins": job(source, first, num_packing_bins=BINS),
        f"grain, best fit, {BINS} bins": job(source, best, num_packing_bins=BINS),
        "grain, best fit, from memory": job(in_memory, best, num_packing_bins=BINS),
        "grain, end to end": job(source, experimental.ConcatThenSplitIterDataset),
    }


def _counted(batches: Any, ids: str) -> tuple[int, int]:
    token_count = row_count = 0
    for batch in batches:
        token_count += int(np.count_nonzero(batch[ids]))
        row_count += len(batch[ids])
    return token_count, row_count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    print("| documents | packing | CPU seconds for a million tokens | recordsmith = 1 | fill |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, lengths) in enumerate(drawn_lengths().items()):
            dataset = write(Path(folder) / str(number), lengths)
            window = max(1, round(BINS * LENGTH / lengths.mean()))
            jobs = {
                BASE: ours(dataset, split_documents=False),
                f"recordsmith, best fit, {window} documents": ours(
                    dataset, split_documents=False, window=window
                ),
                "recordsmith, end to end": ours(dataset),
            }
            if name == LONG:
                blocks = rs.BlockShuffle(1024, 4)
                jobs["recordsmith, end to end, in blocks"] = ours(dataset, blocks)
            try:
                jobs |= {} if name == LONG else grain_jobs(dataset, lengths)
            except ImportError:
                print(f"| {name} | grain is not installed | | | |")
            seconds: dict[str, list[float]] = {who: [] for who in jobs}
            fills = {}
            for at in range(rounds + 1):
                for who, job in jobs.items():
                    begun = time.process_time()
                    token_count, row_count = job()
                    spent = time.process_time() - begun
                    seconds[who] += [spent] if at else []  # the first round reads the lengths
                    fills[who] = token_count / (row_count * LENGTH)
                    assert token_count == lengths.sum() or "end to end" in who
            medians = {who: statistics.median(own) for who, own in seconds.items()}
            for who, median in medians.items():
                million = median / lengths.sum() * 1e6
                shown = f"{million:.3f} | {median / medians[BASE]:.2f} | {fills[who]:.4f}"
                print(f"| {name} | {who} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
