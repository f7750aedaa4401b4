"""What Airflow's **Test** button calls."""

from __future__ import annotations

from airflow_provider_streams.errors import StreamsError


class TestableConnection:
    """A hook that Airflow can test: its `_test` says what answers, or raises."""

    def test_connection(self) -> tuple[bool, str]:
        """Whether the connection works, and what answers or why not; the message holds no secret."""
        try:
            return True, self._test()
        except StreamsError as error:
            return False, str(error)
        except Exception as error:  # noqa: BLE001 - Airflow shows this text unmasked: foreign errors may quote secrets
            return False, f"{type(error).__name__} while connecting; the API server's log has more"

    def _test(self) -> str:
        raise NotImplementedError
