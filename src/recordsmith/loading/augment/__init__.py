"""Augments the images of batches at random: functions for the loader's maps.

Each is a dataclass that can be pickled, and is called with a batch and the generator of the loader.
Distributions are those of torchvision's `transforms.v2`, but each image has random numbers of its
own where torchvision draws once for a whole batch.
"""
