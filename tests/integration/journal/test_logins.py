"""A journal's server that refuses the login: to try again would not help, and the message says what would."""

from __future__ import annotations

import pytest
from sqlalchemy import make_url

from airflow_provider_streams.errors import JournalError
from airflow_provider_streams.journal.store import Journal

pytestmark = pytest.mark.postgres

WRONG = "wrong-4711"


@pytest.mark.parametrize("part", ["password", "username"])
@pytest.mark.parametrize("server", ["postgres_url", pytest.param("mariadb_url", marks=pytest.mark.slow)])
def test_a_wrong_login_is_final_and_says_what_to_correct(request, server, part):
    address = make_url(request.getfixturevalue(server)).set(**{part: WRONG})
    with pytest.raises(JournalError, match="Correct user and password in the connection") as caught:
        Journal.open(address.render_as_string(hide_password=False))
    assert not caught.value.retryable
    assert part == "username" or WRONG not in str(caught.value)
