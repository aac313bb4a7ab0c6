"""Pictures and masks of PASCAL VOC as raw arrays, and the proof that nothing was changed.

    python examples/tutorials/voc_pairs.py [FOLDER]

Writes height, width, image_raw and mask_raw of every pair, reads them back, and compares each
picture and each mask with its file: True is printed for both, pair by pair. Masks keep their class
numbers, the 255 on the edges of objects included; their palette is not turned into colours.
"""

import numpy as np
from PIL import Image
from stand_ins import draw_voc, working_folder

import recordsmith as rs

folder = working_folder()
voc = draw_voc(folder / "VOC")  # or your folder with JPEGImages and SegmentationClass
out = folder / "pairs"

rs.pack(
    rs.ImagePairs(voc),  # those that the lists in ImageSets/Segmentation name, as splits
    out,
    keys="raw-pairs",
    pictures=rs.PictureOptions(format="raw"),
    shuffle=False,  # in the order of their names
)

names = sorted((voc / "ImageSets" / "Segmentation" / "train.txt").read_text().split())
for name, example in zip(names, rs.open(out, split="train"), strict=True):
    shape = example["height"][0], example["width"][0]
    image = np.frombuffer(example["image_raw"][0], np.uint8).reshape(*shape, 3)
    mask = np.frombuffer(example["mask_raw"][0], np.uint8).reshape(shape)
    original = np.array(Image.open(voc / "JPEGImages" / f"{name}.jpg"))
    original_mask = np.array(Image.open(voc / "SegmentationClass" / f"{name}.png"))
    print(np.array_equal(image, original), np.array_equal(mask, original_mask))
