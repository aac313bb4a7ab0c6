"""Examines datasets and sources without changing them, with a package for each question.

`verification`: intact? `statistics`: what is in it? `comparing`: what differs? `linting`: what is
wrong before packing? Also inspection, schema files, and statistics that training normalises with.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "comparing.difference": "diff",
        "comparing.features": "key_of",
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
