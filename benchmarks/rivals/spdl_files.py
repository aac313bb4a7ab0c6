"""SPDL: the image files, through a pipeline of threads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from decode import batch_of, decode
from rival import Batch, Loader, Options, Rival
from torch_files import paths_of, reader


class Images(Loader):
    """`PipelineBuilder`: files, decoding, batches; each stage has the same threads."""

    def __init__(self, options: Options) -> None:
        self._paths = paths_of(options.place)[options.rank :: options.world_size]
        self._options = options
        self._epoch = 0

    def epoch(self) -> Iterator[Batch]:
        import numpy as np
        from spdl.pipeline import PipelineBuilder

        options = self._options
        paths = list(self._paths)
        rng = np.random.default_rng([options.seed, self._epoch])
        if options.shuffle:
            paths = [paths[number] for number in rng.permutation(len(paths)).tolist()]
        if options.keep is not None:
            paths = [path for path in paths if options.keep(int(path.stem))]
        self._epoch += 1

        def load(path: Path) -> tuple[int, Any]:
            key = int(path.stem)
            return key, decode(path.read_bytes(), options.what, _rng(options, self._epoch, key))

        pipeline = (
            PipelineBuilder()
            .add_source(paths)
            .pipe(load, concurrency=options.thread_count)
            .aggregate(options.batch_size)
            .pipe(lambda samples: batch_of(samples, options.what))
            .add_sink(options.prefetch * options.thread_count)
            .build(num_threads=options.thread_count)
        )
        with pipeline.auto_stop():
            yield from pipeline


def _rng(options: Options, epoch: int, key: int) -> Any:
    import numpy as np

    return np.random.default_rng([options.seed, epoch, key]) if options.what == "crops" else None


RIVAL = Rival(
    title="SPDL, files",
    distributions=("spdl",),
    pages=(
        "https://facebookresearch.github.io/spdl/latest/getting_started/pytorch.html",
        "https://facebookresearch.github.io/spdl/latest/generated/spdl.pipeline.Pipeline.html",
    ),
    chosen="threads; a list of files shuffled by NumPy, as it has no order of its own",
    pack=None,
    loader=Images,
    reader=reader,
)
