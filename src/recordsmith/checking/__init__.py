"""Examines datasets without changing them: statistics, verification, diff and inspection.

Also reads and writes schema files.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "comparing.difference": "diff",
        "inspection": "Inspection inspect",
        "linting.lint": "lint lint_listing",
        "linting.lint_report": "LintExample LintReport",
        "linting.sample_images": "boxes_of image_in",
        "normalisation_file": "NORMALISATION_NAME Normalisation is_current normalisation",
        "schema_file": "schema",
        "shard_summaries": "PAYLOADS",
        "statistics.class_counts": "LabelCounter",
        "statistics.sampling": "Hashes ValueSample hash_positions",
        "statistics.stats_report": "stats",
        "verification.dataset_check": "verify",
        "verification.image_check": "check_example_images",
        "verification.manifest_check": "check_labels",
        "verification.verify_report": "VerifyReport",
    },
)
