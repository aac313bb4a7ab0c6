"""Finds credentials where the tools of each cloud look for them.

obstore looks in environment variables, in the files of Google's tools, and asks the machine itself,
which takes minutes to fail on a machine outside a cloud. Here are the files of AWS, and the
decision to make requests without credentials, as for public buckets.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from typing import Any

from recordsmith.stores.local.store import LocalStore
from recordsmith.support.errors import FileAccessError, OptionError, option

_MAX_BYTES = 1 << 26
_VENDOR = "/sys/class/dmi/id/sys_vendor"
_VENDORS = {"s3": "amazon", "gs": "google", "az": "microsoft"}
_CLOUDS = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    "gs": "gs",
    **dict.fromkeys(("az", "azure", "adl", "abfs", "abfss"), "az"),
}
_LOGINS = {"sso_start_url", "sso_session", "role_arn", "credential_process"}
_OWN = {  # options and variables that name credentials
    "s3": ("access_key_id", "credential_provider", "skip_signature", "web_identity_token_file",
           "container_credentials_relative_uri", "container_credentials_full_uri", "role_arn"),
    "gs": ("service_account", "service_account_key", "service_account_path", "bearer_token",
           "application_credentials", "credential_provider", "skip_signature"),
    "az": ("account_key", "client_id", "client_secret", "sas_key", "sas_token", "token",
           "bearer_token", "use_azure_cli", "msi_endpoint", "identity_endpoint", "access_key",
           "federated_token_file", "credential_provider", "skip_signature", "use_emulator"),
}  # fmt: skip
_REGIONS = {"region", "default_region", "aws_region", "aws_default_region"}
_PREFIXES = {"s3": ("aws_",), "gs": ("google_",), "az": ("azure_", "azure_storage_")}


def with_credentials(url: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return options with credentials, and whether there are none."""
    cloud = _CLOUDS.get(url.partition("://")[0])
    if cloud == "s3":
        _check_key_pair(options)
    if cloud is None or _are_given(cloud, options):
        return dict(options), bool(options.get("skip_signature"))
    profile = _aws_profile() if cloud == "s3" else {}
    given, variables = _names(options)
    if not given.isdisjoint(_REGIONS) or not variables.isdisjoint(_REGIONS):
        profile.pop("region", None)  # one for this program comes before that of the profile
    complete = {**profile, **options}
    if {"aws_access_key_id", "credential_provider"} & {*complete}:
        return complete, False
    if (cloud == "gs" and _has_google_file()) or _VENDORS[cloud] in _machine_vendor():
        return complete, False  # obstore reads the file, or asks the machine
    return {**complete, "skip_signature": True}, True


def _check_key_pair(options: Mapping[str, Any]) -> None:
    names = "access_key_id", "secret_access_key"
    given, variables = _names(options)
    is_set = [name in given or f"aws_{name}" in given | variables for name in names]
    if is_set[0] != is_set[1]:
        present, missing = (f"AWS_{names[is_set.index(one)].upper()}" for one in (True, False))
        raise OptionError(
            f"{present} is set, but {missing} is missing",
            option="store_options",
            remedy=f"Set both, as variables or in {option('store_options')}.",
        )


def _names(options: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """The names of options and of variables that are set, in small letters."""
    given = {name.lower() for name in {**options, **options.get("config", {})}}
    return given, {name.lower() for name, value in os.environ.items() if value}


def _are_given(cloud: str, options: Mapping[str, Any]) -> bool:
    given, variables = _names(options)
    prefixed = {prefix + name for prefix in _PREFIXES[cloud] for name in _OWN[cloud]}
    return not (given.isdisjoint(_OWN[cloud]) and prefixed.isdisjoint(given | variables))


def _aws_profile() -> dict[str, Any]:
    profile = os.environ.get("AWS_PROFILE") or "default"
    settings: dict[str, str] = {}
    for variable, name, section in (
        ("AWS_CONFIG_FILE", "config", "default" if profile == "default" else f"profile {profile}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile),
    ):
        path = os.environ.get(variable) or os.path.expanduser(f"~/.aws/{name}")
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(_local(path).decode())
        except (FileAccessError, ValueError, configparser.Error):
            continue
        if parser.has_section(section):
            settings |= dict(parser.items(section))
    if not settings and profile != "default":
        raise OptionError(
            f"the AWS profile {profile!r}, as AWS_PROFILE names it, does not exist",
            option="store_options",
        )
    names = ("region", "aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    options: dict[str, Any] = {name: settings[name] for name in names if name in settings}
    if "aws_access_key_id" in options or not _LOGINS & {*settings}:
        return options
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        raise OptionError(
            f"the AWS profile {profile!r} needs boto3 to log in",
            option="store_options",
            remedy='Install boto3, or run: eval "$(aws configure export-credentials --format env)"',
        ) from None
    return {**options, "credential_provider": Boto3CredentialProvider()}


def _has_google_file() -> bool:
    path = os.path.expanduser("~/.config/gcloud/application_default_credentials.json")
    return LocalStore(os.path.dirname(path)).exists(os.path.basename(path))


def _machine_vendor() -> str:
    try:
        return _local(_VENDOR).decode(errors="replace").lower()
    except FileAccessError:
        return ""


def _local(path: str) -> bytes:
    return LocalStore(os.path.dirname(path)).read(os.path.basename(path), 0, _MAX_BYTES)
