"""Megatron Energon: prepared tar files, read by its savable loader."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import webdataset_tars
from decode import decode_in_worker, stack
from rival import Batch, Loader, Options, Photo, Rival, UnsupportedError

SHUFFLE_BUFFER, SEQUENCE = 100, 100
_DATASET = """\
__module__: megatron.energon
__class__: ImageClassificationWebdataset
field_map:
  image: jpg
  label: cls
"""


def pack(photos: Sequence[Photo], out: Path) -> None:
    """Tar files by WebDataset, and what `energon prepare` adds."""
    from megatron.energon.flavors import BaseWebdatasetFactory

    webdataset_tars.pack(photos, out)
    BaseWebdatasetFactory.prepare_dataset(
        out,
        sorted(path.name for path in out.glob("*.tar")),
        split_parts_ratio=[("train", 1), ("val", 0), ("test", 0)],
        split_parts_patterns=None,
        tar_index_only=False,
        shuffle_seed=None,
        workers=2,
    )
    (out / ".nv-meta" / "dataset.yaml").write_text(_DATASET)


class Images(Loader):
    """A savable loader of `get_train_dataset`, which ends after each epoch."""

    def __init__(self, options: Options, **more: Any) -> None:
        """`more`: for `get_train_dataset`, instead of an end after each epoch."""
        from megatron.energon import WorkerConfig, get_savable_loader, get_train_dataset

        if "://" in options.place:
            raise UnsupportedError("reads buckets with a configured Multi-Storage Client")
        self._rank, self._world_size = options.rank, options.world_size
        self._loader = get_savable_loader(
            get_train_dataset(
                options.place,
                worker_config=WorkerConfig(
                    rank=options.rank,
                    world_size=options.world_size,
                    num_workers=options.threads,
                    seed_offset=options.seed,
                ),
                batch_size=options.batch_size,
                shuffle_buffer_size=SHUFFLE_BUFFER if options.shuffle else None,
                max_samples_per_sequence=SEQUENCE if options.shuffle else None,
                task_encoder=task_encoder(options),
                **(more or {"repeat": False}),
            ),
            prefetch_factor=options.prefetch,
        )

    def epoch(self) -> Iterator[Batch]:
        for batch in self._loader:
            yield Batch(batch["keys"], batch["images"])

    def state(self) -> Any:
        return self._loader.save_state_rank()

    def load(self, state: Any) -> None:
        self._loader.restore_state_rank(state)

    def load_other_ranks(self, states: Sequence[Any]) -> None:
        """By `energon checkpoint redist`, which shares the workers of all ranks out again."""
        import torch

        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, f"rank-{rank}.pt") for rank in range(len(states))]
            for file, state in zip(files, states, strict=True):
                torch.save(state, file)
            out = Path(folder, "out")
            out.mkdir()
            size = str(self._world_size)
            done = command(
                "checkpoint", "redist", "--new-world-size", size, *map(str, files), str(out)
            )
            if done.returncode:
                raise UnsupportedError(done.stderr.strip().splitlines()[-1])
            self.load(torch.load(out / f"rank-{self._rank}.pt", weights_only=False))


def task_encoder(options: Options) -> Any:
    """Filters, decodes and batches."""
    import numpy as np
    from megatron.energon import DefaultTaskEncoder, SkipSample, stateless

    class Encoder(DefaultTaskEncoder):  # type: ignore[misc]
        decoder = None

        @stateless(restore_seeds=True)  # type: ignore[untyped-decorator]
        def encode_sample(self, sample: Any) -> Any:
            key = key_of(sample)
            if options.keep is not None and not options.keep(key):
                raise SkipSample
            sample.image = decode_in_worker(sample.image, options.what, key)
            return sample

        def batch(self, samples: list[Any]) -> dict[str, Any]:
            return {
                "__key__": [sample.__key__ for sample in samples],
                "__restore_key__": None,
                "keys": np.array([key_of(sample) for sample in samples], np.int64),
                "images": stack([sample.image for sample in samples], options.what),
            }

    return Encoder()


def key_of(sample: Any) -> int:
    return int(sample.__key__.rpartition("/")[2])


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `energon`."""
    program = Path(sys.executable).with_name("energon")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def verify(place: str) -> list[str]:
    """What `energon lint` prints, except that it begins and how far it is."""
    done = command("lint", "--split-parts", "train", place)
    found = done.stderr if done.returncode else done.stdout.partition("\n")[2].strip()
    return [found] if found else []


_DOCS = "https://nvidia.github.io/Megatron-Energon"

RIVAL = Rival(
    title="Megatron Energon",
    distributions=("megatron-energon", "torch"),
    pages=(
        f"{_DOCS}/basic/quickstart.html",
        f"{_DOCS}/basic/save_restore.html",
        f"{_DOCS}/advanced/data_prep_api.html",
        f"{_DOCS}/basic/data_decoding.html",
        f"{_DOCS}/advanced/repro_scaling.html",
    ),
    chosen="tar files of WebDataset, its decoder off; buffer and sequences of the 100 samples "
    "that its quickstart advises",
    pack=pack,
    loader=Images,
    verify=verify,
)
