"""`recordsmith version`."""

from __future__ import annotations

import recordsmith


def version() -> None:
    """Print the version.

    Example: `recordsmith version`
    """
    print_version()


def print_version() -> None:
    """Print the name and the version of this package."""
    print(f"recordsmith {recordsmith.__version__}")
