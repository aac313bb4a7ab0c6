"""Replaces locks in forked processes.

A thread that holds a lock during a fork does not exist in the child, so the lock would never be
released there. The data that these locks guard is consistent whenever another thread can fork.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class LockOwner(Protocol):
    """An object with a lock."""

    def renew_lock(self) -> None:
        """Replace the lock with a new, unlocked one."""


_owners: weakref.WeakSet[LockOwner] = weakref.WeakSet()


def renew_in_children(owner: LockOwner) -> None:
    """Call `owner.renew_lock` in every process that is forked while the owner exists."""
    _owners.add(owner)


def _renew_all() -> None:
    for owner in list(_owners):
        owner.renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
