"""How far memory rises in a shuffled epoch, for a dataset and for one ten times as large.

Anonymous memory is what a process has for itself. File-backed memory is pages of the page cache
that it has mapped: the system takes them back when it needs them, but counts them as the process's
as long as they are there, and so do those who set limits.
"""

from __future__ import annotations

import statistics
import threading
from functools import partial
from pathlib import Path

import loaders
from case import OURS, Case, Peer, Settings, Table, Task
from inputs import Inputs
from measure import Worker, make_inputs, say

_TENSORFLOW = "tf.data, a buffer of all images"
_ONCE, _TEN_TIMES = "camera-packed", "camera-packed-10-times"
_FIELDS = {"resident": "VmRSS", "anonymous": "RssAnon", "file-backed": "RssFile"}
_WHOLE = "whole process"
_AT_MOST = 1 / 3
_FLAT_BYTES = 32 << 20  # how much more ten times the images may take: noise, an index
_LOOK_SECONDS = 0.005


def _recordsmith(inputs: Inputs, packed: str) -> Task:
    import cv2  # noqa: F401 - what is loaded late counts as an import here
    import simplejpeg  # noqa: F401

    return _task(inputs, packed, loaders.recordsmith(inputs.folder, packed))


def _tensorflow(inputs: Inputs, packed: str) -> Task:
    count = _count(inputs, packed)
    return _task(inputs, packed, loaders.tensorflow(inputs.folder, packed, buffer_size=count))


def _task(inputs: Inputs, packed: str, epoch: loaders.Epochs) -> Task:
    def run() -> None:
        for _ in epoch():
            pass

    return Task(run, _count(inputs, packed))


def _count(inputs: Inputs, packed: str) -> int:
    return inputs.camera_count * (10 if packed == _TEN_TIMES else 1)


CASE = Case(
    name="loader-memory",
    title="Peak memory of training",
    what=(
        "An epoch of shuffled batches as above, in a fresh process for each row; MiB above what is "
        "resident after the imports. Anonymous memory is the process's own; file-backed memory is "
        "page cache that it has mapped. The whole process is stated with its imports."
    ),
    unit="image",
    peers=tuple(
        Peer(f"{name}, {packed}", partial(prepare, packed=packed))
        for name, prepare in ((OURS, _recordsmith), (_TENSORFLOW, _tensorflow))
        for packed in (_ONCE, _TEN_TIMES)
    ),
    inputs=(_ONCE, _TEN_TIMES),
)


class _Watch:
    """Looks at the memory of a process again and again; keeps the most of each kind."""

    def __init__(self, process: int) -> None:
        self._status = Path(f"/proc/{process}/status")
        self._is_over = threading.Event()
        self.most = dict.fromkeys(_FIELDS, 0)
        self._begun = self._look()
        self._thread = threading.Thread(target=self._keep_looking)
        self._thread.start()

    def end(self) -> dict[str, int]:
        """Bytes above what there was when it began."""
        self._is_over.set()
        self._thread.join()
        return self.most

    @property
    def begun_bytes(self) -> int:
        """What was resident when it began."""
        return self._begun["resident"]

    def _keep_looking(self) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            for name, value in self._look().items():
                self.most[name] = max(self.most[name], value - self._begun[name])

    def _look(self) -> dict[str, int]:
        found = dict(line.split(":", 1) for line in self._status.read_text().splitlines())
        return {name: int(found[field].split()[0]) << 10 for name, field in _FIELDS.items()}


def report(settings: Settings) -> Table:
    """One fresh process for each row and round."""
    say(CASE.name)
    make_inputs(settings, CASE.inputs)
    peaks: dict[str, list[dict[str, int]]] = {peer.name: [] for peer in CASE.peers}
    counts, missing = {}, {}
    for number in range(settings.repeat):
        say(f"  round {number + 1} of {settings.repeat}")
        for peer in CASE.peers:
            worker = Worker(settings, CASE, peer)
            counts[peer.name] = worker.records
            if worker.missing is None:
                watch = _Watch(worker.process_id)
                worker.run()
                peak = watch.end()
                # the kernel's own figure misses no moment
                peak["resident"] = max(peak["resident"], worker.runs[0]["memory"])
                peak[_WHOLE] = watch.begun_bytes + peak["resident"]
                peaks[peer.name].append(peak)
            else:
                missing[peer.name] = worker.missing
            worker.close()
    return _table(peaks, counts, missing)


def _table(
    peaks: dict[str, list[dict[str, int]]], counts: dict[str, int], missing: dict[str, str]
) -> Table:
    middle = {
        name: {kind: statistics.median(peak[kind] for peak in found) for kind in found[0]}
        for name, found in peaks.items()
        if found
    }
    rows = []
    for peer, found in middle.items():
        name, _, packed = peer.rpartition(", ")
        other = middle.get(f"{_TENSORFLOW}, {packed}") if name == OURS else None
        ratio = None if other is None else found[_WHOLE] / other[_WHOLE]
        rows.append(
            (
                name,
                f"{counts[peer]:,}",
                *(f"{found[kind] / (1 << 20):,.0f}" for kind in (*_FIELDS, _WHOLE)),
                "" if ratio is None else f"1/{1 / _AT_MOST:.0f} of tf.data",
                "" if ratio is None else "yes" if ratio <= _AT_MOST else f"**no**: {ratio:.2f}",
            )
        )
    rows += [(name, "", "not installed", "", "", "", "", "") for name in missing]
    grown = middle[f"{OURS}, {_TEN_TIMES}"]["resident"] - middle[f"{OURS}, {_ONCE}"]["resident"]
    note = (
        f"Ten times the images take recordsmith {grown / (1 << 20):+,.0f} MiB; it must be flat, "
        f"at most {_FLAT_BYTES >> 20} MiB more: {'yes' if grown <= _FLAT_BYTES else '**no**'}."
    )
    return Table(
        CASE.name,
        CASE.title,
        CASE.what,
        (
            "",
            "images",
            *(f"{kind} MiB" for kind in (*_FIELDS, _WHOLE)),
            "target: whole at most",
            "met",
        ),
        tuple(rows),
        (note,),
        {"peaks_bytes": peaks, "images": counts, "missing": missing, "grown_bytes": grown},
    )
