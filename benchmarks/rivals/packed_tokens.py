"""Documents of tokens, packed into rows of equal length, by rivals that document such a thing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rival import Rival, UnsupportedError, written_once

from clock import cpu_seconds

LENGTH, BATCH, VOCABULARY, BINS = 2_048, 8, 50_257, 64

Epochs = Callable[[], Iterator[tuple[int, int]]]
"""What begins an epoch: for each batch the number of its tokens and of its rows."""


def documents(token_count: int) -> list[Any]:
    """Log-normal lengths, the median of which is 245 tokens; no document is longer than a row."""
    import numpy as np

    rng = np.random.default_rng(0)
    lengths = np.clip(np.exp(rng.normal(5.5, 1, token_count // 100)), 1, LENGTH).astype(int)
    lengths = lengths[: np.searchsorted(lengths.cumsum(), token_count)]
    values = rng.integers(1, VOCABULARY, int(lengths.sum()))
    return np.split(values, lengths.cumsum()[:-1])


def measure(_rival: Rival, way: str, folder: str, token_count: int) -> dict[str, Any]:
    """Two epochs; what is computed once is in the first one.

    way: a name of `WAYS`, which is all that is asked of a rival here.
    """
    if way not in WAYS:
        raise UnsupportedError(CANNOT.get(way, "not measured"))
    write, read = WAYS[way]
    texts = documents(token_count)
    place = Path(folder) / f"tokens-{write.__name__}-{token_count}"
    written_once(place, lambda folder: write(texts, folder))
    taken = []
    cpu = cpu_seconds()
    epochs = read(place)
    for _ in range(2):
        counts = list(epochs())
        taken.append(cpu_seconds() - cpu)
        cpu = cpu_seconds()
    tokens, rows = (sum(values) for values in zip(*counts, strict=True))
    total = sum(map(len, texts))
    assert total - LENGTH < tokens <= total or "end" in way, f"{tokens} of {total} tokens"
    return {
        "first": taken[0],
        "second": taken[1],
        "fill": tokens / (rows * LENGTH),
        "share": tokens / total,
        "count": total,
    }


def _write_records(texts: list[Any], folder: Path) -> None:
    import numpy as np

    import recordsmith as rs

    for shard in range(4):
        part = texts[shard::4]
        splits = np.cumsum([0, *map(len, part)])
        with rs.ShardWriter(folder / f"train-{shard:05}-of-00004.tfrecord") as writer:
            writer.write_columns({"tokens": rs.RaggedArray(np.concatenate(part), splits)})


def _read_records(folder: Path, *, split: bool) -> Epochs:
    import numpy as np

    import recordsmith as rs

    rows = rs.Packed(rs.open(folder), "tokens", length=LENGTH, split_documents=split)
    loader = rs.Loader(rows, batch_size=BATCH, shuffle=True, threads=1)

    def begin() -> Iterator[tuple[int, int]]:
        for batch in loader:
            yield int(np.count_nonzero(batch["document_ids"])), len(batch["tokens"])

    return begin


def _write_array_record(texts: list[Any], folder: Path) -> None:
    import numpy as np
    from array_record.python.array_record_module import ArrayRecordWriter

    writer = ArrayRecordWriter(str(folder / "tokens.array_record"), "group_size:1")
    for text in texts:
        writer.write(text.astype(np.int32).tobytes())
    writer.close()


def _read_grain(folder: Path, *, is_end_to_end: bool) -> Epochs:
    import grain
    import numpy as np
    from grain import experimental

    source = grain.sources.ArrayRecordDataSource(str(folder / "tokens.array_record"))
    options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=64)
    number = 0

    def begin() -> Iterator[tuple[int, int]]:
        nonlocal number
        number += 1
        texts = (
            grain.MapDataset.source(source)
            .shuffle(seed=number)
            .map(lambda record: {"tokens": np.frombuffer(record, np.int32)})
            .to_iter_dataset(options)
        )
        lengths = {"tokens": LENGTH}
        rows: Any
        if is_end_to_end:
            rows = experimental.ConcatThenSplitIterDataset(texts, length_struct=lengths)
        else:
            rows = experimental.BestFitPackIterDataset(
                texts, length_struct=lengths, num_packing_bins=BINS
            )
        for batch in rows.batch(BATCH):
            yield int(np.count_nonzero(batch["tokens_segment_ids"])), len(batch["tokens"])

    return begin


def _write_hugging_face(texts: list[Any], folder: Path) -> None:
    import datasets

    datasets.Dataset.from_dict({"input_ids": texts}).save_to_disk(folder)


def _read_hugging_face(folder: Path) -> Epochs:
    """`group_texts` of its guide, in batches of 1,000 documents, whose rests are dropped."""
    import datasets
    import numpy as np

    datasets.disable_progress_bars()

    def group_texts(examples: dict[str, Any]) -> dict[str, Any]:
        joined = list(itertools.chain(*examples["input_ids"]))
        end = len(joined) // LENGTH * LENGTH
        return {"input_ids": [joined[at : at + LENGTH] for at in range(0, end, LENGTH)]}

    stored = datasets.load_from_disk(str(folder))
    rows = stored.map(group_texts, batched=True, load_from_cache_file=False).with_format("numpy")
    number = 0

    def begin() -> Iterator[tuple[int, int]]:
        nonlocal number
        number += 1
        for batch in rows.shuffle(number).iter(BATCH):
            yield int(np.count_nonzero(batch["input_ids"])), len(batch["input_ids"])

    return begin


def _write_litdata(texts: list[Any], folder: Path) -> None:
    import litdata
    import torch

    litdata.optimize(
        fn=torch.from_numpy,
        inputs=texts,
        output_dir=str(folder),
        chunk_size=LENGTH * 512,
        item_loader=litdata.TokensLoader(),
        num_workers=1,
        verbose=False,
    )


def _read_litdata(folder: Path) -> Epochs:
    import litdata

    rows = litdata.StreamingDataset(
        str(folder), item_loader=litdata.TokensLoader(block_size=LENGTH), shuffle=True
    )
    loader = litdata.StreamingDataLoader(
        rows, batch_size=BATCH, num_workers=1, persistent_workers=True
    )

    def begin() -> Iterator[tuple[int, int]]:
        for batch in loader:
            yield int((batch != 0).sum()), len(batch)

    return begin


def _whole(folder: Path) -> Epochs:
    return _read_records(folder, split=False)


def _end_to_end(folder: Path) -> Epochs:
    return _read_records(folder, split=True)


WAYS: dict[str, tuple[Callable[[list[Any], Path], None], Callable[[Path], Epochs]]] = {
    "recordsmith_shards": (_write_records, _whole),
    "recordsmith_shards, end to end": (_write_records, _end_to_end),
    "grain_array_record": (
        _write_array_record,
        lambda folder: _read_grain(folder, is_end_to_end=False),
    ),
    "grain_array_record, end to end": (
        _write_array_record,
        lambda folder: _read_grain(folder, is_end_to_end=True),
    ),
    "hf_arrow, end to end": (_write_hugging_face, _read_hugging_face),
    "litdata_chunks, end to end": (_write_litdata, _read_litdata),
}
"""By the module of the rival, and how documents become rows if that is not best fit."""

CANNOT = {
    "energon_tars": (
        "the program chooses the samples of a row: "
        "https://nvidia.github.io/Megatron-Energon/advanced/packing.html"
    ),
    "mds": "no such function: https://docs.mosaicml.com/projects/streaming/en/stable/",
    "webdataset_tars": "no such function: https://webdataset.github.io/webdataset/",
    "lance_table": "no such function: https://lance.org/integrations/pytorch/",
    "tf_data": "no such function: https://www.tensorflow.org/api_docs/python/tf/data/Dataset",
    "spdl_files": "no such function: https://facebookresearch.github.io/spdl/latest/",
    "torch_files": "no such function: https://docs.pytorch.org/docs/stable/data.html",
}
