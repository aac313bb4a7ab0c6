"""Records read at random while their file is written over in place: each is an old or a new one.

    python tests/soak/changing_file.py [--seed N] [--count N]

A writer replaces records of a mapped shard by others of the same length, over and over. Whatever
`read_records` and `read_record` return must be one of the two versions of that record; a
CorruptDataError is allowed, as a record may be half written.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
from pathlib import Path

from shared import option_parser

import recordsmith as rs
from recordsmith.format.wire import encode_record


def main() -> None:
    options = option_parser(__doc__, 100_000, "records to read").parse_args()
    dice = random.Random(options.seed)
    sizes = [dice.randrange(1, 16_000) for _ in range(200)]
    payloads = [[dice.randbytes(size) for size in sizes] for _ in range(2)]
    versions = [b"".join(map(encode_record, version)) for version in payloads]
    is_done = threading.Event()
    read_count = refused_count = wrong_count = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changing.tfrecord"
        path.write_bytes(versions[0])

        def write() -> None:
            with path.open("r+b", buffering=0) as file:
                version = 1
                while not is_done.wait(0.0005):
                    os.pwrite(file.fileno(), versions[version], 0)
                    version = 1 - version

        dataset = rs.open(path)
        len(dataset)
        writer = threading.Thread(target=write)
        writer.start()
        try:
            while read_count + refused_count < options.count:
                positions = [dice.randrange(len(sizes)) for _ in range(dice.choice((1, 64)))]
                try:
                    found = dataset.read_records(positions).tolist()
                except rs.CorruptDataError:
                    refused_count += len(positions)
                    continue
                read_count += len(found)
                wrong_count += sum(
                    record not in (payloads[0][position], payloads[1][position])
                    for position, record in zip(positions, found, strict=True)
                )
        finally:
            is_done.set()
            writer.join()
    print(f"read {read_count:,}, refused {refused_count:,}, wrong {wrong_count:,}")
    if wrong_count:
        raise SystemExit(f"records that never were; seed {options.seed}")


if __name__ == "__main__":
    main()
