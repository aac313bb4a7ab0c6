"""A forked child can read, even if threads of the parent held locks."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from recordsmith.support.threads import join_thread

from .. import numbered_examples as numbered

pytestmark = pytest.mark.posix


def run(script: str, path: Path) -> None:
    head = "import os, signal, sys, threading, warnings\nimport recordsmith as rs\n"
    head += "warnings.simplefilter('ignore')\n"
    done = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(script), str(path)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("good\n", "", 0)


def test_locks_that_are_held_when_a_process_forks(tmp_path: Path) -> None:
    numbered.write_shard(tmp_path / "a.tfrecord", range(20))
    run(
        """
        dataset = rs.open(sys.argv[1])
        part = dataset[2:8]
        held, goes_on = threading.Event(), threading.Event()

        def hold():
            with dataset.shards[0]._lock, dataset.view.records._records.opened._lock:
                held.set()
                goes_on.wait()

        len(dataset)
        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        child = os.fork()
        if not child:
            signal.alarm(20)
            assert [int(e["id"][0]) for e in part] == [2, 3, 4, 5, 6, 7]
            assert len(dataset.read_records([19, 0, 3])) == 3
            os._exit(7)
        goes_on.set()
        thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert int(dataset[3]["id"][0]) == 3
        print("good")
        """,
        tmp_path / "a.tfrecord",
    )


def test_many_forks_while_threads_read(tmp_path: Path) -> None:
    for number in range(6):
        numbered.write_shard(tmp_path / f"{number}.tfrecord", range(number * 10, number * 10 + 10))
    run(
        """
        import random
        dataset = rs.open(sys.argv[1])
        has_ended = False

        def read():
            while not has_ended:
                for shard in dataset.shards:  # locks are held longer
                    shard.close()
                dataset.read_records([random.randrange(60) for _ in range(5)])

        len(dataset)
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(60):
            child = os.fork()
            if not child:
                signal.alarm(20)
                for position in (0, 15, 59):
                    assert int(dataset[position]["id"][0]) == position
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        has_ended = True
        for thread in threads:
            thread.join()
        print("good")
        """,
        tmp_path,
    )


def test_lock_owners_are_garbage_collected(tmp_path: Path) -> None:
    import gc
    import weakref

    import recordsmith as rs
    from recordsmith.support import threads

    before = set(threads._owners)
    dataset = rs.open(numbered.write_shard(tmp_path / "a.tfrecord", range(3)))
    own = [weakref.ref(owner) for owner in threads._owners if owner not in before]
    assert len(own) == 2  # the shard, and which shards are open
    del dataset
    gc.collect()
    assert [reference() for reference in own] == [None, None]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the threads of Linux")
def test_joined_threads_have_ended_for_the_system() -> None:
    """What libraries lock as a thread ends would stay locked in a process forked before that."""
    for _ in range(300):
        thread = threading.Thread(target=time.sleep, args=(0,))
        thread.start()
        join_thread(thread, time.monotonic() + 10)
        assert not Path(f"/proc/self/task/{thread.native_id}").exists()
