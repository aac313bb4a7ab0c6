"""Measure the augmentation of batches: CPU time of an image, and that of peers.

    python benchmarks/augmentation.py

Prints a Markdown table. All run in this process with one thread, in turn, on the same 64 images of
224x224; the median of the rounds counts. A peer that is not installed is left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import recordsmith as rs

COUNT, SIDE, CLASSES = 64, 224, 1000
JITTER = {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}
PEERS = ("recordsmith", "torchvision uint8", "torchvision float", "albumentations")

Jobs = dict[tuple[str, str], Callable[[], Any]]
"""(what, who) -> augments the batch once."""


def batch() -> dict[str, Any]:
    """Images with edges, gradients and noise, in all colours."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:SIDE, :SIDE, :1][:2]
    phases = rng.uniform(0, 6, (COUNT, 1, 1, 3))
    waves = 128 + 90 * np.sin(x / rng.uniform(5, 50, (COUNT, 1, 1, 3)) + phases + (y > x))
    images = (waves + rng.normal(0, 12, (COUNT, SIDE, SIDE, 3))).clip(0, 255).astype(np.uint8)
    return {"image": images, "label": rng.integers(0, CLASSES, COUNT)}


def ours(given: dict[str, Any]) -> Jobs:
    floats = {**given, "image": given["image"].astype(np.float32) / 255}
    generator = np.random.default_rng(1)
    functions: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "mixup": (rs.Mixup(classes=CLASSES), given),
        "mixup, uint8 to float32": (rs.Mixup(classes=CLASSES, dtype="float32"), given),
        "mixup of float32": (rs.Mixup(classes=CLASSES), floats),
        "cutmix": (rs.Cutmix(classes=CLASSES), given),
        "erasing": (rs.RandomErasing(), given),
        "jitter": (rs.ColorJitter(**JITTER), given),  # type: ignore[arg-type]
    }
    return {
        (what, "recordsmith"): partial(function, images, generator)
        for what, (function, images) in functions.items()
    }


def torchvision_jobs(given: dict[str, Any]) -> Jobs:
    import torch
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    torch.manual_seed(1)
    levels = torch.from_numpy(given["image"]).permute(0, 3, 1, 2).contiguous()
    floats, labels = levels.float() / 255, torch.from_numpy(given["label"])
    jitter, erasing = v2.ColorJitter(**JITTER), v2.RandomErasing()
    mixup, cutmix = v2.MixUp(num_classes=CLASSES), v2.CutMix(num_classes=CLASSES)

    def each(transform: Any, images: Any) -> Any:
        return torch.stack([transform(image) for image in images])

    jobs: Jobs = {}
    for who, images in (("torchvision uint8", levels), ("torchvision float", floats)):
        jobs["cutmix", who] = partial(cutmix, images, labels)
        jobs["erasing", who] = partial(each, erasing, images)
        jobs["jitter", who] = partial(each, jitter, images)
        jobs["jitter, one draw a batch", who] = partial(jitter, images)
    for what in ("mixup", "mixup of float32"):  # it has none for uint8
        jobs[what, "torchvision float"] = partial(mixup, floats, labels)
    convert = v2.ToDtype(torch.float32, scale=True)
    jobs["mixup, uint8 to float32", "torchvision float"] = lambda: mixup(convert(levels), labels)
    return jobs


def albumentations_jobs(given: dict[str, Any]) -> Jobs:
    os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
    import albumentations
    import cv2

    cv2.setNumThreads(1)
    jitter = albumentations.ColorJitter(
        (0.6, 1.4), (0.6, 1.4), (0.6, 1.4), (-0.1, 0.1), p=1, seed=1
    )
    erasing = albumentations.Erasing(p=0.5, seed=1)

    def each(transform: Any) -> Any:
        return np.stack([transform(image=image)["image"] for image in given["image"]])

    return {
        ("jitter", "albumentations"): partial(each, jitter),
        ("erasing", "albumentations"): partial(each, erasing),
    }


def measured(jobs: Jobs, rounds: int) -> dict[tuple[str, str], float]:
    """Milliseconds of CPU time an image: the median of the rounds."""
    times: dict[tuple[str, str], list[float]] = {job: [] for job in jobs}
    for _ in range(rounds + 1):
        for job, run in jobs.items():
            begun = time.process_time()
            run()
            times[job].append((time.process_time() - begun) / COUNT * 1000)
    return {job: statistics.median(seconds[1:]) for job, seconds in times.items()}


def table(times: dict[tuple[str, str], float]) -> str:
    """The time, and behind it how many times that of recordsmith it is."""
    lines = [f"| CPU ms an image | {' | '.join(PEERS)} |", "| --- " * (len(PEERS) + 1) + "|"]
    for what in dict.fromkeys(what for what, _ in times):
        own = times[what.split(", one")[0], "recordsmith"]
        cells = [f"{own:.3f}"]
        for who in PEERS[1:]:
            time_of_peer = times.get((what, who))
            cells.append(f"{time_of_peer:.3f} ({time_of_peer / own:.1f})" if time_of_peer else "")
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    given = batch()
    jobs = ours(given)
    for jobs_of_peer in (torchvision_jobs, albumentations_jobs):
        try:
            jobs |= jobs_of_peer(given)
        except ImportError as error:
            print(f"left out: {error}")
    print(table(measured(jobs, rounds)))


if __name__ == "__main__":
    main()
