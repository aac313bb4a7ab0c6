"""Class folders of flowers in one file, with a progress bar, and its content.

    python examples/tutorials/flower_records.py [FOLDER]

Each record has the label of a flower, the name of its class, and the bytes of its image file. The
progress bar appears only on a terminal.
"""

import sys

from rich.progress import Progress
from stand_ins import draw_flowers, working_folder

import recordsmith as rs

folder = working_folder()
flowers = draw_flowers(folder / "flowers")  # or your folder with a folder for each class
out = folder / "records"

with Progress(transient=True, disable=not sys.stdout.isatty()) as bar:
    task = bar.add_task("packing")
    rs.pack(
        rs.ImageFolder(flowers),
        out,
        keys="label-text-encoded",
        shard_names="flower.tfrecords",
        progress=lambda done, total: bar.update(task, completed=done, total=total),
    )

dataset = rs.open(out / "flower.tfrecords")
print(len(dataset), "flowers of", len(dataset.class_names or ()), "classes")
for key, feature in dataset.schema.features.items():
    print(key, feature.kind)
for example in dataset[:3]:
    label, text, encoded = (example[key][0] for key in ("label", "text", "encoded"))
    print(label, text.decode(), f"{len(encoded)} bytes of {encoded[6:10].decode()}")
