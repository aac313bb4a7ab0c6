"""Which locks may a fork copy while a thread holds them? Those get a new one in the child.

The thread that holds a lock when a process forks is not in the child, so nobody would ever release
it there. What a lock guards here is whole at any moment in which another thread can fork.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class LockOwner(Protocol):
    """Something with a lock."""

    def renew_lock(self) -> None:
        """Take a new lock, which nobody holds."""


_owners: weakref.WeakSet[LockOwner] = weakref.WeakSet()


def renew_in_children(owner: LockOwner) -> None:
    """Call `owner.renew_lock` in every process that is forked as long as it lives."""
    _owners.add(owner)


def _renew_all() -> None:
    for owner in list(_owners):
        owner.renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
