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

from recordsmith.errors import FileAccessError, OptionError
from recordsmith.stores.location import as_location
from recordsmith.stores.small_objects import read_document

_VENDOR = "/sys/class/dmi/id/sys_vendor"
_VENDORS = {"s3": "amazon", "gs": "google", "az": "microsoft"}
_OWN = {  # options and variables that say where credentials are
    "s3": ("access_key_id", "credential_provider", "skip_signature", "web_identity_token_file",
           "container_credentials_relative_uri", "container_credentials_full_uri", "role_arn"),
    "gs": ("service_account", "service_account_key", "service_account_path", "bearer_token",
           "application_credentials", "credential_provider", "skip_signature"),
    "az": ("account_key", "client_id", "client_secret", "sas_key", "sas_token", "token",
           "bearer_token", "use_azure_cli", "msi_endpoint", "identity_endpoint", "access_key",
           "federated_token_file", "credential_provider", "skip_signature", "use_emulator"),
}  # fmt: skip
_PREFIXES = {"s3": ("aws_",), "gs": ("google_",), "az": ("azure_", "azure_storage_")}


def with_credentials(url: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return options with credentials, and whether there are none.

    Raises:
        OptionError: a profile of AWS cannot be read without boto3.
    """
    scheme = url.partition("://")[0]
    scheme = {"s3a": "s3", "gcs": "gs"}.get(scheme, "az" if scheme in _AZURE else scheme)
    if scheme not in _OWN or _are_given(scheme, options):
        return dict(options), bool(options.get("skip_signature"))
    found = dict(options)
    if scheme == "s3" and (profile := _aws_profile()) is not None:
        return {**profile, **found}, False
    if scheme == "gs" and _has_google_file():
        return found, False
    if _VENDORS[scheme] in _machine_vendor():  # asks the machine itself
        return found, False
    return {**found, "skip_signature": True}, True


_AZURE = ("az", "azure", "adl", "abfs", "abfss")


def _are_given(scheme: str, options: Mapping[str, Any]) -> bool:
    given = {name.lower() for name in {**options, **options.get("config", {})}}
    given |= {name.lower() for name, value in os.environ.items() if value}
    prefixes = ("", *_PREFIXES[scheme])
    own = [name for name in options if name.lower() in _OWN[scheme]]
    return bool(own) or any(
        prefix + name in given for prefix in prefixes[1:] for name in _OWN[scheme]
    )


def _aws_profile() -> dict[str, Any] | None:
    """The credentials and the region of the user's profile; None if there is none."""
    profile = os.environ.get("AWS_PROFILE", "default")
    home = os.path.expanduser("~")
    found: dict[str, str] = {}
    for variable, name, section in (
        ("AWS_CONFIG_FILE", "config", "default" if profile == "default" else f"profile {profile}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile),
    ):
        path = os.environ.get(variable) or os.path.join(home, ".aws", name)
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(read_document(as_location(path)).decode())
        except (FileAccessError, ValueError, configparser.Error):
            continue
        if parser.has_section(section):
            found |= dict(parser.items(section))
    region = {"region": found["region"]} if "region" in found else {}
    if "aws_access_key_id" in found and "aws_secret_access_key" in found:
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        return {**region, **{name: found[name] for name in names if name in found}}
    if not {"sso_start_url", "sso_session", "role_arn", "credential_process"} & {*found}:
        return region or None if "AWS_PROFILE" in os.environ else None
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        raise OptionError(
            f"the AWS profile {profile!r} needs boto3 to log in",
            option="store_options",
            remedy='Install boto3, or run: eval "$(aws configure export-credentials --format env)"',
        ) from None
    return {**region, "credential_provider": Boto3CredentialProvider()}


def _has_google_file() -> bool:
    path = os.path.expanduser("~/.config/gcloud/application_default_credentials.json")
    return as_location(path).exists()


def _machine_vendor() -> str:
    try:
        return as_location(_VENDOR).read().decode(errors="replace").lower()
    except FileAccessError:
        return ""
