"""Check a source before packing it: images, annotations, classes, duplicates."""

from recordsmith.checking.linting.lint import lint, lint_listing
from recordsmith.checking.linting.lint_report import LintExample, LintFinding, LintReport
from recordsmith.sources.flaws import Severity

__all__ = ["LintExample", "LintFinding", "LintReport", "Severity", "lint", "lint_listing"]
