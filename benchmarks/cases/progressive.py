"""A folder of progressive JPEGs, packed as they are and turned to baseline.

Shrinkers write progressive files, and what trains decodes them many times. Turning them once
moves the coefficients, so pixels are the same: the digests of all that is decoded are compared.
"""

from __future__ import annotations

import hashlib
import shutil
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from case import Case, NotComparableError, Peer, Settings, Table, Task
from inputs import Inputs
from measure import Worker, make_inputs, microseconds, say

_FORMS = ("packed as they are", "packed with `baseline=True`")
_PACK, _CV2, _SIMPLEJPEG = "pack", "cv2", "simplejpeg"


def _options(form: str) -> Any:
    from recordsmith import ImageOptions

    if form == _FORMS[0]:
        return ImageOptions()
    import jpeglib  # noqa: F401 - without it the row is marked as not installed

    return ImageOptions(baseline=True)


def _pack(inputs: Inputs, form: str) -> Task:
    from recordsmith import ImageFiles, pack

    out = inputs.out(f"progressive-{_FORMS.index(form)}")
    images = _options(form)

    def run() -> None:
        source = ImageFiles(inputs.path("progressive"))
        pack(source, out, shards=1, image_options=images, threads=1)

    def size(_: Any) -> int:
        return sum(path.stat().st_size for path in out.glob("*.tfrecord"))

    def before() -> None:
        shutil.rmtree(out, ignore_errors=True)

    return Task(run, inputs.encoded_count, before, size)


def _decode(inputs: Inputs, form: str, decoder: str) -> Task:
    """Decode what was packed, held in memory."""
    decode = {_CV2: _by_cv2, _SIMPLEJPEG: _by_simplejpeg}[decoder]()
    import recordsmith as rs

    out = inputs.out(f"progressive-{_FORMS.index(form)}-for-{decoder}")
    rs.pack(
        rs.ImageFiles(inputs.path("progressive")),
        out,
        shards=1,
        shuffle=False,
        image_options=_options(form),
        overwrite=True,
    )
    examples: Any = rs.open(out)
    encoded = [example["image/encoded"][0] for example in examples]

    def run() -> None:
        for data in encoded:
            decode(data)

    def pixels(_: Any) -> str:
        digest = hashlib.sha256()
        for data in encoded:
            digest.update(decode(data))
        return digest.hexdigest()

    return Task(run, len(encoded), digest=pixels)


def _by_cv2() -> Callable[[bytes], Any]:
    import cv2
    import numpy as np

    return lambda data: cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)


def _by_simplejpeg() -> Callable[[bytes], Any]:
    from simplejpeg import decode_jpeg

    return decode_jpeg  # type: ignore[no-any-return]


def _peers() -> tuple[Peer, ...]:
    peers = []
    for form in _FORMS:
        peers.append(Peer(f"{form}, {_PACK}", partial(_pack, form=form)))
        peers += [
            Peer(f"{form}, {decoder}", partial(_decode, form=form, decoder=decoder))
            for decoder in (_CV2, _SIMPLEJPEG)
        ]
    return tuple(peers)


CASE = Case(
    name="progressive",
    title="Progressive JPEGs",
    what=(
        "Progressive JPEG files of 500 by 375 pixels. Packing on one thread, from the files; "
        "decoding from memory."
    ),
    unit="image",
    peers=_peers(),
    inputs=("progressive",),
)


def report(settings: Settings) -> Table:
    """One row for each form.

    Raises:
        NotComparableError: a decoder sees different pixels in the two forms.
    """
    say(CASE.name)
    make_inputs(settings, CASE.inputs)
    workers = {peer.name: Worker(settings, CASE, peer) for peer in CASE.peers}
    try:
        digests: dict[str, Any] = {
            name: None if worker.missing else worker.warm_up() for name, worker in workers.items()
        }
        for number in range(settings.repeat):
            say(f"  round {number + 1} of {settings.repeat}")
            for worker in workers.values():
                if not worker.missing:
                    worker.run()
    finally:
        for worker in workers.values():
            worker.close()
    for decoder in (_CV2, _SIMPLEJPEG):
        seen = {digests[f"{form}, {decoder}"] for form in _FORMS} - {None}
        if len(seen) > 1:
            raise NotComparableError(f"{decoder} decodes other pixels from the two forms")
    rows, data = [], []
    count = workers[f"{_FORMS[0]}, {_PACK}"].records
    for form in _FORMS:
        size_bytes = digests[f"{form}, {_PACK}"]
        row = [form, "" if size_bytes is None else f"{size_bytes / count:,.0f}"]
        of_form: dict[str, Any] = {"form": form, "images": count, "size_bytes": size_bytes}
        for what in (_PACK, _CV2, _SIMPLEJPEG):
            worker = workers[f"{form}, {what}"]
            seconds = [] if worker.missing else worker.per_record("cpu")
            row.append(microseconds(statistics.median(seconds)) if seconds else "not installed")
            of_form[what] = seconds
        rows.append(tuple(row))
        data.append(of_form)
    header = (
        "",
        "bytes an image",
        "CPU µs to pack one",
        "to decode it with cv2",
        "with simplejpeg",
    )
    notes = ("Pixels are the same in both, by each decoder: a hash over all of them.",)
    return Table(
        CASE.name,
        CASE.title,
        f"{CASE.what} {count:,} images.",
        header,
        tuple(rows),
        notes,
        {"rows": data},
    )
