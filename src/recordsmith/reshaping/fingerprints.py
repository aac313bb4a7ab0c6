"""A job, or what it reads, in few letters: equal for equal ones, and hardly ever for others."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def fingerprint(document: Any) -> str:
    """32 hexadecimal digits for anything that JSON can hold."""
    return fingerprint_of_bytes(json.dumps(document, sort_keys=True).encode())


def fingerprint_of_bytes(data: bytes) -> str:
    """The same for the content of a file."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
