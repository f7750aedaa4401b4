"""What every format offers: payloads of one schema in, one column and the bad rows out."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from airflow_provider_streams.formats.arrays import Array
from airflow_provider_streams.formats.causes import Codes
from airflow_provider_streams.model.row_type import Type


class Column(NamedTuple):
    """Decoded payloads."""

    values: Array
    """One for each payload; those of bad rows mean nothing."""
    codes: Codes
    """Why a row is bad; `GOOD` where it is not."""


class Reader(Protocol):
    """Decodes payloads that were written with one schema."""

    @property
    def type(self) -> Type:
        """Of the values."""

    def read(self, payloads: Array) -> Column:
        """Never raises for what payloads hold.

        Args:
            payloads: binary, without nulls.
        """
