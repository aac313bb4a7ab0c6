"""The features that users declare for a batch, one module for each kind.

Those of images are in `images`, which is imported when one of them is used.
"""
