"""What `pack` does with the checks that run before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from recordsmith.errors import OptionError, Problems, SourceError, option
from recordsmith.linting import LintReport, Severity, lint_listing
from recordsmith.sources import Listing
from recordsmith.words import count
from recordsmith.work import Work

LintPolicy: TypeAlias = Literal["off", "warn", "strict"] | Callable[[LintReport], None]
"""No checks; findings in the report; errors and warnings are refused; or a function that is called
with the findings."""


def check_lint_policy(lint: object) -> None:
    """Check the option `lint` of `pack`.

    Raises:
        OptionError: the value is invalid.
    """
    if lint not in ("off", "warn", "strict") and not callable(lint):
        raise OptionError(option="lint", value=lint, expected="'off', 'warn' or 'strict'")


def lint_before_packing(listing: Listing, lint: LintPolicy) -> LintReport | None:
    """Run the cheap checks; None if they are off.

    Raises:
        SourceError: the policy is strict, and there are errors or warnings.
    """
    if lint == "off":
        return None
    report = lint_listing(listing, Work(1, None), deep=False)
    if callable(lint):
        lint(report)
    elif lint == "strict" and not report.is_clean:
        raise _refused(report)
    return report


def _refused(report: LintReport) -> SourceError:
    problems = Problems()
    for found in report.findings:
        if found.severity is not Severity.NOTE:
            lines = (
                f"{found.severity}: {found.check}: {each.describe()}" for each in found.examples
            )
            problems.extend(list(lines), found.count)
    counts = f"{count(report.error_count, 'error')} and {count(report.warning_count, 'warning')}"
    return SourceError(
        f"the source has {counts}, so nothing was packed",
        problems,
        remedy=f"Fix them, or pack with {option('lint', 'warn')}:",
        lists_problems=True,
    )
