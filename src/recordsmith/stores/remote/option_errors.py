"""Errors in the options of stores: which one is wrong, without its value, which may be secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from recordsmith.errors import OptionError, option

_GROUPS = ("client_options", "retry_config", "config")
_ENDPOINTS = re.compile(r"(aws_|azure_|azure_storage_|google_)?(endpoint(_url)?|base_url)")
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_ADDRESS = re.compile(r"[a-z0-9]+://[^/]")

_UNKNOWN = re.compile(r"Configuration key: '([^']+)' is not valid|Invalid key: (\w+)")
_UNPARSED = re.compile(r'failed to parse "([^"]*)"')
_WRONG_TYPE = re.compile(r"'(\w+)' object")
_CLIENT_NAMES = {
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type",
    "default_headers", "http1_only", "http2_only", "pool_idle_timeout", "pool_max_idle_per_host",
    "proxy_url", "read_timeout", "timeout", "user_agent",
}  # fmt: skip


def check_groups(options: Mapping[str, Any]) -> None:
    """Check where options are.

    Raises:
        OptionError: a group of options is not a dict, or an option belongs to a group.
    """
    for name in _GROUPS:
        if not isinstance(options.get(name, {}), Mapping):
            raise _invalid(name, "a dict of options")
    for name in sorted(_CLIENT_NAMES & {*options}):
        raise OptionError(
            f"the option {name} of {option('store_options')} belongs to 'client_options'",
            option="store_options",
            remedy=f"Pass {{'client_options': {{'{name}': …}}}}.",
        )


def check_endpoint(url: str, options: Mapping[str, Any]) -> str:
    """Return the address of the server.

    Raises:
        OptionError: it has no scheme or no host.
    """
    name, address = "", url
    if url.startswith(("s3://", "s3a://")):
        for variable in _ENDPOINT_VARIABLES:
            if value := os.environ.get(variable):
                name, address = f"the variable {variable}", value
                break
    for one, value in {**options.get("config", {}), **options}.items():
        if value is not None and _ENDPOINTS.fullmatch(one.lower()):
            name, address = f"the option {one} of {option('store_options')}", value
    if not (isinstance(address, str) and _ADDRESS.match(address)):
        raise OptionError(
            f"{name} is not an address", option="store_options",
            expected="a URL such as http://127.0.0.1:9000",
        )  # fmt: skip
    return address


def store_options_error(url: str, options: Mapping[str, Any], error: BaseException) -> OptionError:
    """Return the error for options that the library refuses.

    Its text can have values, so only names of options are taken from it.
    """
    text = str(error)
    leaves = dict(_leaves(options))
    if (found := _UNKNOWN.search(text)) and (name := found[1] or found[2]) in leaves:
        return OptionError(
            f"the option {name} of {option('store_options')} is unknown for {url}",
            option="store_options",
            remedy="The options are those of obstore.store.from_url.",
        )
    names: list[str] = []
    if found := _UNPARSED.search(text):
        names = [name for name, value in leaves.items() if str(value) == found[1]]
    elif found := _WRONG_TYPE.search(text):
        names = [name for name, value in leaves.items() if type(value).__name__ == found[1]]
    if len(names) == 1:
        return _invalid(names[0], "a value as obstore.store.from_url takes it")
    return OptionError(
        f"{url} cannot be opened with these options ({type(error).__name__})",
        option="store_options",
        value=sorted(options),
        remedy="Check their names and values: they are those of obstore.store.from_url.",
    )


def _invalid(name: str, expected: str) -> OptionError:
    return OptionError(
        f"the option {name} of {option('store_options')} is invalid",
        option="store_options",
        expected=expected,
    )


def _leaves(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        if name in _GROUPS and isinstance(value, Mapping):
            yield from value.items()
        else:
            yield name, value
