"""Run all harnesses, each for its part of the time or for so many inputs.

    python tests/fuzz/run.py --seconds 20              all, for 20 seconds together
    python tests/fuzz/run.py --inputs 5000 --seed 7    each with 5,000 inputs
    python tests/fuzz/run.py --only index,manifest     some of them
    python tests/fuzz/run.py --watched                 those that belong under the sanitizer

The same seed and number of inputs are the same inputs. What was survived is printed; exit code 1,
and the input in hexadecimal, if one broke an invariant. To add a harness: a file `fuzz_NAME.py`
with a class `Fuzz` (see `harness.py`); it is found by its name.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness import BrokenError, harnesses, survive


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Decoders write what they think of an image to standard error, past Python."""
    sys.stderr.flush()
    kept = os.dup(2)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(silence)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz everything that reads bytes.")
    bound = parser.add_mutually_exclusive_group()
    bound.add_argument("--seconds", type=float, help="for all harnesses together")
    bound.add_argument("--inputs", type=int, help="for each harness")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="names of harnesses, with commas between")
    parser.add_argument("--watched", action="store_true", help="only those of compiled code")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # Pillow's, on images that are too large
    found = harnesses()
    names = options.only.split(",") if options.only else list(found)
    unknown = sorted(set(names) - set(found))
    if unknown:
        parser.error(f"there is no harness {unknown[0]}; there are {', '.join(found)}")
    if options.watched:
        names = [name for name in names if found[name].watches_memory]
    inputs = options.inputs if options.seconds is None else None
    if options.inputs is None and options.seconds is None:
        inputs = 2000
    seconds = None if options.seconds is None else options.seconds / len(names)
    is_broken = False
    for name in names:
        started = time.monotonic()
        try:
            with nullcontext() if found[name].watches_memory else quiet_libraries():
                counts = survive(found[name], options.seed, inputs=inputs, seconds=seconds)
        except BrokenError as error:
            traceback.print_exception(error.__cause__)
            print(f"{name} is broken: {error}")
            again = f"--only {name} --seed {options.seed} --inputs {error.number + 1}"
            print(f"to repeat it: python tests/fuzz/run.py {again}")
            is_broken = True
            continue
        took = time.monotonic() - started
        others = ", ".join(
            f"{n:,} {what}" for what, n in sorted(counts.items()) if what != "inputs"
        )
        print(
            f"{name}: survived {counts['inputs']:,} inputs in {took:.0f} s ({others})", flush=True
        )
    return int(is_broken)


if __name__ == "__main__":
    sys.exit(main())
