"""Where credentials are found, and what requests without them are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from recordsmith.stores.network import credentials
from recordsmith.stores.network.credentials import with_credentials
from recordsmith.support.errors import OptionError

from ..raising import raises

STATIC = "aws_access_key_id = A\naws_secret_access_key = B\n"
ANONYMOUS = {"skip_signature": True}
VARIABLES = ("AWS_", "GOOGLE_", "AZURE_", "CLOUDSDK_")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, no variables, and a machine outside any cloud."""
    import os

    for name in [name for name in os.environ if name.startswith(VARIABLES)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(credentials, "_VENDOR", str(tmp_path / "vendor"))
    return tmp_path


def write(home: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


@pytest.mark.parametrize("missing", ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY"])
def test_half_a_key(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "5EC12E7"}
    value = keys.pop(missing)
    (present,) = keys
    monkeypatch.setenv(f"AWS_{present}", keys[present])
    with raises(OptionError, option="store_options", match=f"AWS_{missing} is missing"):
        with_credentials("s3://b", {})
    assert with_credentials("s3://b", {missing.lower(): value})[1] is False


@pytest.mark.parametrize(
    ("url", "files", "variables", "expected"),
    [
        ("s3://b", {}, {}, ANONYMOUS),
        ("s3://b", {}, {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B"}, {}),
        ("s3://b", {}, {"AWS_WEB_IDENTITY_TOKEN_FILE": "/x"}, {}),
        ("s3://b", {}, {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1/x"}, {}),
        ("s3://b", {"vendor": "Amazon EC2\n"}, {}, {}),
        ("s3://b", {"vendor": "Google\n"}, {}, ANONYMOUS),
        (
            "s3://b",
            {".aws/credentials": f"[default]\n{STATIC}", ".aws/config": "[default]\nregion = r\n"},
            {},
            {"aws_access_key_id": "A", "aws_secret_access_key": "B", "region": "r"},
        ),
        (
            "s3://b",
            {".aws/config": f"[profile p]\nregion=r\n{STATIC}aws_session_token = C\n"},
            {"AWS_PROFILE": "p"},
            {
                "aws_access_key_id": "A",
                "aws_secret_access_key": "B",
                "aws_session_token": "C",
                "region": "r",
            },
        ),
        ("s3://b", {"other": f"[default]\n{STATIC}"}, {"AWS_SHARED_CREDENTIALS_FILE": "other"},
         {"aws_access_key_id": "A", "aws_secret_access_key": "B"}),
        ("s3://b", {".aws/credentials": "no section\n"}, {}, ANONYMOUS),
        ("s3://b", {".aws/config": "[default]\nregion=r\n"}, {}, ANONYMOUS | {"region": "r"}),
        ("gs://b", {}, {}, ANONYMOUS),
        ("gs://b", {".config/gcloud/application_default_credentials.json": "{}"}, {}, {}),
        ("gs://b", {}, {"GOOGLE_APPLICATION_CREDENTIALS": "/x.json"}, {}),
        ("gs://b", {"vendor": "Google"}, {}, {}),
        ("az://c", {}, {"AZURE_STORAGE_ACCOUNT_NAME": "a"}, ANONYMOUS),
        ("az://c", {}, {"AZURE_STORAGE_ACCOUNT_KEY": "a"}, {}),
        ("abfs://c", {}, {"AZURE_CLIENT_SECRET": "a"}, {}),
        ("az://c", {"vendor": "Microsoft Corporation"}, {}, {}),
    ],
)  # fmt: skip
def test_where_credentials_are_found(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    files: dict[str, str],
    variables: dict[str, str],
    expected: dict[str, Any],
) -> None:
    write(home, files)
    monkeypatch.chdir(home)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found, is_anonymous = with_credentials(url, {})
    assert found == expected
    assert is_anonymous == ("skip_signature" in expected)


@pytest.mark.parametrize("name", ["region", "aws_region", "AWS_DEFAULT_REGION"])
@pytest.mark.parametrize("way", ["options", "config", "variable"])
def test_a_given_region_comes_before_that_of_the_profile(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    write(home, {".aws/config": f"[default]\nregion = r\n{STATIC}"})
    given: dict[str, Any] = {"options": {name: "o"}, "config": {"config": {name: "o"}}}.get(way, {})
    if way == "variable":
        monkeypatch.setenv(f"AWS_{name.upper().removeprefix('AWS_')}", "o")
    found, _ = with_credentials("s3://b", given)
    assert found == {"aws_access_key_id": "A", "aws_secret_access_key": "B", **given}


@pytest.mark.parametrize(
    ("url", "given"),
    [
        ("s3://b", {"access_key_id": "A", "secret_access_key": "B"}),
        ("s3://b", {"aws_access_key_id": "A", "aws_secret_access_key": "B"}),
        ("s3://b", {"config": {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B"}}),
        ("s3a://b", {"credential_provider": print}),
        ("gs://b", {"service_account": "x.json"}),
        ("az://c", {"azure_storage_sas_key": "x"}),
        ("az://c", {"use_emulator": True}),
        ("https://host", {}),
    ],
)
def test_given_credentials_are_used(home: Path, url: str, given: dict[str, Any]) -> None:
    write(home, {".aws/credentials": f"[default]\n{STATIC}"})
    assert with_credentials(url, given) == (given, False)


def test_a_profile_that_logs_in_needs_boto3(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    write(home, {".aws/config": "[default]\nsso_start_url = https://x\nregion = r\n"})
    monkeypatch.setitem(sys.modules, "obstore.auth.boto3", None)
    with raises(OptionError, option="store_options"):
        with_credentials("s3://b", {})


def test_a_missing_profile_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nope")
    with raises(OptionError, option="store_options", match="nope"):
        with_credentials("s3://b", {})
