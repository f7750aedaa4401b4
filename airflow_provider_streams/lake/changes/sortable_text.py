"""Values as texts that compare like them, byte by byte, whatever the width of their type."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.lake.changes.arrow_compute import array, pc
from airflow_provider_streams.lake.changes.columns import UnusableChanges

_SIGN: Final = np.uint64(1 << 63)
_EXACT: Final = pa.decimal256(76, 38)
_CONTROL: Final = r"[\x00-\x1f]"
_NANOSECONDS: Final = 1000


def sortable(name: str, column: pa.ChunkedArray[Any]) -> Any:
    """Texts that compare like the values.

    Raises:
        UnusableChanges: a value is missing or not comparable, or the type has no order.
    """
    if column.null_count:
        raise UnusableChanges(f"{column.null_count} changes have no {name!r}, which orders them")
    values: Any = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):  # without rows
        values = pa.concat_arrays(values.chunks) if values.num_chunks else array([], column.type)
    return pa.chunked_array([_texts(name, values)])


def hex_of(numbers: np.ndarray[Any, Any]) -> Any:
    """Signed numbers of 64 bits as 16 hexadecimal digits, in their order."""
    return _digits(numbers.astype(np.int64).view(np.uint64) ^ _SIGN)


def _texts(name: str, values: Any) -> Any:  # noqa: PLR0911 - one for each family of types
    type_ = values.type
    if pa.types.is_uint64(type_):
        numbers = values.to_numpy(zero_copy_only=False)
        above = array(np.where(numbers >= _SIGN, "1", "0"))
        return pc.binary_join_element_wise(above, _digits(numbers ^ _SIGN), "")
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_):
        numbers = pc.cast(values, pa.int64()).to_numpy(zero_copy_only=False)
        return pc.binary_join_element_wise(array(["0"] * len(numbers), pa.string()), hex_of(numbers), "")
    if pa.types.is_timestamp(type_):
        return _of_time(values)
    if pa.types.is_date(type_):
        return hex_of(pc.cast(pc.cast(values, pa.date32()), pa.int32()).to_numpy(zero_copy_only=False))
    if pa.types.is_decimal(type_):
        return _of_decimal(name, values)
    if pa.types.is_floating(type_):
        return _of_float(name, values)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        if pc.any(pc.match_substring_regex(values, _CONTROL)).as_py():
            raise UnusableChanges(f"{name!r} orders the changes, and has texts with control characters")
        return pc.cast(values, pa.string())
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return array([one.hex() for one in values.to_pylist()], pa.string())
    raise UnusableChanges(f"{name!r} is {type_}, and values of this type have no order")


def _of_time(values: Any) -> Any:
    """Microseconds, then the nanoseconds within one."""
    unit, numbers = values.type.unit, pc.cast(values, pa.int64()).to_numpy(zero_copy_only=False)
    if unit == "ns":
        whole, rest = np.divmod(numbers, _NANOSECONDS)
    else:
        whole, rest = numbers * {"s": 1_000_000, "ms": 1000, "us": 1}[unit], np.zeros_like(numbers)
    return pc.binary_join_element_wise(hex_of(whole), pc.utf8_slice_codeunits(_digits(rest.view(np.uint64)), 13), "")


def _of_decimal(name: str, values: Any) -> Any:
    """With 38 digits on either side of the point, so that the scale of a type does not matter."""
    try:
        wide = pc.cast(values, _EXACT)
    except pa.ArrowInvalid as error:
        raise UnusableChanges(f"{name!r} orders the changes, and has numbers of too many digits") from error
    held = np.frombuffer(wide.buffers()[1], np.uint64)  # little-endian words
    words = held[wide.offset * 4 : (wide.offset + len(wide)) * 4].reshape(-1, 4)[:, ::-1].copy()
    words[:, 0] ^= _SIGN
    return _digits(words)


def _of_float(name: str, values: Any) -> Any:
    numbers = pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False) + 0.0  # the zeros become one
    if np.isnan(numbers).any():
        raise UnusableChanges(f"{name!r} orders the changes, and has values that are not a number")
    bits = numbers.view(np.uint64)
    return _digits(np.where(bits & _SIGN, ~bits, bits | _SIGN))


def _digits(words: np.ndarray[Any, Any]) -> Any:
    """One or several words each as hexadecimal digits."""
    width = 16 * (words.shape[1] if words.ndim > 1 else 1)
    text = np.ascontiguousarray(words).astype(">u8").tobytes().hex().encode()
    offsets = np.arange(len(words) + 1, dtype=np.int64) * width
    large = pa.LargeStringArray.from_buffers(len(words), pa.py_buffer(offsets.tobytes()), pa.py_buffer(text))
    return pc.cast(large, pa.string())
