"""Whether a cluster responds, before its own library tries to connect for a minute or more."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from recordsmith.errors import OptionError

_SECONDS = 10  # a machine of the same network takes milliseconds


def check_reachable(engine: str, address: str) -> None:
    """Check that a program accepts connections at an address.

    Args:
        engine: its name, for messages.
        address: `host:port`, also with a scheme; with commas if there are several, of which one
            must respond.

    Raises:
        OptionError: none does, or the address is invalid.
    """
    reasons = [_why_not(one) for one in address.rpartition("://")[2].split(",")]
    if all(reasons):
        raise OptionError(
            f"no cluster responds: {'; '.join(map(str, reasons))}",
            option="engine",
            value=f"{engine}:{address}",
            expected=f"a host and a port, as in {engine}:10.0.0.1:1234",
        )


def _why_not(address: str) -> str | None:
    """Return why nothing can connect to `host:port`; None if it can."""
    try:
        parts = urlsplit(f"//{address}")
        if not parts.hostname or not parts.port:
            return f"{address} lacks a host or a port"
        socket.create_connection((parts.hostname, parts.port), _SECONDS).close()
    except (OSError, ValueError) as error:
        return f"{address}: {error}"
    return None
