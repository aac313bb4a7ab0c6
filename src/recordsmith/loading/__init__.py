"""Loads batches: order, reading, decoding, batching, prefetching, state. Independent of packing.

`order` says which records come when, `features` what a batch has of them, `batches` makes it in
threads, and `session` knows where the loop is.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "adapters": "RaggedParts Rank check_loader convert_entry",
        "augment.colour_jitter": "ColorJitter",
        "augment.mixing": "Cutmix Mixup",
        "augment.random_erasing": "RandomErasing",
        "batches.user_functions": "Maps",
        "entry_spec": "EntrySpec",
        "episodes.episodes": "Episodes",
        "examples": "Examples",
        "features.bytes": "Bytes Raw Text",
        "features.classes": "Label MultiHot OneHot",
        "features.declaration": "Features",
        "features.feature": "BatchRows ColumnRequest RowFeature ValueFeature",
        "features.images.boxes": "Boxes",
        "features.images.image": "Image",
        "features.images.keypoints": "Keypoints",
        "features.images.mask": "Mask",
        "features.images.patches": "Patches",
        "features.normalising": "Normalise",
        "features.numbers": "Padded Position Present Ragged Scalar Tensor",
        "features.stacking": "Stack",
        "features.serialized": "Serialized",
        "features.steps": "Steps",
        "loader": "Loader",
        "measuring.bench": "bench",
        "measuring.bench_report": "BenchReport",
        "order.buckets": "BucketBySize",
        "order.by_class": "ByClass",
        "order.mix": "Mix",
        "order.packed": "Packed",
        "order.schedule": "EpochProgress",
        "order.shuffle": "BlockShuffle",
        "order.weighted": "Weighted",
        "session": "Iteration",
        "worker_iterations": "Start",
    },
)
