"""What all harnesses share: seeds, mutations, and the loop that counts what was survived.

A harness is a file `fuzz_NAME.py` with a class `Fuzz`: see `Harness`. Its invariant stands in words
on top of the file, and in asserts below.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

FOLDER = Path(__file__).parent
CORPUS = FOLDER.parent / "conformance" / "files"


class Harness(Protocol):
    """Made once for a run, with a folder of its own to write to.

    watches_memory: whether it drives compiled code of ours, and so belongs under the sanitizer.
    reached: counts that a run of a thousand inputs must have, or the mutations miss what they are
        for.
    last: the current input, to be shown if it breaks the invariant.
    """

    watches_memory: bool
    reached: tuple[str, ...]
    last: bytes

    def __init__(self, folder: Path, /) -> None: ...

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        """Make one input, drive the code with it, and assert what must hold."""


class BrokenError(Exception):
    """Input `number` of a run broke an invariant."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def harnesses() -> dict[str, Any]:
    """The class of each harness, by the name of its file."""
    found = {}
    for path in sorted(FOLDER.glob("fuzz_*.py")):
        name = path.stem.removeprefix("fuzz_")
        spec = importlib.util.spec_from_file_location(f"fuzz_harness_{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        found[name] = module.Fuzz
    return found


def survive(
    kind: Any, seed: int, *, inputs: int | None = None, seconds: float | None = None
) -> Counter[str]:
    """Drive a harness for so many inputs, or so long; answers what was counted.

    Raises:
        BrokenError: an input broke the invariant.
    """
    counts: Counter[str] = Counter()
    dice = random.Random(seed)
    stop = None if seconds is None else time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        harness = kind(Path(folder))
        for number in endlessly() if inputs is None else range(inputs):
            if stop is not None and time.monotonic() > stop:
                break
            try:
                harness.one(dice, counts)
            except Exception as error:
                raise BrokenError(
                    number,
                    f"seed {seed}, input {number}: {type(error).__name__}: {error}\n"
                    f"  {harness.last.hex()}",
                ) from error
            counts["inputs"] += 1
    return counts


def endlessly() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


# ---- mutations -----------------------------------------------------------------------------------

# bytes that mean something on the wire: tags, ends of varints, small lengths
TELLING = bytes([0, 1, 2, 7, 8, 9, 10, 11, 12, 13, 16, 18, 26, 34, 127, 128, 255, 0x4B, 0x4C, 0x7A])
HUGE = [b"\xff" * 9 + b"\x01", b"\xff" * 4 + b"\x0f", b"\x80" * 9 + b"\x01", b"\xff" * 8 + b"\x7f"]


def mutated(data: bytes, others: list[bytes], dice: random.Random) -> bytes:
    """A copy with some flips, cuts, splices and lengths that lie; sometimes with none."""
    mutable = bytearray(data)
    for _ in range(dice.choice((0, 0, 1, 1, 1, 1, 2, 2, 3, 5, 8))):
        at = dice.randrange(len(mutable) + 1)
        choice = dice.randrange(10)
        if choice == 0:
            mutable[at : at + 1] = bytes([dice.randrange(256)])
        elif choice <= 2:
            mutable[at : at + 1] = bytes([dice.choice(TELLING)])
        elif choice == 3 and at < len(mutable):
            mutable[at] ^= 1 << dice.randrange(8)
        elif choice == 4 and at < len(mutable):
            mutable[at] = (mutable[at] + dice.choice((-2, -1, 1, 2, 8))) % 256
        elif choice == 5:
            del mutable[at : at + dice.choice((1, 2, 4, 8, 30))]
        elif choice == 6:
            mutable[at:at] = mutable[at : at + dice.choice((1, 2, 8, 30))]
        elif choice == 7:
            other = dice.choice(others)
            start = dice.randrange(len(other) + 1)
            mutable[at:at] = other[start : start + dice.randrange(40)]
        elif choice == 8:
            mutable[at : at + dice.randrange(3)] = dice.choice(HUGE)
        else:
            del mutable[at:]  # ends in the middle of something
    return bytes(mutable)


def corpus_files(pattern: str = "*.tfrecord", most_bytes: int = 2000) -> list[bytes]:
    """The small files of the conformance corpus."""
    seeds = [path.read_bytes() for path in sorted(CORPUS.glob(pattern))]
    return [seed for seed in seeds if len(seed) < most_bytes]


ODD_VALUES = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.5, 1e308, float("nan"),
    float("inf"), "", "x", "..", "/etc/passwd", "a/b", "\0", "\ud800", "\x1b[2J", "9" * 5000,
    [], {}, [[]], [None], {"": None},
)  # fmt: skip


def mutated_json(document: Any, dice: random.Random) -> Any:
    """A copy in which something is missing, doubled, moved or something else."""
    if dice.random() < 0.04:
        return dice.choice(ODD_VALUES)
    if isinstance(document, dict):
        copy = {key: value for key, value in document.items() if dice.random() > 0.01}
        if copy:
            key = dice.choice(list(copy))
            copy[key] = mutated_json(copy[key], dice)
            if dice.random() < 0.05:
                copy[dice.choice(list(copy))] = copy[dice.choice(list(copy))]
            if dice.random() < 0.03:
                copy[str(dice.choice(ODD_VALUES))[:50]] = copy[key]
        return copy
    if isinstance(document, list):
        copy_of_list = list(document)
        if copy_of_list:
            at = dice.randrange(len(copy_of_list))
            copy_of_list[at] = mutated_json(copy_of_list[at], dice)
            if dice.random() < 0.1:
                copy_of_list *= 2
        return copy_of_list
    return dice.choice(ODD_VALUES) if dice.random() < 0.3 else document
