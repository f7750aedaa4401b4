"""Descriptor sets to descriptors of messages, each set in a pool of its own."""

from __future__ import annotations

import base64
import binascii
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import InvalidSchema, MissingDependency

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.descriptor_pool import DescriptorPool


def message_of(descriptor_set: str, message: str) -> Descriptor:
    """The message of this full name.

    Args:
        descriptor_set: a `FileDescriptorSet` with all that it imports, as base64. Google's own types may be lacking.
        message: its full name.

    Raises:
        InvalidSchema: no such set, or no such message in it.
        MissingDependency: Protobuf's runtime is not installed.
    """
    try:
        from google.protobuf.descriptor_pool import DescriptorPool  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise MissingDependency("google.protobuf", "formats") from error
    pool = DescriptorPool()
    try:
        _add_all(pool, base64.b64decode(descriptor_set, validate=True))
    except (binascii.Error, ValueError, TypeError, KeyError) as error:
        raise InvalidSchema(message, f"its descriptor set cannot be used ({error})") from error
    try:
        return pool.FindMessageTypeByName(message)
    except KeyError:
        raise InvalidSchema(message, "no message of this name is in its descriptor set") from None


def _add_all(pool: DescriptorPool, data: bytes) -> None:
    """Every file after those that it imports.

    Raises:
        ValueError, TypeError, KeyError: it is no set, or lacks a file.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet  # noqa: PLC0415  # an extra
    from google.protobuf.message import DecodeError  # noqa: PLC0415  # an extra

    try:
        files = {file.name: file for file in FileDescriptorSet.FromString(data).file}
    except DecodeError as error:
        raise ValueError(str(error)) from error
    needed: dict[str, list[str]] = {}
    wanted = list(files)
    while wanted:
        name = wanted.pop()
        if name not in files:
            files[name] = FileDescriptorProto.FromString(_of_google(name))
        if name not in needed:
            needed[name] = list(files[name].dependency)
            wanted += needed[name]
    for name in TopologicalSorter(needed).static_order():
        pool.AddSerializedFile(files[name].SerializeToString())


def _of_google(name: str) -> bytes:
    """A file that every Protobuf compiler brings.

    Raises:
        ValueError: it is none of those.
    """
    from google.protobuf import (  # noqa: PLC0415  # an extra
        any_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )

    known = (any_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
    for module in known:
        if module.DESCRIPTOR.name == name:
            found: bytes = module.DESCRIPTOR.serialized_pb
            return found
    raise ValueError(f"it lacks {name}: make it with protoc --include_imports")
