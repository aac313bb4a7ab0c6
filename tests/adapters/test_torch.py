"""recordsmith.torch in one process: tensors, streams, examples at positions, ranks."""

from __future__ import annotations

import warnings
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest
from tests.raising import raises

import recordsmith as rs
from recordsmith.format.example import BytesArray, RaggedArray

torch = pytest.importorskip("torch")
rt = pytest.importorskip("recordsmith.torch")

from torch.utils.data import (  # noqa: E402
    DataLoader,
    DistributedSampler,
    RandomSampler,
    WeightedRandomSampler,
    random_split,
)

FEATURES: dict[str, Any] = {
    "image": rs.Image(size=(16, 24), fit="random-crop", flip="horizontal"),
    "label": "image/class/label",
    "at": rs.Position(),
    "has_name": rs.Present("image/filename"),
    "name": rs.Text("image/filename"),
    "format": rs.Bytes("image/format"),
    "size": rs.Ragged("image/height"),
}


def loader(dataset: rs.Dataset, **options: Any) -> rs.Loader:
    """Batches of 5 positions in a random order."""
    options = {"batch_size": 5, "shuffle": True, "seed": 3, **options}
    return rs.Loader(dataset, {"at": rs.Position()}, **options)


def seen(stream: Any) -> list[list[int]]:
    return [batch["at"].tolist() for batch in stream]


def equal(entry: Any, array: Any) -> bool:
    """Whether a converted entry says the same as what it was made of."""
    if isinstance(array, RaggedArray):
        if isinstance(entry, rt.RaggedParts):
            splits = entry.row_splits.tolist()
            entry = [entry.values[a:b].tolist() for a, b in pairwise(splits)]
        return bool(entry == array.tolist())
    if isinstance(entry, torch.Tensor):
        same_dtype = str(entry.dtype) == f"torch.{array.dtype}"
        return same_dtype and np.array_equal(entry.numpy(), array)
    return bool(entry == array.tolist())


# -- tensors ---------------------------------------------------------------------------------------

DTYPES = "bool u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 c8"


def test_bfloat16() -> None:
    """A type that NumPy lacks."""
    pytest.importorskip("ml_dtypes")
    array = np.array([[0.1, -2.5], [1e30, np.inf]])
    made = rt.convert({"array": array.astype("bfloat16")})["array"]
    assert torch.equal(made, torch.from_numpy(array).to(torch.bfloat16))


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_tensors_have_the_memory_of_the_arrays(dtype: str) -> None:
    array = np.arange(24).astype(dtype).reshape(2, 3, 4)
    turned = array.transpose(0, 2, 1)  # not contiguous
    some = array[:, ::2]
    made = rt.convert({"array": array, "turned": turned, "some": some})
    for name, source in (("array", array), ("turned", turned), ("some", some)):
        assert made[name].data_ptr() == source.ctypes.data
        assert equal(made[name], source)
    made["turned"][0, 1, 0] = 1
    assert array[0, 0, 1] == 1


def test_arrays_that_torch_cannot_take_are_copied() -> None:
    read_only = np.arange(6, dtype=np.uint16)
    read_only.flags.writeable = False
    packed = np.zeros(3, np.dtype([("flag", "u1"), ("value", "f4")]))
    packed["value"] = 1, 2, 3
    batch = {
        "read-only": read_only,
        "backward": np.arange(6)[::-1],
        "foreign": np.arange(6).astype(">i4"),
        "in records": packed["value"],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = rt.convert(batch)
    for name, array in batch.items():
        assert made[name].tolist() == array.tolist()
    made["read-only"][0] = 9
    assert read_only[0] == 0


def test_bytes_and_text_are_lists() -> None:
    names = BytesArray.from_values([b"a", b"b\0", b"", b"d", b"e", b"f"])
    made = rt.convert(
        {
            "bytes": names,
            "in rows": names.reshape(2, 3),
            "ragged": RaggedArray(names, np.array([0, 0, 4, 6])),
            "numbers": RaggedArray(np.arange(3, dtype=np.float32), np.array([0, 3, 3])),
            "text": np.array(["ä", "b"], object),
            "texts": np.array([["a"], ["b", "c"]], object),
            "fixed": np.array([["ab", "c"]]),
            "other": "as it is",
        }
    )
    assert made["bytes"] == [b"a", b"b\0", b"", b"d", b"e", b"f"]
    assert made["in rows"] == [[b"a", b"b\0", b""], [b"d", b"e", b"f"]]
    assert made["ragged"] == [[], [b"a", b"b\0", b"", b"d"], [b"e", b"f"]]
    assert made["numbers"].values.tolist() == [0, 1, 2]
    assert made["numbers"].row_splits.tolist() == [0, 3, 3]
    assert made["text"] == ["ä", "b"]
    assert made["texts"] == [["a"], ["b", "c"]]
    assert made["fixed"] == [["ab", "c"]]
    assert made["other"] == "as it is"


def test_ragged_becomes_a_nested_tensor_without_a_copy() -> None:
    rows = RaggedArray(np.arange(5, dtype=np.float32), np.array([0, 2, 2, 5]))
    ragged = rt.convert({"rows": rows})["rows"]
    nested = torch.nested.nested_tensor_from_jagged(*ragged)
    assert [row.tolist() for row in nested.unbind()] == rows.tolist()
    assert nested.values().data_ptr() == rows.values.ctypes.data


# -- a stream of batches ---------------------------------------------------------------------------


def test_batches_are_those_of_the_loader(train: rs.Dataset) -> None:
    bare = rs.Loader(train, FEATURES, batch_size=5, shuffle=True)
    alone = rt.batches(rs.Loader(train, FEATURES, batch_size=5, shuffle=True))
    under = rt.batches(rs.Loader(train, FEATURES, batch_size=5, shuffle=True))
    stream = DataLoader(under, batch_size=None)
    assert isinstance(alone, torch.utils.data.IterableDataset)
    assert len(bare) == len(alone) == len(stream) == 9
    for _ in range(2):  # each epoch has an order of its own
        for batch, other, third in zip(bare, alone, stream, strict=True):
            for name in batch:
                assert equal(other[name], batch[name])
                assert equal(third[name], batch[name])


@pytest.mark.parametrize("last_batch", ["keep", "drop", "pad"])
@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_the_length_is_the_number_of_batches_of_each_rank(
    train: rs.Dataset, world_size: int, last_batch: Any
) -> None:
    steps = len(train) / (5 * world_size)
    expected = int(steps) if last_batch == "drop" else -int(-steps // 1)
    for rank in range(world_size):
        own = loader(train, rank=rank, world_size=world_size, last_batch=last_batch)
        stream = DataLoader(rt.batches(own, any_rank=True), batch_size=None)
        own.load_state_dict(own.state_after(1))
        for count in (expected - 1, expected):  # the rest of an epoch, and a whole one
            assert len(stream) == count
            assert len(list(stream)) == count


def test_batches_are_copied_to_a_device_ahead_of_the_loop(train: rs.Dataset) -> None:
    """On the CPU, and on torch's device without memory; streams of CUDA are not tested."""
    stream = rt.batches(loader(train), device="cpu")
    expected = seen(loader(train, epochs=2))
    state, count = stream.state_dict(), 0
    for _ in range(2):
        for batch in stream:
            resumed = rt.batches(loader(train), device="cpu")
            resumed.load_state_dict(state)
            assert resumed.state_dict() == state
            assert [batch["at"].tolist(), next(iter(resumed))["at"].tolist()] == [
                expected[count]
            ] * 2
            count += 1
            state = stream.state_dict()
            assert state == loader(train).state_after(count)
    assert count == len(expected)
    for batch in rt.batches(rs.Loader(train, FEATURES, batch_size=5), device="meta"):
        tensors = [batch[key] for key in ("image", "label", "at", "has_name")] + [*batch["size"]]
        assert {tensor.device.type for tensor in tensors} == {"meta"}
        assert isinstance(batch["name"][0], str)


@pytest.mark.parametrize("device", ["cuda:99", "cpus", 1.5])
def test_devices_that_torch_cannot_use(train: rs.Dataset, device: Any) -> None:
    with raises(rs.OptionError, option="device", value=str(device)):
        rt.batches(loader(train), device=device)


def test_workers_do_not_copy_to_a_device(train: rs.Dataset) -> None:
    stream = rt.batches(loader(train), device="cpu")
    with pytest.raises(
        rs.OptionError, match="cannot copy to a device"
    ):  # fields stay in the worker
        next(iter(DataLoader(stream, batch_size=None, num_workers=1)))


def test_memory_is_used_again_only_without_tensors(train: rs.Dataset) -> None:
    options: dict[str, Any] = {"batch_size": 5, "threads": 0, "prefetch": 0, "epochs": 3}
    source = rs.Loader(train, {"image": rs.Image(size=8)}, **options)
    whole = list(rs.Loader(train, {"image": rs.Image(size=8)}, **options))
    addresses, kept = set(), []
    for batch, expected in zip(rt.batches(source), whole, strict=True):
        addresses.add(batch["image"].data_ptr())
        assert equal(batch["image"], expected["image"])
    assert len(addresses) < len(whole)
    kept = [batch["image"].flatten()[3:] for batch in rt.batches(source)]
    for tensor, expected in zip(kept, whole, strict=True):
        assert equal(tensor, expected["image"].reshape(-1)[3:])


def test_what_a_stream_is_made_of(train: rs.Dataset) -> None:
    with raises(rs.OptionError, option="loader"):
        rt.batches(train)
    with raises(rs.OptionError, option="worker_count"):
        rt.batches(loader(train, worker=1, worker_count=2))
    with pytest.raises(TypeError, match="endless"):
        len(rt.batches(loader(train, epochs=None)))
    assert repr(rt.batches(loader(train))) == f"batches({loader(train)!r})"


def test_a_data_loader_that_would_batch_batches_is_refused(train: rs.Dataset) -> None:
    stream = rt.batches(loader(train))
    for options in ({}, {"batch_size": 4}):
        with raises(rs.OptionError, option="batch_size"):
            next(iter(DataLoader(stream, **options)))
    own = DataLoader(stream, batch_size=2, collate_fn=lambda items: items)
    assert len(next(iter(own))) == 2


# -- examples at positions -------------------------------------------------------------------------


def test_examples_are_the_rows_of_batches(train: rs.Dataset) -> None:
    examples = rt.examples(train, FEATURES, seed=4)
    (batch,) = rs.Loader(train, FEATURES, batch_size=42, seed=4)
    assert len(examples) == 42
    for number in (0, 7, -1):
        example = examples[number]
        assert list(example) == list(FEATURES)
        assert equal(example["image"], batch["image"][number])
        assert int(example["label"]) == batch["label"][number]
        assert example["name"] == batch["name"][number]
        assert example["format"] == batch["format"][number]
        assert example["size"].tolist() == batch["size"].tolist()[number]
    assert equal(examples[torch.tensor(7)]["image"], batch["image"][7])
    with pytest.raises(IndexError, match=r"position 42 .* 42 records"):
        examples[42]
    for wrong in (1.5, "3"):
        with pytest.raises(TypeError):
            examples[wrong]  # type: ignore[index]


def test_samplers_draw_examples(train: rs.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []
    read = rs.Examples.batch
    monkeypatch.setattr(
        rs.Examples,
        "batch",
        lambda self, positions: asked.append(positions) or read(self, positions),
    )
    features = {"image": rs.Image(size=8), "at": rs.Position(), "name": rs.Text("image/filename")}
    examples = rt.examples(train, features)

    ranks = []
    for rank in range(2):
        sampler = DistributedSampler(examples, num_replicas=2, rank=rank, seed=1)
        batches = list(DataLoader(examples, batch_size=4, sampler=sampler))
        assert batches[0]["image"].shape == (4, 8, 8, 3)
        assert batches[0]["image"].dtype == torch.uint8
        assert len(batches[0]["name"]) == 4
        ranks.append([at for batch in batches for at in batch["at"].tolist()])
    assert sorted(ranks[0] + ranks[1]) == list(range(42))
    assert [len(positions) for positions in asked] == [4, 4, 4, 4, 4, 1] * 2  # each read at once

    weights = [0.0] * 40 + [1.0, 2.0]
    sampler = WeightedRandomSampler(weights, 20)
    drawn = [
        at for batch in DataLoader(examples, 5, sampler=sampler) for at in batch["at"].tolist()
    ]
    assert set(drawn) == {40, 41}

    parts = random_split(examples, [30, 12])
    of_parts = [
        [at for batch in DataLoader(part, 7) for at in batch["at"].tolist()] for part in parts
    ]
    assert [len(part) for part in of_parts] == [30, 12]
    assert sorted(chain(*of_parts)) == list(range(42))
    assert len(list(DataLoader(examples, sampler=RandomSampler(examples), batch_size=42))) == 1


# -- ranks -----------------------------------------------------------------------------------------


def test_the_launcher_tells_the_rank(train: rs.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert rt.this_rank() == {"rank": 0, "world_size": 1}
    monkeypatch.setenv("RANK", "1")
    assert rt.this_rank() == {"rank": 0, "world_size": 1}
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert rt.this_rank() == {"rank": 1, "world_size": 3}
    stream = rt.batches(loader(train, **rt.this_rank()))
    assert seen(stream) == seen(loader(train, rank=1, world_size=3))
    for options in ({}, {"rank": 2, "world_size": 3}, {"rank": 1, "world_size": 2}):
        with raises(rs.OptionError, option="rank"):
            rt.batches(loader(train, **options))
    assert len(seen(rt.batches(loader(train), any_rank=True))) == 9
    monkeypatch.setenv("RANK", "2")
    with raises(rs.OptionError, option="rank"):
        iter(stream)


@pytest.mark.parametrize(("rank", "world_size"), [("3", "3"), ("-1", "2"), ("a", "2"), ("0", "")])
def test_an_environment_that_makes_no_sense(
    monkeypatch: pytest.MonkeyPatch, rank: str, world_size: str
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", world_size)
    with raises(rs.OptionError, option="rank"):
        rt.this_rank()


def test_accelerate_must_not_divide_the_batches_of_a_rank(train: rs.Dataset) -> None:
    shards = pytest.importorskip("accelerate.data_loader").IterableDatasetShard
    alone, of_rank = (
        rt.batches(loader(train, world_size=world_size), any_rank=True) for world_size in (1, 2)
    )
    assert len(list(shards(alone, num_processes=2))) == 5
    with raises(rs.OptionError, option="loader"):
        next(iter(shards(of_rank, num_processes=2)))


@pytest.mark.parametrize("options", [{}, {"batch_size": None}, {"shuffle": True}])
def test_a_data_loader_over_a_loader_says_what_to_write(
    train: rs.Dataset, options: dict[str, Any]
) -> None:
    with pytest.raises(rs.OptionError) as caught:
        next(iter(DataLoader(loader(train), **options)))
    assert "DataLoader(recordsmith.torch.batches(loader), batch_size=None)" in caught.value.remedy


def test_a_data_loader_over_a_dataset_has_its_records(train: rs.Dataset) -> None:
    key = "image/class/label"
    batches = DataLoader(train, batch_size=21)  # type: ignore[arg-type]
    assert [
        label for batch in batches for label in batch[key][:, 0].tolist()
    ] == train.read_columns([key])[key].tolist()
