"""What stores and file systems say, as they said it, and who can help."""

import errno
import os
import socket
import ssl
import time

import pytest

from airflow_provider_streams.errors import CredentialsExpired, SinkError, StorageFull, TableUnavailable
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.storage_errors import failure_of, have_expired, plain
from airflow_provider_streams.lake.write_probe import write_probe
from tests.unit.read_only import read_only

S3 = "When initiating multiple part upload for key 'x' in bucket 'lake': AWS Error"
EXPIRED = (
    f"{S3} UNKNOWN (HTTP status 400) during CreateMultipartUpload operation: Unable to parse ExceptionName: "
    "ExpiredToken Message: The provided token has expired. (Request ID: 1)"
)
UNKNOWN_KEY = f"{S3} INVALID_ACCESS_KEY_ID during CreateMultipartUpload operation: The access key ID you provided .."
SILENT = "AWS Error ACCESS_DENIED during HeadObject operation: No response body."
EXPIRED_SILENT = "AWS Error UNKNOWN (HTTP status 400) during HeadObject operation: No response body."


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (f"{S3} SLOW_DOWN during PutObject operation", TableUnavailable),
        (
            f"{S3} NETWORK_CONNECTION during PutObject operation: curlCode: 7, Couldn't connect",
            TableUnavailable,
        ),
        (EXPIRED, SinkError),
        (UNKNOWN_KEY, SinkError),
        (SILENT, SinkError),
        (f"{S3} ACCESS_DENIED during CreateMultipartUpload operation: Access Denied.", SinkError),
        (f"{S3} NETWORK_CONNECTION: curlCode: 60, SSL peer certificate or SSH remote key was not OK", SinkError),
        ("Generic S3 error .. client error (Connect) invalid peer certificate UnknownIssuer", SinkError),
        ("Azure Error: [ContainerNotFound] 404 The specified container does not exist.", SinkError),
        ("Azure Error: [AuthorizationFailure] 403 Server failed to authenticate the request.", SinkError),
        ("google::cloud::Status(PERMISSION_DENIED: Permanent error)", SinkError),
        ("google::cloud::Status(UNAVAILABLE: Retry policy exhausted)", TableUnavailable),
    ],
)
def test_waiting_helps_where_a_store_fails_and_not_where_it_refuses(words, kind):
    assert type(failure_of("s3://lake/orders", words, OSError(words))) is kind


@pytest.mark.parametrize(
    "words",
    [
        "PutBlob failed. Unexpected format in HTTP response. Expecting: 13, but found: 51",
        f"{S3} NETWORK_CONNECTION during GetObject operation: curlCode: 8, Weird server reply",
        "Generic MicrosoftAzure error: HTTP error: error decoding response body",
        "JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    ],
)
def test_an_answer_that_cannot_be_read_is_asked_for_again(words):
    found = failure_of("abfss://lake@shop.dfs/orders", words, OSError(words))
    assert type(found) is TableUnavailable
    assert found.retryable
    assert "the answer could not be read" in str(found)
    denied = "AWS Error ACCESS_DENIED during GetObject operation: Unable to parse ExceptionName: X Message: denied"
    assert type(failure_of("s3://lake/orders", denied, OSError(denied))) is SinkError


XML = (
    'Server returned non-2xx status code 403 Forbidden: <?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>'
    "{}</Code><Message>The one you &lt;gave&gt;\n is not.</Message><Resource>/lake/x</Resource><RequestId>18EA"
    "</RequestId></Error>\n\nin a call"
)


@pytest.mark.parametrize(
    ("code", "help_"), [("InvalidAccessKeyId", "the keys are right"), ("NoSuchBucket", "make it at the store")]
)
def test_a_stores_document_gives_its_code_its_message_and_the_help(code, help_):
    words = f"the store fails: {XML.format(code)}"
    found = failure_of("s3://lake/orders", words, OSError(words))
    assert type(found) is SinkError
    assert str(found).startswith(
        "s3://lake/orders: the store fails: Server returned non-2xx status code 403 Forbidden: "
        f"({code}: The one you <gave> is not.) in a call: "
    )
    assert help_ in str(found)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("plain\n words", "plain words"),
        (
            "502: <html><head><title>502 Bad Gateway</title></head><body>..</body></html> at /x",
            "502: (502 Bad Gateway) at /x",
        ),
        ("400 <!DOCTYPE html><p>no", "400 (and nothing that people can read)"),
        ("<?xml version='1.0'?><Error><Code>SlowDown</Code><Mess", "(SlowDown)"),
    ],
)
def test_documents_are_no_words(words, said):
    assert plain(words) == said


@pytest.mark.parametrize("words", [EXPIRED, UNKNOWN_KEY, SILENT, EXPIRED_SILENT])
def test_vended_credentials_are_vended_again(words):
    found = failure_of("s3://lake/orders", words, OSError(words), uses_vended_credentials=True)
    assert type(found) is CredentialsExpired
    assert found.retryable
    denied = f"{S3} ACCESS_DENIED during CreateMultipartUpload operation: Access Denied."
    assert type(failure_of("s3://lake/orders", denied, OSError(denied), uses_vended_credentials=True)) is SinkError


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        *((one, StorageFull) for one in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)),
        *((one, TableUnavailable) for one in (errno.EIO, errno.ESTALE, errno.ETIMEDOUT)),
        *((one, SinkError) for one in (errno.EACCES, errno.EROFS, errno.ENOENT, errno.ENOTDIR)),
    ],
)
def test_a_file_system_says_it_by_number(number, kind):
    error = OSError(number, os.strerror(number))
    assert type(failure_of("/lake/orders", f"a data file cannot be written: {error}", error)) is kind


def test_a_read_only_folder_fails_for_good(tmp_path):
    with read_only(tmp_path), pytest.raises(SinkError, match="let this user write there") as caught:
        write_probe(Storage(f"file://{tmp_path}/orders"))
    assert not caught.value.retryable


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_folder_that_may_not_be_written_says_what_helps(number):
    error = OSError(number, os.strerror(number))
    found = failure_of("/lake/orders", f"a data file cannot be written: {error}", error)
    assert not found.retryable
    assert str(found).endswith("let this user write there, or name another folder")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Unable to copy data to file No space left on device (os error 28)", StorageFull),
        ("Unable to open file Permission denied (os error 13)", SinkError),
        ("Unable to rename file Stale file handle (os error 116)", TableUnavailable),
        ("unheard of", SinkError),
    ],
)
def test_delta_rs_tells_the_number_in_words(words, kind):
    assert type(failure_of("file:///lake/orders", words, OSError(words))) is kind


@pytest.mark.parametrize(
    "error", [socket.gaierror(-3, "Temporary failure in name resolution"), ssl.SSLEOFError(8, "EOF")]
)
def test_numbers_that_are_not_the_systems_say_nothing(error):
    assert type(failure_of("store:shop.orders", str(error), error)) is TableUnavailable


def test_a_store_that_is_full_does_not_pass_by_waiting():
    words = "AWS Error UNKNOWN (HTTP status 507): Unable to parse ExceptionName: InsufficientStorage"
    assert type(failure_of("s3://lake/orders", words, OSError(words))) is StorageFull


def test_credentials_end_at_a_time_of_their_own():
    now = int(time.time() * 1000)
    assert have_expired({"s3.session-token-expires-at-ms": str(now - 1000)})
    assert not have_expired({"gcs.oauth2.token-expires-at": str(now + 60_000), "s3.region": "eu"})
