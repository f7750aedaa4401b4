"""Descriptors of messages, of descriptor sets that each have a pool of their own."""

from __future__ import annotations

import base64
import binascii
import importlib
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidSchema, as_clause
from airflow_provider_streams.model.optional_dependencies import importing
from airflow_provider_streams.model.schema.decoding import WriterSchema

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.descriptor_pool import DescriptorPool


def message_of(schema: WriterSchema) -> Descriptor:
    """The message of a schema. Its set must have all imports, except Google's own types.

    Raises:
        InvalidSchema: it is no such set, or has no such message.
        MissingDependency: Protobuf's runtime is not installed.
    """
    return _message_of(_files(schema), schema.message)


def with_open_enums(schema: WriterSchema) -> Descriptor:
    """As `message_of`, with closed enums replaced by their numbers on the wire.

    The runtime gives only known numbers of a closed enum. It sets others aside and loses their place.
    """
    files = _files(schema)
    pool = message_of(schema).file.pool
    for file in files:
        for name, message in _messages(file.message_type, file.package):
            known = pool.FindMessageTypeByName(name).fields_by_number
            for field in message.field:
                enum = known[field.number].enum_type
                if enum is not None and enum.is_closed:
                    field.type = field.TYPE_INT32
                    field.ClearField("type_name")
                    field.ClearField("default_value")  # a name; an absent field is null
    return _message_of(files, schema.message)


def _messages(messages: Iterable[Any], around: str) -> Iterator[tuple[str, Any]]:
    """All messages by their full names, including those inside others."""
    for message in messages:
        name = f"{around}.{message.name}" if around else message.name
        yield name, message
        yield from _messages(message.nested_type, name)


def _message_of(files: Iterable[Any], message: str) -> Descriptor:
    with importing("formats"):
        from google.protobuf.descriptor_pool import DescriptorPool  # noqa: PLC0415  # an extra
    pool: DescriptorPool = DescriptorPool()
    try:
        for file in files:
            pool.AddSerializedFile(file.SerializeToString())
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidSchema(message, f"its descriptor set cannot be used ({as_clause(error)})") from error
    try:
        return pool.FindMessageTypeByName(message)
    except KeyError:
        raise InvalidSchema(message, "no message of this name is in its descriptor set") from None


def _files(schema: WriterSchema) -> list[Any]:
    """All files of a schema, each after its imports."""
    with importing("formats"):
        from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet  # noqa: PLC0415  # an extra
        from google.protobuf.message import DecodeError  # noqa: PLC0415  # an extra
    try:
        data = base64.b64decode(schema.schema, validate=True)
        files = {file.name: file for file in FileDescriptorSet.FromString(data).file}
        needed: dict[str, list[str]] = {}
        wanted = list(files)
        while wanted:
            name = wanted.pop()
            if name not in files:
                files[name] = FileDescriptorProto.FromString(_of_google(name))
            if name not in needed:
                needed[name] = list(files[name].dependency)
                wanted += needed[name]
        return [files[name] for name in TopologicalSorter(needed).static_order()]
    except (DecodeError, binascii.Error, ValueError, TypeError, KeyError) as error:
        raise InvalidSchema(schema.message, f"its descriptor set cannot be used ({as_clause(error)})") from error


def _of_google(name: str) -> bytes:
    """A file that every Protobuf compiler brings. Raises ValueError if there is no such file."""
    known = ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
    for module in known:
        descriptor = importlib.import_module(f"google.protobuf.{module}_pb2").DESCRIPTOR
        if descriptor.name == name:
            found: bytes = descriptor.serialized_pb
            return found
    raise ValueError(f"it lacks {name}: make it with protoc --include_imports")
