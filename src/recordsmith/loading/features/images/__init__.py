"""Features of images: images, masks and boxes, which are cropped, resized and flipped together."""
