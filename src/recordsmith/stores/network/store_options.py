"""Options of stores: those that are passed, those of the process, and which of them are wrong.

Variables have the options of a process, which its worker processes inherit; the command line sets
them. No error shows the value of an option, which may be secret.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from recordsmith.support.errors import OptionError, option
from recordsmith.support.words import parse_size

STORE_OPTIONS = "RECORDSMITH_STORE_OPTIONS"
CACHE = "RECORDSMITH_CACHE"
CACHE_BYTES = "RECORDSMITH_CACHE_BYTES"

DEFAULT_CACHE_BYTES = 10 << 30
_MAX_BYTES = (1 << 63) - 1

_GROUPS = ("client_options", "retry_config", "config")
_ENDPOINTS = re.compile(r"(aws_|azure_|azure_storage_|google_)?(endpoint(_url)?|base_url)")
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ADDRESS = re.compile(r"[a-z0-9]+://[^/]")


class Settings(NamedTuple):
    """The values of the variables of this process."""

    store_options: Mapping[str, Any]
    cache: str | None
    cache_bytes: int


def read_settings() -> Settings:
    """Read the variables."""
    size = os.environ.get(CACHE_BYTES) or str(DEFAULT_CACHE_BYTES)
    size_bytes = parse_size(size) or 0
    if not 0 < size_bytes <= _MAX_BYTES:
        raise OptionError(
            f"the variable {CACHE_BYTES} is invalid",
            value=size,
            expected="a size such as 256MB or 1GiB",
        )
    options = os.environ.get(STORE_OPTIONS)
    return Settings(
        parse_store_options(options, f"the variable {STORE_OPTIONS} is invalid") if options else {},
        os.environ.get(CACHE) or None,
        size_bytes,
    )


def parse_store_options(text: str, problem: str = "") -> dict[str, Any]:
    """Parse the options of stores, which may be secret, so no error shows them."""
    try:
        options = json.loads(text)
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict):
        raise OptionError(
            problem,
            option="store_options",
            expected='a JSON object such as {"region": "eu-west-1"} or '
            '{"s3://bucket": {"region": "eu-west-1"}}',
        )
    return options


def options_for(url: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a URL; those below a URL apply to what begins with it."""
    return _options_below(options, _names_for(url, options))


class PassedOptions(NamedTuple):
    """The options of a store that its user passed, without those of the process.

    names: the URLs below which options of the process apply to the store; None: no options of the
        process do.
    """

    options: Mapping[str, Any]
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, url: str, options: Mapping[str, Any]) -> PassedOptions:
        """Make it from the options that were passed with a URL; raises as `options_for`."""
        names = _names_for(url, read_settings().store_options)
        return cls(options_for(url, options), names)

    def complete(self) -> dict[str, Any]:
        """Return all options, with those that this process has."""
        if self.names is None:
            return dict(self.options)
        of_process = _options_below(read_settings().store_options, self.names)
        return {**of_process, **self.options}


def _names_for(url: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of options that are URLs with which another URL begins."""
    if not all(isinstance(name, str) for name in options):
        raise OptionError(option="store_options", expected="names that are texts")
    folders = {
        name: name if name.endswith("/") else f"{name}/" for name in options if "://" in name
    }
    return tuple(sorted(name for name, folder in folders.items() if f"{url}/".startswith(folder)))


def _options_below(options: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the options that are below no URL or below these; longer URLs override."""
    for prefix, below in options.items():
        if "://" in prefix and not isinstance(below, Mapping):
            raise OptionError(
                f"the options of {prefix} are a {type(below).__name__}",
                option="store_options",
                expected="an object",
            )
    applying = {name: value for name, value in options.items() if "://" not in name}
    for name in names:
        applying |= options.get(name, {})
    return applying


# -- invalid URLs and options ----------------------------------------------------------------------


def split_url(url: str) -> SplitResult:
    """Check and split a URL of a store that takes options."""
    try:
        parts = urlsplit(url)
        is_valid = not _CONTROL.search(url) and parts.port != 0  # reads the port
    except ValueError:
        is_valid = False
    if not is_valid:  # it may contain credentials
        raise OptionError("the URL is invalid", expected="a URL such as s3://bucket/folder")
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    is_web = parts.scheme in ("http", "https")
    if parts.password or (is_web and (parts.username or parts.query)):
        raise OptionError(
            f"the URL {shown} contains credentials or a query, which would appear in messages and "
            "files",
            remedy="Pass them with recordsmith.remote(url, store_options=…), such as "
            "{'client_options': {'default_headers': {'Authorization': …}}}.",
        )
    if parts.scheme in ("file", "local"):
        raise OptionError(
            f"{shown} is a local file", value=shown, remedy=f"Pass its path: {unquote(parts.path)}"
        )
    return parts


def check_groups(options: Mapping[str, Any]) -> None:
    """Check where options are."""
    for name in _GROUPS:
        if not isinstance(options.get(name, {}), Mapping):
            raise OptionError(
                f"the option {name} of {option('store_options')} is invalid",
                option="store_options",
                expected="a dict of options",
            )


def check_endpoint(url: str, options: Mapping[str, Any]) -> str:
    """Return the address of the server."""
    name, address = "", url
    if url.startswith(("s3://", "s3a://")):
        for variable in _ENDPOINT_VARIABLES:
            if value := os.environ.get(variable):
                name, address = f"the variable {variable}", value
                break
    for option_name, value in {**options.get("config", {}), **options}.items():
        if value is not None and _ENDPOINTS.fullmatch(option_name.lower()):
            name, address = f"the option {option_name} of {option('store_options')}", value
    if not (isinstance(address, str) and _ADDRESS.match(address)):
        raise OptionError(
            f"{name} is not an address", option="store_options",
            expected="a URL such as http://127.0.0.1:9000",
        )  # fmt: skip
    return address


def store_options_error(url: str, options: Mapping[str, Any], error: BaseException) -> OptionError:
    """Return the error for options that the library refuses, whose text can have values."""
    names = ", ".join(sorted(options)) or "of its variables"
    return OptionError(
        f"{url} cannot be opened with the options {names} ({type(error).__name__})",
        option="store_options",
        value=sorted(options),
        remedy="Check their names and values: they are those of obstore.store.from_url, such as "
        "region, endpoint, client_options and retry_config.",
    )
