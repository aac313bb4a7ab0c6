"""Errors of requests, with texts of our own, which have no credentials.

Servers repeat signatures and tokens in their responses, and a server can redirect a request to an
internal service. So only the status of a response is shown, and its error code if it is a known
one.
"""

from __future__ import annotations

import errno
import re

from recordsmith.stores.checks import missing_error
from recordsmith.support.errors import FileAccessError, ForbiddenFileError, MissingFileError, option

_STATUS = re.compile(r"\b(?:status(?: code)?:?|Server returned non-2xx status code:) (\d{3})\b")
_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")

_HOST = re.compile(r"https?://([A-Za-z0-9.\[\]-]+(?::\d{1,5})?)(?=[/?\s)]|$)(?!\S*@)")
_REGION = re.compile(
    r"(?:<Region>|expecting ')([a-z]{2}(?:-[a-z]{2,10}){1,3}-\d{1,2})(?:</Region>|')"
)

_EXPIRED = {"ExpiredToken", "RequestExpired", "TokenRefreshRequired", "ExpiredAuthenticationToken"}
_WRONG_KEYS = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthenticationFailed"}
_WRONG_REGION = {"PermanentRedirect", "AuthorizationHeaderMalformed"}
_FULL = {"QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "XMinioStorageFull"}
_SHOWN = _EXPIRED | _WRONG_KEYS | _WRONG_REGION | _FULL | {
    "AccessDenied", "AccountProblem", "AllAccessDisabled", "AuthorizationFailure",
    "ContainerNotFound", "EntityTooLarge", "InternalError", "InvalidArgument", "InvalidBucketName",
    "InvalidObjectState", "InvalidPart", "InvalidRange", "InvalidRequest", "InvalidTag",
    "KeyTooLongError", "MethodNotAllowed", "NoSuchBucket", "NoSuchKey", "NoSuchUpload",
    "NotImplemented", "OperationAborted", "PreconditionFailed", "RequestTimeTooSkewed",
    "RequestTimeout", "ServerBusy", "ServiceUnavailable", "SlowDown", "TooManyRequests",
}  # fmt: skip

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
_WITH_HOST = {
    "the name of the server is unknown",
    "the server refused the connection",
    "the server cannot be reached",
}
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
    """Return the error for a request that failed."""
    status = int(match[1]) if (match := _STATUS.search(text)) else None
    code = match[1] if (match := _CODE.search(text)) and match[1] in _SHOWN else ""
    shown = " ".join(filter(None, [f"status {status}" if status else "", code]))
    if code in ("NoSuchBucket", "ContainerNotFound"):
        return MissingFileError(
            errno.ENOENT, f"the bucket does not exist ({code})", name, operation=operation
        )
    if status == 404 or code == "NoSuchKey":
        return missing_error(name)
    if "Range request not supported" in text:
        return NoRangesError(
            errno.ENOTSUP, "the server sends only whole files", name, operation=operation,
            remedy="Use a server that supports range requests, such as nginx or Apache.",
        )  # fmt: skip
    if status == 416 or code == "InvalidRange" or "StartTooLarge" in text:
        return RangeError(errno.EINVAL, "the range lies behind the end", name, operation=operation)
    if status == 412:
        return ConditionError(errno.ESTALE, "it was replaced", name, operation=operation)
    if name.startswith("http") and "redirect without LOCATION" in text:
        return FileAccessError(
            errno.EREMOTE, "the server redirects to no address", name, operation=operation
        )
    if code in _WRONG_REGION or status in (301, 307) or "redirect without LOCATION" in text:
        region = match[1] if (match := _REGION.search(text)) else ""
        shown_region = region or "…"
        where = f"in the region {region}" if region else "in another region"
        return FileAccessError(
            errno.EREMOTE, f"the bucket is {where} ({shown or 'redirected'})", name,
            operation=operation,
            remedy=f"Set AWS_REGION{f'={region}' if region else ' to it'}, or pass "
            f'{{"region": "{shown_region}"}} as {option("store_options")}.',
        )  # fmt: skip
    if status == 507 or code in _FULL:
        return FileAccessError(
            errno.ENOSPC, f"the server has no space left for it ({shown})", name,
            operation=operation,
            remedy="Free some space or raise the quota, or choose another bucket.",
        )  # fmt: skip
    if status in (401, 403) or code in _EXPIRED | _WRONG_KEYS:
        return _forbidden(name, shown, code, operation, is_anonymous)
    for words, condition in _CONDITIONS if status is None else ():
        if words.lower() in text.lower():
            host = _HOST.search(text) if condition in _WITH_HOST else None
            reason = f"{condition} ({host[1]})" if host else condition
            return BrokenRequestError(errno.EIO, reason, name, operation=operation)
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
    elif code in _WRONG_KEYS:
        reason, remedy = "the credentials are wrong", "Check the key and its secret."
    elif is_anonymous:
        reason = "access was denied to a request without credentials"
        remedy = (
            "Log in with the tools of the cloud, set the variables in which they look for "
            f"credentials, or pass {option('store_options')}."
        )
    return ForbiddenFileError(
        errno.EACCES, f"{reason} ({shown})", name, operation=operation, remedy=remedy
    )
