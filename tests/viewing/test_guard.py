"""Who may ask the viewer, and what the headers of its responses allow."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

from .conftest import Client, httpx, write


@pytest.fixture
def client(open_viewer: Any, tmp_path: Path) -> Client:
    opened: Client = open_viewer(
        write(tmp_path / "a.tfrecord", [{"id": 1}]), allow_host="hub.example.org:8000"
    )
    return opened


def test_nothing_is_answered_without_the_token(client: Client) -> None:
    for path in ("", "page/app.js", "api/dataset", "api/image/0", "report/stats", "t/x/"):
        assert httpx.get(f"{client.address}{path}").status_code == 401
    for token in ("", "0" * 32, "é"):
        assert httpx.get(client.address, params={"token": token}).status_code == 401
    cookies = {f"recordsmith-viewer-{client.host.rpartition(':')[2]}": "0" * 32}
    assert httpx.get(client.address, cookies=cookies).status_code == 401


def test_nothing_is_answered_outside_its_path(client: Client) -> None:
    other = client.path[:-1] + ("1" if client.path.endswith("0") else "0")
    for path in ("/", f"/{client.path}", f"/{other}/", "/api/dataset", f"/{client.path.upper()}x/"):
        for query in ({}, {"token": client.token}):
            headers = {"Cookie": own_cookie(client)}
            answer = httpx.get(f"http://{client.host}{path}", params=query, headers=headers)
            assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


def test_the_token_becomes_a_cookie_of_its_path(client: Client) -> None:
    answer = httpx.get(client.viewer.url)
    # a redirect that a file or another page began would not have the cookie
    assert (answer.status_code, answer.headers["refresh"]) == (200, "0;url=./")
    attributes = answer.headers["set-cookie"].split("; ")[1:]
    assert {*attributes} == {"HttpOnly", "SameSite=Strict", f"Path=/{client.path}/"}


def own_cookie(client: Client) -> str:
    return f"recordsmith-viewer-{client.host.rpartition(':')[2]}={client.token}"


@pytest.mark.parametrize("other", ['state={"a":1}', "a b=c[]", "\x01", "=;;", "é=\xff"])
def test_cookies_of_other_servers_of_this_machine_do_not_matter(client: Client, other: str) -> None:
    own = own_cookie(client)
    for cookies in (f"{other}; {own}", f"{own};{other}"):
        headers = {"Cookie": cookies.encode("latin-1")}
        assert httpx.get(f"{client.address}api/dataset", headers=headers).status_code == 200


def test_only_a_notebook_shows_the_viewer_in_a_frame(client: Client) -> None:
    framed = f"http://{client.host}/t/{client.token}/api/dataset"
    assert httpx.get(framed).status_code == 401
    assert f'src="http://{client.host}/t/{client.token}/"' in client.viewer._repr_html_()
    answers = [httpx.get(framed), client.get("/api/dataset"), httpx.get(client.address)]
    assert answers[0].json()["record_count"] == 1
    frames = [frame_rules(answer) for answer in answers]
    assert frames == [
        ("'self' http://localhost:* http://127.0.0.1:*", None),
        ("'self'", "SAMEORIGIN"),
        ("'none'", "DENY"),
    ]


def frame_rules(answer: Any) -> tuple[str, str | None]:
    policy = answer.headers["content-security-policy"]
    return policy.partition("frame-ancestors ")[2], answer.headers.get("x-frame-options")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "hub.example.org:8000"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Origin": "http://HOST"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_hosts_and_origins(client: Client, headers: dict[str, str], status: int) -> None:
    sent = {name: value.replace("HOST", client.host) for name, value in headers.items()}
    answer = httpx.get(client.viewer.url, headers=sent)
    assert answer.status_code == status


def test_only_reading_methods(client: Client) -> None:
    for method in ("POST", "PUT", "PATCH", "OPTIONS"):
        assert client.http.request(method, "/api/dataset").status_code == 405
    assert client.http.delete("/api/dataset").status_code == 405


def test_headers_forbid_everything_but_the_page(client: Client) -> None:
    for path in ("/", "/api/dataset", "/api/record/9", "/nothing"):
        headers = client.get(path).headers
        policy = dict(
            part.strip().partition(" ")[::2]
            for part in headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == "'self'"
        assert policy["connect-src"] == "'self'"
        assert "evil" not in policy["frame-ancestors"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_only_files_of_the_page_are_served(client: Client) -> None:
    names = ("..%2fguard.py", "%2e%2e", "", "x.js", "a/b.js", "a" * 300 + ".js", "a" * 300)
    for name in (*names, "app%00.js", "%00", "%2fetc%2fpasswd", "app.js%2f", "%ff.js", "."):
        answer = client.get(f"/page/{name}")
        assert (answer.status_code, "Traceback" in answer.text) == (404, False), name


@pytest.mark.parametrize(
    "options",
    [
        {"host": "0.0.0.0"},
        {"token": "short"},
        {"token": "with a space and more than 16"},
        {"port": 70_000},
        {"host": "999.1.1.1", "token": "a" * 16},
        {"host": "é..", "token": "a" * 16},
        {"host": "\0", "token": "a" * 16},
    ],
)
def test_invalid_addresses(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(rs.OptionError) as caught:
        rs.view(write(tmp_path / "a.tfrecord", [{"id": 1}]), **options)
    assert caught.value.option in ("token", "port")


@pytest.mark.parametrize("at", [-1, [2, -1], 2**70, [2**70], 2.5, "x", [None]])
def test_invalid_positions(tmp_path: Path, at: Any) -> None:
    with pytest.raises(rs.OptionError) as caught:
        rs.view(write(tmp_path / "a.tfrecord", [{"id": 1}]), at=at)
    assert caught.value.option == "at"


def test_an_invalid_condition(tmp_path: Path) -> None:
    with pytest.raises(rs.OptionError, match="expected a number, or text in quotes"):
        rs.view(write(tmp_path / "a.tfrecord", [{"id": 1}]), where="id ==")


def test_a_port_in_use_leaves_nothing_running(client: Client, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(30):
        write(tmp_path / "many" / f"a-{number:05}-of-00030.tfrecord", [{"id": 1}])
    before = {*threading.enumerate()}
    with pytest.raises(rs.OptionError):
        rs.view(tmp_path / "many", port=int(client.host.rpartition(":")[2]))
    assert not {*threading.enumerate()} - before
