"""The `tfrecord` package reads by the text files of `rs.index`, its shards over processes.

    python tests/adapters/reads_by_tfrecord_package.py

Wants recordsmith and the `tfrecord` package, which cannot be imported together with TensorFlow.
The tests run it where it is installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import recordsmith as rs

COUNT, WORKERS = 37, 3
WORKER = """\
import sys
from tfrecord.reader import tfrecord_loader

path, index, worker, count = sys.argv[1:]
loader = tfrecord_loader(path, index, {"id": "int"}, shard=(int(worker), int(count)))
print(*(int(example["id"][0]) for example in loader))
"""


def main() -> None:
    from tfrecord.tools.tfrecord2idx import create_index

    with tempfile.TemporaryDirectory() as name:
        shard, theirs = Path(name) / "x.tfrecord", Path(name) / "theirs"
        with rs.ShardWriter(shard) as writer:
            for number in range(COUNT):
                writer.write_example({"id": number, "text": "x" * number**2})
        (file,) = rs.index(shard, format="dali").files
        create_index(str(shard), str(theirs))
        assert Path(file.path).read_bytes() == theirs.read_bytes()
        read = []
        for worker in range(WORKERS):
            arguments = map(str, (shard, file.path, worker, WORKERS))
            done = subprocess.run(
                [sys.executable, "-c", WORKER, *arguments],
                capture_output=True,
                text=True,
                check=True,
            )
            read.append([int(number) for number in done.stdout.split()])
    assert all(read)
    assert [number for part in read for number in part] == [*range(COUNT)]
    print(f"good: {WORKERS} processes read {COUNT} records, each once")


if __name__ == "__main__":
    main()
