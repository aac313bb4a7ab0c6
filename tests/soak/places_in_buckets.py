"""Runs the tests of datasets, verification, reshaping and the loader with their data in a bucket.

    python tests/soak/places_in_buckets.py --seed 1 --count 8      eight files of tests

They use the fixture `place`, which is a folder in moto's S3 here.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from shared import option_parser

TESTS = Path(__file__).parent.parent
FOLDERS = ("dataset", "checking", "writing/reshaping", "loading")


def main() -> int:
    options = option_parser(__doc__, 8, "files of tests").parse_args()
    files = [
        path
        for folder in FOLDERS
        for path in sorted((TESTS / folder).rglob("test_*.py"))
        if "place: Location" in path.read_text("utf-8")
    ]
    chosen = random.Random(options.seed).sample(files, min(options.count, len(files)))
    command = [sys.executable, "-m", "pytest", "-q", "-k", "s3", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *map(str, chosen)],
        cwd=TESTS.parent,
        env={**os.environ, "RECORDSMITH_TEST_PLACES": "s3"},
        check=False,
    )
    return int(done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
