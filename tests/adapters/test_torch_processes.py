"""recordsmith.torch with worker processes and ranks: real ones, in programs of their own.

A program shows what it saw; what it should have seen is told here, by a loader alone.
"""

from __future__ import annotations

import json
import signal
import textwrap
import time
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

pytest.importorskip("torch")

pytestmark = pytest.mark.posix

HEAD = """
import json
import multiprocessing
import os
import signal
import sys
import time
import warnings
from itertools import islice

import torch
from torch.utils.data import DataLoader

import recordsmith as rs
from recordsmith.torch import batches, examples, this_rank

warnings.filterwarnings("ignore", "This DataLoader will create")


def dataset():
    return rs.open(sys.argv[1], split="train")


def loader(records=42, **options):
    options = {"batch_size": 5, "shuffle": True, "seed": 3, "threads": 1, **options}
    return rs.Loader(dataset()[:records], {"at": rs.Position()}, **options)


def under(own, worker_count=2, kind=DataLoader, begin="fork", persist=False, **options):
    if worker_count:
        options |= {"multiprocessing_context": begin, "persistent_workers": persist}
    return kind(own, batch_size=None, num_workers=worker_count, **options)


def seen(batches):
    return [batch["at"].tolist() for batch in batches]


def show(**found):
    print(json.dumps(found), flush=True)


def failure(function, *arguments):
    told = "nothing"
    try:
        try:
            function(*arguments)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        time.sleep(0.3)  # the signal of a worker that died may come now: torch raises once more
    except RuntimeError:
        pass
    return told


def late(worker):
    if worker == 1:  # the other one has made its share by then
        time.sleep(1.5)


def broken(example, generator):
    raise KeyError("no such thing")


def half(batch):
    batch["half"] = batch["image"].to(torch.bfloat16)
    return batch


def plain(batch):
    return {"mean": batch["image"].float().mean(), "at": batch["at"]}


"""


@pytest.fixture
def run(run_program: Any, packed: Path) -> Any:
    """Runs the body of a `main` as a program and answers what it has shown, all together."""

    def run(body: str, *arguments: object) -> dict[str, Any]:
        main = textwrap.indent(textwrap.dedent(body), "    ")
        program = f'{HEAD}def main():{main}\n\nif __name__ == "__main__":\n    main()\n'
        found: dict[str, Any] = {}
        for line in run_program(program, packed, *arguments, timeout=100).splitlines():
            found |= json.loads(line)
        return found

    return run


def alone(
    dataset: rs.Dataset, iteration_count: int = 1, state: Any = None, **options: Any
) -> list[list[list[int]]]:
    """What the loader alone gives in its first iterations."""
    options = {"batch_size": 5, "shuffle": True, "seed": 3, "threads": 0, **options}
    loader = rs.Loader(dataset, {"at": rs.Position()}, **options)
    if state is not None:
        loader.load_state_dict(state)
    return [[batch["at"].tolist() for batch in loader] for _ in range(iteration_count)]


def runs(process: int) -> bool:
    """Whether a process runs, and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# -- what workers give -----------------------------------------------------------------------------


@pytest.mark.slow
def test_workers_give_what_the_loader_alone_gives(run: Any, train: rs.Dataset) -> None:
    """Each epoch has an order of its own, also where torch draws the same seed every time."""
    found = run("""
        for count in (0, 1, 2, 3):
            stream = under(batches(loader()), count)
            show(**{f"{count} workers": [seen(stream) for _ in range(3)]})
        stream = under(batches(loader()), persist=True)
        show(persistent=[seen(stream) for _ in range(3)])
        for persist in (False, True):
            stream, found = under(batches(loader()), persist=persist), []
            for _ in range(3):
                torch.manual_seed(0)
                found.append(seen(stream))
            show(**{f"seeded {persist}": found})
        stream = under(batches(loader(epochs=2)), 3)
        show(two=[seen(stream), seen(stream)], length=len(stream))
        stream = under(batches(loader(epochs=None)))
        show(endless=seen(islice(stream, 27)))
        stream = under(batches(loader(rank=1, world_size=2, last_batch="drop"), any_rank=True), 3)
        show(rank=[seen(stream), seen(stream)])
        stream = under(batches(loader(records=4, batch_size=3)), 4)
        show(few=[seen(stream), seen(stream)])
        stream = under(batches(loader(records=0)))
        show(none=[seen(stream), seen(stream)])
    """)
    wanted = alone(train, 3)
    for name in (*(f"{count} workers" for count in range(4)), "persistent"):
        assert found[name] == wanted, name
    assert found["seeded False"] == found["seeded True"] == wanted
    assert found["two"] == alone(train, 2, epochs=2)
    assert found["length"] == 18
    assert [found["endless"]] == alone(train, epochs=3)
    assert found["rank"] == alone(train, 2, rank=1, world_size=2, last_batch="drop")
    assert found["few"] == alone(train[:4], 2, batch_size=3)
    assert found["none"] == [[], []]


@pytest.mark.slow
def test_iterations_that_are_broken_off_or_go_on_side_by_side(run: Any, train: rs.Dataset) -> None:
    found = run("""
        for persist in (False, True):
            stream = under(batches(loader()), persist=persist)
            first = seen(islice(stream, 2))
            show(**{f"broken off {persist}": [first, seen(stream)]})
        own = batches(loader())
        both = [iter(under(own)), iter(under(own))]
        show(**{"side by side": [seen(stream) for stream in both]})
        stream, kept = under(batches(loader())), []
        for _ in range(2):  # the first one lives on when the second one begins
            torch.manual_seed(0)
            kept.append(iter(stream))
            kept.append([next(kept[-1])["at"].tolist() for _ in range(9)])
        show(nested=kept[1::2])
        kept = None
        own = batches(loader())
        show(unequal=[seen(under(own, count)) for count in (3, 1, 2)])

        def die(worker):  # before it has asked for a batch
            if worker == 1 and dying:
                os._exit(1)
        own = batches(loader())
        for dying in (True, False):
            torch.manual_seed(0)
            stream = under(own, worker_init_fn=die)
            show(**{f"dying {dying}": failure(seen, stream) if dying else seen(stream)})
    """)
    first, second, third = alone(train, 3)
    assert found["broken off False"] == found["broken off True"] == [first[:2], second]
    assert sorted(found["side by side"]) == sorted([first, second])  # either may be the first
    assert found["nested"] == [first, second]
    assert found["unequal"] == [first, second, third]
    assert "exited unexpectedly" in found["dying True"]
    assert found["dying False"] == second  # the worker that did not die had begun the first one


def test_batches_and_examples_arrive_as_they_were_sent(run: Any, train: rs.Dataset) -> None:
    found = run("""
        from recordsmith.torch import RaggedParts

        def equal(a, b):
            if isinstance(a, (torch.Tensor, RaggedParts)):
                return type(a) is type(b) and all(map(torch.equal, *(
                    [each] if isinstance(each, torch.Tensor) else each for each in (a, b)
                )))
            return a == b

        features = {
            "image": rs.Image(size=(16, 24), dtype="float32", layout="CHW"),
            "rows": rs.Ragged("image/height"), "names": rs.Bytes("image/filename"),
            "text": rs.Text("image/filename"), "label": "image/class/label", "at": rs.Position(),
        }
        def images(**options):
            return batches(rs.Loader(dataset(), features, batch_size=20, **options))

        kept = list(under(images(epochs=3), 1))
        whole = list(images(epochs=3))
        show(equal=[
            list(a) == list(b) and all(equal(a[name], b[name]) for name in a)
            for a, b in zip(kept, whole, strict=True)
        ], types=sorted({type(batch).__name__ for batch in kept}))
        for tensor in (kept[0]["image"], kept[0]["rows"].values):
            tensor += 1  # may be changed

        (batch, *_) = under(images(), 1, collate_fn=half)
        show(half=str(batch["half"].dtype), same=torch.equal(batch["image"], whole[0]["image"]))
        (batch, *_) = under(images(), 1, collate_fn=plain)
        show(mean=float(batch["mean"]) == float(whole[0]["image"].mean()), names=list(batch))

        small = {"image": rs.Image(size=8), "at": rs.Position(), "label": "image/class/label"}
        (batch,) = batches(rs.Loader(dataset(), small, batch_size=42))
        parts = list(DataLoader(examples(dataset(), small), batch_size=16, num_workers=2))
        show(lengths=[len(part["at"]) for part in parts], examples=[
            torch.equal(torch.cat([part[name] for part in parts]), batch[name]) for name in batch
        ])
    """)
    assert found["equal"] == [True] * 9
    assert found["types"] == ["dict"]
    assert (found["half"], found["same"]) == ("torch.bfloat16", True)
    assert (found["mean"], found["names"]) == (True, ["mean", "at"])
    assert (found["lengths"], found["examples"]) == ([16, 16, 10], [True, True, True])


# -- stopping and going on -------------------------------------------------------------------------


@pytest.mark.slow
def test_workers_go_on_where_others_stopped(run: Any, train: rs.Dataset) -> None:
    """With another number of workers, or of epochs behind them; and further epochs after that."""
    steps = (0, 1, 8, 9, 13)
    found = run("""
        for step in json.loads(sys.argv[2]):
            own = loader()
            same = batches(own)
            stream, had = under(same), []
            while len(had) < step:
                had += seen(islice(stream, step - len(had)))
            state = json.loads(json.dumps(own.state_after(step)))
            again = []
            for count in (0, 2, 3):
                stream = under(same, count)
                same.load_state_dict(state)
                length = len(stream)
                again.append([length, len(stream), seen(stream), len(stream), seen(stream)])
            show(**{str(step): [state, had, again]})
    """, json.dumps(steps))  # fmt: skip
    run_of_all = list(chain(*alone(train, 4)))
    for step in steps:
        state, had, again = found[str(step)]
        assert had == run_of_all[:step]
        left = 9 - step % 9
        for length, same_length, rest, next_length, following in again:
            assert length == same_length == left
            assert rest == run_of_all[step : step + left]
            assert next_length == 9
            assert following == run_of_all[step + left : step + left + 9]
        assert alone(train, 2, state=state) == [again[0][2], again[0][4]]


@pytest.mark.slow
def test_a_loader_and_its_stream_know_that_workers_read(run: Any, train: rs.Dataset) -> None:
    """Also after the stream is gone, until the loader itself has loaded a state."""
    found = run("""
        own = loader()
        stream = under(batches(own), persist=True)
        show(first=seen(stream), state=failure(stream.dataset.state_dict),
             reading=failure(iter, stream.dataset))
        own.load_state_dict(own.state_after(9))
        show(late=failure(seen, stream))
        stream = None
        show(then=seen(under(batches(own), 3)), own_state=failure(own.state_dict),
             own_reading=failure(list, own))
        own.load_state_dict(own.state_after(3))
        show(rest=seen(own), last=seen(under(batches(own))), again=failure(own.state_dict))
        own.load_state_dict(own.state_after(0))  # since the last load
        show(alone=seen(own))
    """)
    first, second, third = alone(train, 3)
    assert (found["first"], found["then"]) == (first, second)
    assert (found["rest"], found["last"], found["alone"]) == (second[3:], third, second[3:])
    for name in ("state", "reading", "own_state", "own_reading", "again"):
        assert found[name].startswith("OptionError: worker processes ")
        assert "loader.state_after(n)" in found[name]
    assert found["late"].startswith("OptionError: ")
    assert "load_state_dict was called after" in found["late"]


@pytest.mark.slow
def test_a_stateful_data_loader_resumes_anywhere(run: Any, train: rs.Dataset) -> None:
    pytest.importorskip("torchdata.stateful_dataloader")
    found = run("""
        import pickle
        from torchdata.stateful_dataloader import StatefulDataLoader

        def stream(count, persist, **options):
            return under(batches(loader(**options)), count, StatefulDataLoader, persist=persist)

        for count, persist in ((0, False), (1, True), (3, False)):
            first, rest = stream(count, persist), []
            for epoch in range(2):
                for step, batch in enumerate(first, 1):
                    if (epoch, step) in ((0, 5), (1, 1), (1, 8)):
                        rest.append([epoch, step, pickle.dumps(first.state_dict())])
                if epoch == 0:
                    rest.append([epoch, step, pickle.dumps(first.state_dict())])
            for place in rest:
                again = stream(count, persist)
                again.load_state_dict(pickle.loads(place.pop()))
                place += [seen(again), seen(again)]
            show(**{f"{count} {persist}": rest})
        first = stream(1, False)
        next(iter(first))
        for count, options in ((1, {"batch_size": 4}), (2, {})):
            again = stream(count, False, **options)
            again.load_state_dict(first.state_dict())
            show(**{f"other {count}": failure(seen, again)})
    """)
    epochs = alone(train, 4)
    for name in ("0 False", "1 True", "3 False"):
        assert len(found[name]) == 4
        for epoch, step, rest, following in found[name]:
            if step == 9:  # an epoch that is ended is followed by the next one
                epoch, step = epoch + 1, 0  # noqa: PLW2901
            assert rest == epochs[epoch][step:], name
            assert following == epochs[epoch + 1], name
    for name, words in (
        ("other 1", "a worker with batch_size 5, but this one has 4"),
        ("other 2", "a worker with worker_count 1, but this one has 2"),
    ):
        assert found[name].startswith("OptionError: ")
        assert words in found[name]
        assert "state_after(n)" in found[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "arguments", "told"),
    [
        ("fork", "batches(loader(epochs=None)), batch_size=None", "nothing"),
        ("forkserver", "batches(loader(epochs=None)), batch_size=None", "nothing"),
        ("spawn", "batches(loader(epochs=None)), batch_size=None", "nothing"),
        ("forkserver", "examples(dataset(), {'at': rs.Position()})", "nothing"),
        ("forkserver", "batches(loader())", "OptionError"),
    ],
)
def test_workers_end_with_a_main_process_that_is_killed(
    run_program: Any, packed: Path, begin: str, arguments: str, told: str
) -> None:
    program = HEAD + textwrap.dedent(f"""
        if __name__ == "__main__":
            options = {{"num_workers": 2, "multiprocessing_context": "{begin}"}}
            iterator = iter(DataLoader({arguments}, **options))
            told = failure(next, iterator)
            show(told=told, workers=[worker.pid for worker in iterator._workers])
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    found = json.loads(run_program(program, packed, status=-signal.SIGKILL))
    assert found["told"].startswith(told)
    deadline = time.monotonic() + 60  # torch looks every 5 s
    while any(runs(worker) for worker in found["workers"]):
        assert time.monotonic() < deadline
        time.sleep(0.05)


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_goes_wrong_in_a_worker_is_told(run: Any, train: rs.Dataset, tmp_path: Path) -> None:
    shard = tmp_path / "damaged.tfrecord"
    with rs.ShardWriter(shard) as writer:
        for number in range(8):
            writer.write_example({"id": number})
    data = bytearray(shard.read_bytes())
    data[len(data) // 8 * 5 + 14] ^= 1  # in the payload of record 5
    shard.write_bytes(data)
    # each in a process of its own: what is left of a DataLoader that failed would be collected in
    # the workers of the next one, and keep them waiting
    found = run("""
        own = rs.Loader(dataset(), {"at": rs.Position()}, batch_size=5, map_examples=broken)
        show(function=failure(seen, under(batches(own))))
        os._exit(0)
    """, shard)  # fmt: skip
    found |= run("""
        own = rs.Loader(rs.open(sys.argv[2]), {"id": "id"}, batch_size=2)
        show(damage=failure(list, under(batches(own))))
        os._exit(0)
    """, shard)  # fmt: skip
    found |= run("""
        show(batched=failure(list, DataLoader(batches(loader()), num_workers=1)))
        os._exit(0)
    """, shard)  # fmt: skip
    found |= run("""
        stream = under(batches(loader(epochs=None)))
        iterator = iter(stream)
        next(iterator)
        def kill_and_read():  # torch raises as soon as the signal comes
            os.kill(iterator._workers[0].pid, signal.SIGKILL)
            list(iterator)
        show(killed=failure(kill_and_read))
        del iterator
        show(then=seen(islice(stream, 9)))
        os._exit(0)
    """, shard)  # fmt: skip
    assert found["function"].startswith("FunctionError: ")
    assert "record 0, byte 0: map_examples raised" in found["function"]
    assert "'no such thing'" in found["function"]
    assert found["damage"].startswith("RuntimeError: Caught CorruptDataError")
    assert f"{shard}, record 5, byte {len(data) // 8 * 5}: payload-crc" in found["damage"]
    assert found["batched"].startswith("OptionError: ")
    assert "Pass batch_size=None" in found["batched"]
    # torch reports it, or the process that it was receiving a batch from is gone
    assert found["killed"].startswith(("RuntimeError: ", "ConnectionResetError: ", "EOFError: "))
    assert found["then"] == alone(train, 2)[1]


def test_an_iteration_is_not_used_in_two_processes(run: Any, train: rs.Dataset) -> None:
    found = run("""
        own = batches(loader())
        for name, iterator in (("own", iter(own)), ("under", iter(under(own, 0)))):
            had = [next(iterator)["at"].tolist()]
            child = os.fork()
            if not child:
                show(**{f"{name} in child": [failure(next, iterator), seen(own)]})
                os._exit(0)
            os.waitpid(child, 0)
            show(**{name: had + seen(iterator)})
    """)
    first, second, third = alone(train, 3)
    assert (found["own"], found["under"]) == (first, second)
    for name, following in (("own", second), ("under", third)):
        words, epoch = found[f"{name} in child"]
        assert words.startswith("OptionError: ")
        assert "another process" in words
        assert epoch == following


@pytest.mark.slow
def test_the_page_says_what_happens(run_page: Any) -> None:
    run_page("pytorch.md")


# -- ranks -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ranks_share_every_record_and_others_go_on(run: Any, train: rs.Dataset) -> None:
    """Two ranks read an epoch and some of the next one, with workers and without; three read the
    rest of that, and the epoch after it.
    """
    found = run("""
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        same = batches(loader(), any_rank=True)  # made before the ranks are

        def read(rank, world_size, limits, state):
            store = f"file://{os.getcwd()}/store{world_size}"
            dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world_size)
            shown = {"refused": failure(batches, loader(rank=rank, world_size=world_size + 1))}
            shown["same"] = [seen(under(same)), seen(under(same))]
            for count in (0, 2):
                own = loader(batch_size=3, **this_rank())
                stream = under(batches(own), count)
                if state:
                    stream.dataset.load_state_dict(state)
                model = DistributedDataParallel(torch.nn.Linear(1, 1))  # ranks wait for each other
                read = [[], []]
                for steps, limit in zip(read, limits):
                    for batch in islice(stream, limit):
                        model(batch["at"].float()[:, None]).sum().backward()
                        everyone = [None] * world_size
                        dist.all_gather_object(everyone, batch["at"].tolist())
                        steps.append(everyone)
                shown[f"{count} workers"] = read
                shown["state"] = own.state_after(sum(map(len, read)))
            dist.destroy_process_group()
            results.put((rank, shown))

        state = None
        for world_size, limits in ((2, (99, 3)), (3, (99, 99))):
            results = multiprocessing.get_context("fork").Queue()
            ranks = [
                multiprocessing.get_context("fork").Process(
                    target=read, args=(rank, world_size, limits, state)
                )
                for rank in range(world_size)
            ]
            for rank in ranks:
                rank.start()
            shown = dict(results.get(timeout=60) for _ in ranks)
            for rank in ranks:
                rank.join()
            state = shown[0]["state"]
            show(**{str(world_size): [shown[rank] for rank in range(world_size)]})
    """)
    for world_size in (2, 3):
        ranks = found[str(world_size)]
        for rank, shown in enumerate(ranks):
            assert shown["0 workers"] == shown["2 workers"] == ranks[0]["0 workers"]
            assert shown["state"] == ranks[0]["state"]
            assert f"is rank {rank} of {world_size}" in shown["refused"]
            assert shown["same"] == alone(train, 2)
    whole, begun = found["2"][0]["0 workers"]
    rest, following = found["3"][0]["0 workers"]

    def records(steps: list[list[list[int]]]) -> list[int]:
        return sorted(at for step in steps for rank in step for at in rank)

    assert records(whole) == records(begun + rest) == records(following) == list(range(42))
    assert [len(steps) for steps in (whole, begun, rest, following)] == [7, 3, 3, 5]
    of_first = chain(*alone(train, 2, batch_size=3, world_size=2))
    assert [step[0] for step in whole + begun] == list(of_first)[:10]


@pytest.mark.slow
def test_what_the_system_refuses_a_worker_is_told(run_program: Any, packed: Path) -> None:
    program = HEAD + textwrap.dedent("""
        def gone(worker):
            os.rename(sys.argv[1], sys.argv[1] + ".gone")


        import shutil

        shutil.copytree(sys.argv[1], "copied")
        sys.argv[1] = "copied"
        print(failure(seen, under(batches(loader()), 1, worker_init_fn=gone)))
    """)
    assert "copied" in run_program(program, packed)
