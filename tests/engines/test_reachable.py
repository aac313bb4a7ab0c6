"""Addresses of clusters are tried before the clusters' own libraries wait for them."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

import recordsmith as rs
from recordsmith.engines.cluster import check_reachable

from ..raising import raises


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """A port on which a program listens, and one without."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield server.getsockname()[1], bound.getsockname()[1]


@pytest.mark.parametrize("form", ["{}:{}", "tcp://{}:{}", "x://{}:{}"])
def test_whether_a_program_listens(form: str, ports: tuple[int, int]) -> None:
    listening, closed = (form.format("127.0.0.1", port) for port in ports)
    check_reachable("ray", listening)
    check_reachable("ray", f"{closed},{listening.rpartition('/')[2]}")
    with raises(rs.OptionError, option="engine", value=f"ray:{closed}"):
        check_reachable("ray", closed)


@pytest.mark.parametrize(
    "address",
    ["", "x", "127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:x", "a:1:2", "[::1", "a:99999"],
)
def test_what_is_no_address(address: str) -> None:
    with raises(rs.OptionError, option="engine", value=f"ray:{address}"):
        check_reachable("ray", address)
