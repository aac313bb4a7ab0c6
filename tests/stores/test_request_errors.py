"""Errors of requests: what they say, and what they keep to themselves."""

from __future__ import annotations

import errno
import traceback
from contextlib import AbstractContextManager

import pytest

from recordsmith.stores.network.request_errors import (
    BrokenRequestError,
    ConditionError,
    RangeError,
    request_error,
)
from recordsmith.stores.network.web_store import WebStore
from recordsmith.support.errors import FileAccessError, ForbiddenFileError, MissingFileError

from ..servers.answering import serving

SECRETS = (
    "Error performing GET https://h/b/k?X-Amz-Signature=5EC12E7&sig=5EC12E7&key=5EC12E7 "
    "authorization: Bearer 5EC12E7 <StringToSign>5EC12E7</StringToSign> in 2ms - "
)


def answer(status: int, code: str = "") -> str:
    return (
        f"Server returned non-2xx status code: {status} Words: <Error><Code>{code}</Code>"
        "<Message>5EC12E7</Message></Error>"
    )


@pytest.mark.parametrize(
    ("text", "kind", "number"),
    [
        (answer(404, "NoSuchKey"), MissingFileError, errno.ENOENT),
        (answer(404, "NoSuchBucket"), MissingFileError, errno.ENOENT),
        (answer(404), MissingFileError, errno.ENOENT),
        (answer(403, "AccessDenied"), ForbiddenFileError, errno.EACCES),
        (answer(401), ForbiddenFileError, errno.EACCES),
        (answer(400, "ExpiredToken"), ForbiddenFileError, errno.EACCES),
        (answer(400, "AuthorizationHeaderMalformed"), FileAccessError, errno.EREMOTE),
        (answer(301, "PermanentRedirect"), FileAccessError, errno.EREMOTE),
        ("Received redirect without LOCATION, this", FileAccessError, errno.EREMOTE),
        (answer(412, "PreconditionFailed"), ConditionError, errno.ESTALE),
        (answer(416, "InvalidRange"), RangeError, errno.EINVAL),
        (answer(503, "SlowDown"), BrokenRequestError, errno.EIO),
        (answer(507), FileAccessError, errno.ENOSPC),
        (answer(507, "XMinioStorageFull"), FileAccessError, errno.ENOSPC),
        (answer(400, "XMinioAdminBucketQuotaExceeded"), FileAccessError, errno.ENOSPC),
        (answer(403, "QuotaExceeded"), FileAccessError, errno.ENOSPC),
        (answer(429), BrokenRequestError, errno.EIO),
        ("HTTP error: request or response body error: operation timed out", BrokenRequestError,
         errno.EIO),
        ("client error (Connect): tcp connect error: Connection refused", BrokenRequestError,
         errno.EIO),
        ("client error (Connect): dns error: failed to lookup", BrokenRequestError, errno.EIO),
        ("something new 5EC12E7", FileAccessError, errno.EIO),
        (answer(500, "InternalServiceName5EC12E7"), BrokenRequestError, errno.EIO),
    ],
)  # fmt: skip
def test_errors_have_a_kind_and_no_secrets(text: str, kind: type, number: int) -> None:
    error = request_error(SECRETS + text, "s3://b/k", operation="read")
    assert type(error) is kind
    assert error.errno == number
    assert error.path == "s3://b/k"
    assert "5EC12E7" not in f"{error} {error.to_json()} {error!r} {vars(error)}"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("<Code>PermanentRedirect</Code><Region>eu-west-1</Region>", "eu-west-1"),
        ("<Code>AuthorizationHeaderMalformed</Code> expecting 'us-gov-east-1'", "us-gov-east-1"),
        ("GET http://127.0.0.1:5077/b/k Connection refused", "127.0.0.1:5077"),
        ("GET https://h.example.com/b dns error", "h.example.com"),
        (answer(403, "SignatureDoesNotMatch"), "credentials are wrong"),
        (answer(403, "InvalidAccessKeyId"), "credentials are wrong"),
    ],
)
def test_what_an_answer_says(text: str, part: str) -> None:
    assert part in request_error(text, "s3://b/k", operation="read").reason


@pytest.mark.parametrize(
    "text",
    [
        "GET http://user:5EC12E7@h/b Connection refused",
        "GET http://user:5EC12E7/7@h/b Connection refused",
        "<Code>PermanentRedirect</Code><Region>5EC12E7</Region>",
    ],
)
def test_an_address_may_have_a_secret(text: str) -> None:
    assert "5EC12E7" not in str(request_error(text, "s3://b/k", operation="read"))


def test_a_request_without_credentials_says_so() -> None:
    text = answer(403, "AccessDenied")
    known = request_error(text, "s3://b/k", operation="read")
    unknown = request_error(text, "s3://b/k", operation="read", is_anonymous=True)
    assert known.reason != unknown.reason
    assert known.remedy != unknown.remedy


# -- redirected requests ---------------------------------------------------------------------------

INTERNAL = ("internalservice", "Secretcode", "aa-secret-1", "5EC12E7")
BODY = b"<Code>Secretcode</Code><Region>aa-secret-1</Region>dns error internalservice 5EC12E7"


def redirecting(status: int, location: str | None = None) -> AbstractContextManager[str]:
    """Run a server that sends the same response to all requests."""
    headers = {"Location": location, "X-Internal": "internalservice"}
    return serving(lambda request: request.answer(BODY, status, "internalservice", **headers))


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [400, 401, 403, 404, 416, 451, 500, 301,
     "http://internalservice.invalid:99/", "http://user:5EC12E7@127.0.0.1:1/", "ftp://127.0.0.1:1/"],
)  # fmt: skip
def test_what_a_redirected_response_says_is_not_shown(target: int | str) -> None:
    """It may be a service that only this machine can reach."""
    pytest.importorskip("obstore")
    with (
        redirecting(target if isinstance(target, int) else 200) as inner,
        redirecting(302, target if isinstance(target, str) else f"{inner}/5EC12E7") as url,
    ):
        options = {"retry_config": {"max_retries": 0}}
        store = WebStore(url, **options)
        hidden = (*INTERNAL, inner.rpartition(":")[2], ":1/", ":99")
        for call in (
            lambda: store.read("a"),
            lambda: store.info("a"),
            lambda: store.read("a", 2, 8),
        ):
            try:
                call()
            except FileAccessError as error:
                raised = error
            else:
                raise AssertionError
            assert str(raised.path).startswith(url)
            text = "".join(traceback.format_exception(raised))
            shown: BaseException | None = raised
            while shown is not None:
                text += f"{shown!r} {shown} {vars(shown)}"
                shown = shown.__context__
            assert [word for word in hidden if word in text] == []
