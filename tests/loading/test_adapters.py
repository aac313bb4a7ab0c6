"""What adapters refuse, without any framework."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.loading.adapters import Rank, check_loader, check_rank


@pytest.fixture
def loader(tmp_path: Path, images: Any) -> Any:
    """Makes loaders of two images."""
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(2):
            writer.write_example({"image/encoded": images.jpeg(number)})
    dataset = rs.open(tmp_path / "a.tfrecord")
    features = {"image": rs.Image(size=8)}
    return lambda **options: rs.Loader(dataset, features, batch_size=1, **options)


def test_what_is_no_loader(loader: Any) -> None:
    with pytest.raises(rs.OptionError) as caught:
        check_loader([1])
    assert (caught.value.option, caught.value.value) == ("loader", "[1]")
    check_loader(loader())


@pytest.mark.parametrize(("rank", "world_size"), [(0, 1), (0, 2), (1, 3)])
def test_the_share_of_another_rank(loader: Any, rank: int, world_size: int) -> None:
    one = loader(rank=1, world_size=2)
    check_rank(one, Rank(rank=1, world_size=2))
    with pytest.raises(rs.OptionError) as caught:
        check_rank(one, Rank(rank=rank, world_size=world_size), "so")
    assert (caught.value.option, caught.value.value) == ("rank", "1")
