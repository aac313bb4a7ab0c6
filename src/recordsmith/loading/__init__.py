"""Loads batches: order, reading, decoding, batching, prefetching, state. Independent of packing."""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # `__init__.pyi` has the same for type checkers
    __name__,
    {
        "augment.colour_jitter": "ColorJitter",
        "augment.mixing": "Cutmix Mixup",
        "augment.random_erasing": "RandomErasing",
        "entry_spec": "EntrySpec",
        "episodes.episodes": "Episodes",
        "examples": "Examples",
        "features": "Bytes Padded Position Present Ragged Raw Scalar Tensor Text",
        "features.images.boxes": "Boxes",
        "features.images.image": "Image",
        "features.images.mask": "Mask",
        "features.images.patches": "Patches",
        "features.normalising": "Normalise",
        "loader": "Loader",
        "loader_stats": "LoaderStats",
        "order.buckets": "BucketBySize",
        "order.mix": "Mix",
        "order.packed": "Packed",
        "order.shuffle": "BlockShuffle",
        "order.weighted": "Weighted",
    },
)
