"""Class folders of flowers, split into shards for training and validation, with labels.txt.

    python examples/tutorials/class_folders.py [FOLDER]

Files and features have the names of TF-Slim's scripts. The seed and the file names determine the
split, so it is the same on every machine.
"""

from stand_ins import draw_flowers, working_folder

import recordsmith as rs

folder = working_folder()
flowers = draw_flowers(folder / "flowers")  # or your folder with a folder for each class
out = folder / "flowers-slim"

rs.pack(
    rs.ImageFolder(flowers),
    out,
    splits={"train": 0.7, "validation": 0.3},
    shards=2,
    seed=0,
    keys="slim",
    shard_names="flowers_{split}_{shard:05d}-of-{shards:05d}",
)

for path in sorted(out.glob("*.tfrecord")):
    print(path.name, len(rs.open(path)))
print((out / "labels.txt").read_text(), end="")
for key, feature in rs.open(out).schema.features.items():
    print(key, feature.kind)
