"""Images and masks of PASCAL VOC as raw arrays, compared with the originals.

    python examples/tutorials/voc_pairs.py [FOLDER]

Writes height, width, image_raw and mask_raw of every pair, reads them back, and compares each
image and mask with what Pillow reads from its file; it prints True for both, pair by pair. The
pixels of a JPEG are those of TensorFlow's decoder, which differ from Pillow's by a few levels.
Masks keep their class numbers, including the 255 on the edges of objects; their palette is not
converted to colours.
"""

import numpy as np
from PIL import Image
from stand_ins import draw_voc, working_folder

import recordsmith as rs

folder = working_folder()
voc = draw_voc(folder / "VOC")  # or your folder with JPEGImages and SegmentationClass
out = folder / "pairs"

rs.pack(
    rs.ImagePairs(voc),  # the splits are the lists in ImageSets/Segmentation
    out,
    keys="raw-pairs",
    image_options=rs.ImageOptions(store="raw"),
    shuffle=False,  # ordered by name
)

names = sorted((voc / "ImageSets" / "Segmentation" / "train.txt").read_text().split())
for name, example in zip(names, rs.open(out, split="train"), strict=True):
    shape = example["height"][0], example["width"][0]
    image = np.frombuffer(example["image_raw"][0], np.uint8).reshape(*shape, 3)
    mask = np.frombuffer(example["mask_raw"][0], np.uint8).reshape(shape)
    original = np.array(Image.open(voc / "JPEGImages" / f"{name}.jpg"))
    original_mask = np.array(Image.open(voc / "SegmentationClass" / f"{name}.png"))
    print(np.allclose(image, original, atol=6), np.array_equal(mask, original_mask))
