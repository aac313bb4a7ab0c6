"""Batches of images and masks, cropped or padded together, from raw arrays in records.

    python examples/tutorials/voc_batches.py [FOLDER]

Ten epochs of shuffled batches of two, 384 by 384 pixels. Larger images are cropped at the centre,
smaller ones padded with zeros, each mask like its image. The first batch is drawn.
"""

import numpy as np
from stand_ins import draw_voc, working_folder

import recordsmith as rs

folder = working_folder()
voc = draw_voc(folder / "VOC")  # or your folder with JPEGImages and SegmentationClass
out = folder / "pairs"
raw = rs.ImageOptions(store="raw")
rs.pack(rs.ImagePairs(voc), out, keys="raw-pairs", image_options=raw)

loader = rs.Loader(
    rs.open(out, split="train"),
    features={
        "image": rs.Image("image_raw", (384, 384), "crop-or-pad", raw_shape=("height", "width", 3)),
        "mask": rs.Mask("mask_raw", raw_shape=("height", "width")),
    },
    batch_size=2,
    shuffle=True,
    seed=0,
    epochs=10,
)

print(len(loader), "batches")
for number, batch in enumerate(loader):
    if number == 0:
        print(batch["image"].dtype, batch["image"].shape, batch["mask"].dtype, batch["mask"].shape)
        print("classes", np.unique(batch["mask"]).tolist())
        page = folder / "batch.png"
        rs.draw_batch(batch["image"], page, masks=batch["mask"], overwrite=True)
print(loader.epoch, "epochs")
