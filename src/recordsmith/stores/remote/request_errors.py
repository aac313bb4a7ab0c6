"""Errors of requests, with texts of our own, which have no credentials.

Servers repeat signatures and tokens in their responses, so only the status and the error code of a
response are shown.
"""

from __future__ import annotations

import errno
import re

from recordsmith.errors import FileAccessError, ForbiddenFileError, MissingFileError
from recordsmith.stores.checks import missing_error

_STATUS = re.compile(r"\b(?:status(?: code)?:?|Server returned non-2xx status code:) (\d{3})\b")
_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")

_EXPIRED = {"ExpiredToken", "RequestExpired", "TokenRefreshRequired", "ExpiredAuthenticationToken"}
_WRONG_KEYS = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthenticationFailed"}
_WRONG_REGION = {"PermanentRedirect", "AuthorizationHeaderMalformed"}

_CONDITIONS = (  # of the transport: part of the message of a library, and ours
    ("dns error", "the name of the server is unknown"),
    ("Connection refused", "the server refused the connection"),
    ("Connection reset", "the connection broke"),
    ("connection closed", "the connection broke"),
    ("timed out", "the server did not respond in time"),
    ("certificate", "the certificate of the server is not trusted"),
    ("tcp connect error", "the server cannot be reached"),
    ("body error", "the connection broke in the middle of the data"),
    ("error decoding response body", "the connection broke in the middle of the data"),
    ("error sending request", "the connection broke"),
    ("invalid list response", "the list that the server sent is incomplete"),
    ("Content-Range", "the server sent another range than requested"),
    ("partial response", "the server sent another range than requested"),
)
_RETRIED_STATUS = {408, 429, 500, 502, 503, 504}


class ConditionError(FileAccessError):
    """The object does not have the version that a request demands."""


class RangeError(FileAccessError):
    """A range begins at or behind the end of an object."""


class NoRangesError(RangeError):
    """The server sends only whole objects."""


class BrokenRequestError(FileAccessError):
    """A request failed in a way that may pass."""


def request_error(
    text: str, name: str, *, operation: str, is_anonymous: bool = False
) -> FileAccessError:
    """Return the error for a request that failed.

    Args:
        text: the message of the library.
        name: of the object.
        is_anonymous: whether no credentials were found.
    """
    status = int(found[1]) if (found := _STATUS.search(text)) else None
    code = found[1] if (found := _CODE.search(text)) else ""
    shown = " ".join(filter(None, [f"status {status}" if status else "", code]))
    if status == 404 or code in ("NoSuchKey", "NoSuchBucket", "ContainerNotFound"):
        error: FileAccessError = missing_error(name)
        if code in ("NoSuchBucket", "ContainerNotFound"):
            error = MissingFileError(
                errno.ENOENT, f"the bucket does not exist ({code})", name, operation=operation
            )
        return error
    if "Range request not supported" in text:
        return NoRangesError(
            errno.ENOTSUP, "the server sends only whole files", name, operation=operation,
            remedy="Use a server that supports range requests, such as nginx or Apache.",
        )  # fmt: skip
    if status == 416 or code == "InvalidRange" or "StartTooLarge" in text:
        return RangeError(errno.EINVAL, "the range lies behind the end", name, operation=operation)
    if status == 412:
        return ConditionError(errno.ESTALE, "it was replaced", name, operation=operation)
    if code in _WRONG_REGION or status in (301, 307) or "redirect without LOCATION" in text:
        return FileAccessError(
            errno.EREMOTE, f"the bucket is in another region ({shown or 'redirected'})", name,
            operation=operation,
            remedy="Pass its region as store_options={'region': …}, or set AWS_REGION.",
        )  # fmt: skip
    if status in (401, 403) or code in _EXPIRED | _WRONG_KEYS:
        return _forbidden(name, shown, code, operation, is_anonymous)
    for words, condition in _CONDITIONS:
        if words.lower() in text.lower():
            return BrokenRequestError(errno.EIO, condition, name, operation=operation)
    if status in _RETRIED_STATUS:
        return BrokenRequestError(
            errno.EIO, f"the server failed ({shown})", name, operation=operation
        )
    return FileAccessError(
        errno.EIO, f"the request failed ({shown or 'no response'})", name, operation=operation
    )


def _forbidden(
    name: str, shown: str, code: str, operation: str, is_anonymous: bool
) -> ForbiddenFileError:
    reason, remedy = "access was denied", "Check that these credentials may do this."
    if code in _EXPIRED:
        reason, remedy = "the credentials have expired", "Log in again."
    elif is_anonymous:
        reason = "access was denied to a request without credentials"
        remedy = (
            "Log in with the tools of the cloud, set the variables in which they look for "
            "credentials, or pass store_options."
        )
    return ForbiddenFileError(
        errno.EACCES, f"{reason} ({shown})", name, operation=operation, remedy=remedy
    )
