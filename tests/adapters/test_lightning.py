"""Lightning: training resumes from its checkpoints with the next batch."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises

import recordsmith as rs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
QUIET = {
    "logger": False, "enable_progress_bar": False, "enable_model_summary": False,
    "accelerator": "cpu", "max_epochs": 3,
}  # fmt: skip


class Stopped(Exception):
    """Of a Trainer, in the middle of an epoch."""


@pytest.fixture
def train(tmp_path: Path) -> Any:
    """Train for three epochs of 10 batches; return the records of each batch that was used."""
    pytest.importorskip("lightning")
    import torch
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

    from recordsmith.lightning import DataModule

    with rs.ShardWriter(tmp_path / "rows.tfrecord") as writer:
        writer.write_columns({"x": np.arange(50)})
    dataset = rs.open(tmp_path / "rows.tfrecord")

    class Model(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.seen: list[list[int]] = []

        def training_step(self, batch: Any, _: int) -> Any:
            self.seen.append(batch["x"].tolist())
            return self.layer(batch["x"][:, None].float()).mean()

        def validation_step(self, batch: Any, _: int) -> None:
            assert batch["x"].tolist() == [0, 1]

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 1e-6)

    class Stop(Callback):
        def __init__(self, step: int) -> None:
            self.step = step

        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            if trainer.global_step > self.step:
                raise Stopped

    def run(
        *,
        save_at: int | None = None,
        resume_at: int | None = None,
        batch_size: int = 5,
        **data: Any,
    ) -> list[list[int]]:
        model, folder = Model(), tmp_path / "checkpoints"
        module = DataModule(
            lambda: rs.Loader(dataset, batch_size=batch_size, shuffle=True, threads=0),
            lambda: rs.Loader(dataset[:2], batch_size=2, threads=0),
            **data,
        )
        if save_at is None:
            options: dict[str, Any] = {"enable_checkpointing": False}
        else:
            keep = ModelCheckpoint(
                folder, every_n_train_steps=save_at, save_top_k=-1, filename="{step}"
            )
            options = {"callbacks": [keep, Stop(save_at)]}
        path = None if resume_at is None else folder / f"step={resume_at}.ckpt"
        trainer = Trainer(**QUIET, **options, default_root_dir=tmp_path)
        with suppress(Stopped):
            trainer.fit(model, datamodule=module, ckpt_path=path)
        return model.seen

    return run


@pytest.mark.parametrize("num_workers", [0, 2])
def test_resumed_with_the_next_batch(train: Any, num_workers: int) -> None:
    whole = train(num_workers=num_workers)
    assert len(whole) == 30
    for epoch in range(3):
        assert sorted(chain(*whole[10 * epoch : 10 * epoch + 10])) == list(range(50))
    for step in (7, 10, 23):
        train(save_at=step, num_workers=num_workers)
        assert train(resume_at=step, num_workers=num_workers) == whole[step:]


def test_resumed_with_another_batch_size(train: Any) -> None:
    whole = train()
    train(save_at=4)
    rest = train(resume_at=4, batch_size=3)
    assert [*chain(*rest)] == [*chain(*whole[4:])]


def test_what_makes_a_loader_is_checked() -> None:
    pytest.importorskip("lightning")
    from recordsmith.lightning import DataModule

    with raises(rs.OptionError, option="train"):
        DataModule(lambda: "loader").train_dataloader()  # type: ignore[arg-type, return-value]
