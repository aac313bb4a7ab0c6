"""Loaders in the training functions of Ray Train."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

ray = pytest.importorskip("ray")
pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
train = pytest.importorskip("ray.train")
trainers = pytest.importorskip("ray.train.v2.api.data_parallel_trainer")

from recordsmith.ray import this_rank  # noqa: E402 - needs ray

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),  # of Ray itself
]


def test_outside_of_training() -> None:
    assert this_rank() == {"rank": 0, "world_size": 1}


@pytest.mark.slow
def test_each_example_is_read_by_one_worker(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "rows.tfrecord") as writer:
        writer.write_columns({"id": range(1001)})
    path, out = str(tmp_path / "rows.tfrecord"), str(tmp_path)

    def run() -> None:
        options = {"batch_size": 8, "shuffle": True, "epochs": 2, "threads": 0}
        loader = rs.Loader(rs.open(path), ["id"], **options, **this_rank())
        batches = [batch["id"].tolist() for batch in loader]
        found: dict[str, Any] = {**this_rank(), "batches": batches}
        Path(out, f"rank-{found['rank']}.json").write_text(json.dumps(found))

    trainers.DataParallelTrainer(
        run,
        scaling_config=train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}),
        run_config=train.RunConfig(storage_path=str(tmp_path / "runs")),
    ).fit()
    found = [json.loads(Path(out, f"rank-{rank}.json").read_text()) for rank in range(2)]
    assert [one["world_size"] for one in found] == [2, 2]
    assert len(found[0]["batches"]) == len(found[1]["batches"])
    seen = [number for one in found for batch in one["batches"] for number in batch]
    assert sorted(seen) == sorted([*range(1001)] * 2)
