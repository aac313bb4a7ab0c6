"""recordsmith.jax, in processes of its own: JAX warns of forks in the one that has imported it, and
counts its devices when it is first used.
"""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

HERE = Path(__file__).parent
needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed"
)


def devices(count: int) -> dict[str, str]:
    flags = f"--xla_force_host_platform_device_count={count}"
    return {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}


@pytest.mark.slow
@needs_jax
def test_with_four_devices() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / "jax_checks.py"],
        env=devices(4), capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 40


DISTRIBUTED = """
    import sys
    import jax, numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    import recordsmith as rs, recordsmith.jax as adapter

    path, port, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank, initialization_timeout=60)
    dataset, features = rs.open(path), {"id": "id", "pair": "pair"}
    options = {"batch_size": 4, "shuffle": True, "last_batch": "drop"}
    devices = np.array(jax.devices())
    gather = jax.jit(lambda x: x, out_shardings=NamedSharding(Mesh(devices, "all"), P()))

    rows = NamedSharding(Mesh(devices, "data"), P("data"))
    assert adapter.this_rank() == adapter.this_rank(rows) == {"rank": rank, "world_size": 2}
    try:
        adapter.batches(rs.Loader(dataset, features, **options), rows)
    except rs.OptionError as error:
        assert f"this process is rank {rank} of 2" in str(error), error
    else:
        raise SystemExit("two processes would read the same")
    try:
        adapter.batches(rs.Loader(dataset, features, batch_size=4, **adapter.this_rank()), rows)
    except rs.OptionError as error:
        assert "2 processes share the rows" in str(error), error
    else:
        raise SystemExit("the processes have different numbers of rows")

    def run(batches, count=None):
        seen = []
        for batch in batches:
            assert batch["id"].shape == (8,) and batch["pair"].shape == (8, 2)
            assert [len(shard.data) for shard in batch["id"].addressable_shards] == [2, 2]
            seen.append(np.asarray(gather(batch["id"])).tolist())
            if len(seen) == count:
                break
        return seen

    make = lambda: rs.Loader(dataset, features, **options, **adapter.this_rank())
    batches = adapter.batches(make(), rows)
    begun = run(batches, 2)
    state = batches.state_dict()
    wanted = [set(batch["id"].tolist()) for batch in rs.Loader(
        dataset, features, **{**options, "batch_size": 8})]
    again = adapter.batches(make(), rows)
    again.load_state_dict(state)
    assert [set(step) for step in begun + run(again)] == wanted and len(wanted) == 5

    # rows over the devices of a process, the model over both: they read the same
    mesh = Mesh(devices.reshape(2, 2), ("model", "data"))
    same = NamedSharding(mesh, P("data"))
    assert adapter.this_rank(same) == {"rank": 0, "world_size": 1}
    loader = rs.Loader(dataset, features, **options, **adapter.this_rank(same))
    expected = [batch["id"].tolist() for batch in rs.Loader(dataset, features, **options)]
    cut = {"id": same, "pair": NamedSharding(mesh, P("data", "model"))}
    for batch, whole in zip(adapter.batches(loader, cut), expected, strict=True):
        assert batch["id"].shape == (4,) and batch["pair"].shape == (4, 2)
        assert np.asarray(gather(batch["id"])).tolist() == whole
        assert [float(x) for x in np.asarray(gather(batch["pair"]))[:, 1]] == [-x for x in whole]
    print("done", rank)
"""


@needs_jax
def test_two_processes(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(43):
            writer.write_example({"id": number, "pair": [number + 0.5, -number]})
    (tmp_path / "program.py").write_text(textwrap.dedent(DISTRIBUTED))
    for _ in range(3):  # another program may have taken the port meanwhile
        outputs = run_ranks(tmp_path)
        if not any("address already in use" in output.lower() for output in outputs):
            break
    for rank, output in enumerate(outputs):
        assert f"done {rank}" in output


def run_ranks(folder: Path) -> list[str]:
    """What two processes printed that began together."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [
        subprocess.Popen(
            [sys.executable, "program.py", "a.tfrecord", str(port), str(rank)],
            cwd=folder, env=devices(2), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        return [process.communicate(timeout=120)[0] for process in ranks]
    finally:
        for process in ranks:
            process.kill()


@needs_jax
def test_the_page(run_page: Any) -> None:
    run_page("jax.md")
