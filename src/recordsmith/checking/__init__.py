"""Examines datasets without changing them: statistics, verification, diff and inspection.

Also reads and writes schema files.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # `__init__.pyi` has the same for type checkers
    __name__,
    {
        "class_rules": (
            "ClassCounts are_drawn_for_viewing find_imbalance find_missing_classes is_one_hot"
        ),
        "inspection": "Inspection inspect",
        "normalisation_file": "Normalisation normalisation",
        "rules": "FeatureRule",
        "schema_file": "SchemaFile schema",
        "shard_summaries": "ShardSummary",
    },
)
