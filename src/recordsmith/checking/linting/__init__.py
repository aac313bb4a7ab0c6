"""Check a source before packing it: images, annotations, classes, duplicates."""
