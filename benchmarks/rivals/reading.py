"""What a rival delivers of damaged data: jobs of one process."""

from __future__ import annotations

from typing import Any

from rival import Options, Rival, UnsupportedError, hashes_of


def read(rival: Rival, **options: Any) -> dict[str, Any]:
    """Key and hash of each image of an epoch until an error; "open" if there was no batch yet."""
    images: list[tuple[int, str]] = []
    try:
        loader = rival.loader(Options(**options, what="bytes"))
        for image in hashes_of(loader.epoch()):
            images.append(image)  # noqa: PERF402 - those before an error are kept
    except UnsupportedError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a rival raises is its answer
        return {"images": images, "error": f"{type(error).__name__}: {error}"[-2_000:]}
    return {"images": images, "error": None}


def verify(rival: Rival, place: str) -> dict[str, Any]:
    """What its own tool finds."""
    assert rival.verify is not None
    try:
        return {"findings": rival.verify(place)}
    except Exception as error:  # noqa: BLE001
        return {"findings": [f"{type(error).__name__}: {error}"]}
