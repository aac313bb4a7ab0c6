"""Datasets that are changed again and again, with kills between, against a model in plain Python.

Layers come and go, and replace each other. TensorFlow reads the shards and the files of layers
after each change, if it is installed.

    python tests/soak/histories.py --count 500
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

from shared import option_parser, print_outcomes  # first: it makes `tests` a package
from tests.histories import run_history

_CHANGES = 6


def main() -> int:
    options = option_parser(__doc__, 20, "histories").parse_args()
    outcomes: Counter[str] = Counter()
    for number in range(options.count):
        with tempfile.TemporaryDirectory() as root:
            try:
                run_history(Path(root), options.seed + number, _CHANGES)
            except Exception:
                traceback.print_exc()
                print(f"history {options.seed + number}")
                outcomes["WRONG: another dataset than the model"] += 1
            else:
                outcomes["equal to the model"] += 1
    return print_outcomes(outcomes, options.seed, f"{_CHANGES} changes each")


if __name__ == "__main__":
    sys.exit(main())
