"""What each rival does with packed data that was damaged."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bench import Bench, Measured, error_class, reason, rival_of, say, with_variants
from rival import Photo, photos_of

from case import Table

SECONDS = 60
VARIANTS = {"mds": ("mds_hashed",)}
_MESSAGE = re.compile(r"error|warn|corrupt|damage|invalid|skip|truncat|unexpected", re.IGNORECASE)

_PLACE = re.compile(r"\b(record|sample|row|key|index|byte|offset)[ =:#]+\d", re.IGNORECASE)


class Damaged(NamedTuple):
    """What was damaged: a file, and an image whose bytes are there."""

    path: Path
    key: int


def flip(found: Damaged, image: bytes, _: Path) -> None:
    """One bit in the middle of the image; of the file, if the image is not there as it is."""
    data = bytearray(found.path.read_bytes())
    start = max(data.find(image), 0)
    length = len(image) if image in data else len(data)
    data[start + length // 2] ^= 1
    _write(found.path, bytes(data))


def cut(found: Damaged, _: bytes, __: Path) -> None:
    _write(found.path, found.path.read_bytes()[: found.path.stat().st_size // 2])


def swap(found: Damaged, _: bytes, other: Path) -> None:
    """The file of the same name, packed from other images of the same sizes."""
    _write(found.path, other.read_bytes())


DAMAGES: dict[str, Callable[[Damaged, bytes, Path], None]] = {
    "a flipped bit": flip,
    "a file cut in the middle": cut,
    "a file of other images": swap,
}


def _write(path: Path, data: bytes) -> None:
    """As a disk damages it: its time stays."""
    stat = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def make_images(photos: list[Photo], out: Path, step: int) -> None:
    """Photo number `n + step` as number `n`, filled up so that the size is the same for all steps.

    A comment fills it up.
    """
    datas = [photo.path.read_bytes() for photo in photos]
    size = max(map(len, datas)) + 4
    for index, photo in enumerate(photos):
        data = datas[(index + step) % len(datas)]
        gap = size - len(data)
        path = out / photo.path.parent.name / photo.path.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            data[:2] + b"\xff\xfe" + (gap - 2).to_bytes(2, "big") + bytes(gap - 4) + data[2:]
        )


def report(bench: Bench) -> Table:
    folder = bench.folder / "damage"
    shutil.rmtree(folder, ignore_errors=True)
    photos = photos_of(bench.photos("few"))
    for step, name in enumerate(("images", "others")):
        make_images(photos, folder / name, step)
    rows, data = [], {}
    for module in with_variants(bench.rivals, VARIANTS):
        say(f"  {module}")
        found = _damages(bench, module, folder)
        data[module] = found
        title = rival_of(module).title
        rows.append((title, *(answer["loader"] for answer in found.values())))
        if rival_of(module).verify is not None:
            rows.append((f"{title}: its tool", *(answer["tool"] for answer in found.values())))
    return Table(
        "damage",
        "Damaged data",
        (
            f"{len(photos):,} images are packed; one file is damaged, and its time kept; an epoch "
            "of the files' bytes is loaded with two threads or workers, and compared by SHA-256. "
            "The bit is in the middle of an image. The file of other images has the same name and "
            "size."
        ),
        ("", *DAMAGES),
        tuple(rows),
        data=data,
    )


def _damages(bench: Bench, module: str, folder: Path) -> dict[str, dict[str, Any]]:
    """What happened with each damage; of the reason why there is nothing to damage."""
    whole, others = folder / module / "whole", folder / module / "others"
    for source, out in (("images", whole), ("others", others)):
        out.parent.mkdir(parents=True, exist_ok=True)
        if rival_of(module).pack is None:
            shutil.copytree(folder / source, out)
            continue
        why = reason(bench.job(module, "pack", images=str(folder / source), out=str(out)))
        if why is not None:
            return {title: {"loader": why, "tool": why} for title in DAMAGES}
    photos = photos_of(folder / "images")
    expected = {photo.key: hashlib.sha256(photo.path.read_bytes()).hexdigest() for photo in photos}
    clean = _read(bench, module, whole)
    middle = photos[len(photos) // 2]
    answers: dict[str, dict[str, Any]] = {}
    for title, damage in DAMAGES.items():
        place = folder / module / damage.__name__
        shutil.copytree(whole, place)
        image = middle.path.read_bytes()
        path = _file_of(image, place)
        other = others / path.relative_to(place)
        if not other.exists():  # its name is random
            other = _file_of(
                (folder / "others" / middle.path.relative_to(folder / "images")).read_bytes(),
                others,
            )
        damage(Damaged(path, middle.key), image, other)
        run = _read(bench, module, place)
        answers[title] = {
            "file": str(path.relative_to(place)),
            "run": run,
            "tool": _checked(bench, module, place, path),
            "loader": _answer(run, clean, expected, path),
        }
        say(f"    {title}: {answers[title]['loader']}; {answers[title]['tool']}")
    return answers


def _file_of(image: bytes, place: Path) -> Path:
    """The file that has an image; the largest one, if none has it as it is."""
    paths = [path for path in sorted(place.rglob("*")) if path.is_file()]
    holding = [path for path in paths if image in path.read_bytes()]
    return holding[0] if holding else max(paths, key=lambda path: path.stat().st_size)


def _read(bench: Bench, module: str, place: Path) -> Measured:
    """What the job printed, and its standard error."""
    process = bench.start(module, "reading:read", place=str(place), threads=2, batch_size=8)
    try:
        out, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its workers, too
        process.communicate()
        return {"failed": f"no end after {SECONDS} s", "messages": ""}
    measured: Measured = json.loads(out.splitlines()[-1]) if out.strip() else {"failed": errors}
    return {**measured, "messages": errors}


def _answer(run: Measured, clean: Measured, expected: dict[int, str], path: Path) -> str:
    """What happened, for a cell of the table."""
    why = reason(run)
    if why is not None:
        return why[:200]
    images = dict(run["images"])
    wrong = sum(digest != expected[number] for number, digest in images.items())
    missing = len(expected) - len(images)
    words = [f"{wrong} wrong images"] if wrong else []
    if run["error"] is not None:
        when = f"after {len(images)} images" if images else "before the first batch"
        words.append(f"{error_class(run['error'])} {when}{_named(run['error'], path)}")
    elif missing:
        known = set(clean["messages"].splitlines())
        messages = [line for line in run["messages"].splitlines() if line not in known]
        told = " ".join(line for line in messages if _MESSAGE.search(line))
        how = f"with a message{_named(told, path)}" if told else "without a message"
        words.append(f"{missing} images left out, {how}")
    elif wrong:
        words.append("without a message")
    return ", ".join(words) or "not noticed, and nothing is wrong"


def _named(text: str, path: Path) -> str:
    names = ["the file"] if path.name in text else []
    names += ["the record"] if _PLACE.search(text) else []
    return f" that names {' and '.join(names)}" if names else ""


def _checked(bench: Bench, module: str, place: Path, path: Path) -> str | None:
    """What the rival's own tool finds, if it has one."""
    if rival_of(module).verify is None:
        return None
    run = bench.job(module, "reading:verify", place=str(place), timeout=SECONDS)
    why = reason(run)
    if why is not None or not run["findings"]:
        return why or "finds nothing"
    return "finds it" + (", names the file" if path.name in " ".join(run["findings"]) else "")
