"""Batches of flowers: decoded, resized to 192 by 192, from 0 to 1, shuffled, repeated, prefetched.

    python examples/tutorials/flower_batches.py [FOLDER]

The loader never ends, uses a new order in each epoch, and makes two batches ahead of the current
one. The first batch is drawn as a preview.
"""

from itertools import islice

from stand_ins import draw_flowers, working_folder

import recordsmith as rs

folder = working_folder()
flowers = draw_flowers(folder / "flowers")  # or your folder with a folder for each class
out = folder / "records"
rs.pack(rs.ImageFolder(flowers), out)

loader = rs.Loader(
    rs.open(out),
    features={
        "image": rs.Image("image/encoded", size=(192, 192), dtype="float32"),
        "label": rs.Scalar("image/class/label"),
        "name": rs.Text("image/class/text"),
    },
    batch_size=32,
    shuffle=True,
    seed=0,
    epochs=None,  # endless
    last_batch="drop",
    prefetch=2,
)

for number, batch in enumerate(islice(loader, 5)):
    image, label = batch["image"], batch["label"]
    print(image.dtype, image.shape, f"{image.min():.2f} to {image.max():.2f}", label[:8])
    if number == 0:
        page = folder / "batch.png"
        rs.draw_batch(image, page, captions=batch["name"], columns=8, overwrite=True)
print("epoch", loader.epoch)
loader.close()
