"""Decode payloads of any protobuf message to dicts, with the user's descriptors.

Each descriptor set, as `protoc` writes it, has its own pool, so that it cannot collide with
TensorFlow's messages or another set. This is the only module that imports protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from recordsmith.buffers import BytesLike, as_view
from recordsmith.errors import (
    CorruptDataError,
    Defect,
    MissingExtraError,
    OptionError,
    suggest_names,
)
from recordsmith.stores import PlaceLike, as_location, read_document

_HOW_TO_MAKE_ONE = (
    "Make one with: protoc --include_imports --descriptor_set_out=messages.pb messages.proto"
)
_NAMES_SHOWN = 8


class MessageDecoder:
    """Decodes payloads of one message type. Safe to use from several threads."""

    def __init__(self, descriptors: PlaceLike | bytes, message: str) -> None:
        """Load a message type from its descriptors.

        Args:
            descriptors: a file with a FileDescriptorSet, as `protoc --include_imports
                --descriptor_set_out=FILE` writes it; or its bytes.
            message: the full name of the message, such as `my.package.Detection`.

        Raises:
            FileAccessError: the file cannot be read.
            OptionError: it is not a descriptor set, or lacks an import or the message.
            MissingExtraError: protobuf is not installed.
        """
        if isinstance(descriptors, bytes):
            where, data = "the descriptors", descriptors
        else:
            location = as_location(descriptors)
            where, data = str(location), read_document(location)
        pool, self.message_names = _pool(data, where)
        if message not in self.message_names:
            last = [name for name in self.message_names if name.split(".")[-1] == message]
            hint = (
                f"did you mean {last[0]!r}?"
                if last
                else suggest_names(
                    message, self.message_names, "it has no messages", most=_NAMES_SHOWN
                )
            )
            raise OptionError(
                f"no message {message!r} in {where}; {hint}", option="message", value=message
            )
        from google.protobuf import message_factory

        self.message = message
        self._class: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))

    def decode(self, payload: BytesLike) -> dict[str, Any]:
        """Decode one payload.

        Returns:
            The fields that are set, by name: numbers, bool, str, bytes, the names of enum values,
            a list for a repeated field, a dict for a message or a map. The key of an undeclared
            field is its number, such as "7", and its value an int, bytes, or a dict for a group; a
            list if the field is repeated. An extension has its full name in brackets.

        Raises:
            CorruptDataError: malformed-message.
        """
        from google.protobuf.message import DecodeError

        found = self._class()
        try:
            found.ParseFromString(bytes(as_view(payload)))
        except DecodeError:
            raise CorruptDataError(
                Defect.MALFORMED_MESSAGE,
                f"the payload cannot be parsed as {self.message}",
                remedy="Check that this is the right message: read the fields without descriptors.",
            ) from None
        return _plain(found)


def _pool(data: bytes, where: str) -> tuple[Any, tuple[str, ...]]:
    """Return a pool with all files of the set, and the names of their messages."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool
        from google.protobuf.message import DecodeError
    except ImportError:
        raise MissingExtraError("protobuf", "protobuf") from None
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(data).file
    except DecodeError:
        files = ()
    if not files or not all(file.name for file in files):
        raise OptionError(
            f"cannot parse {where} as a descriptor set",
            option="descriptors",
            remedy=_HOW_TO_MAKE_ONE,
        )
    pool = descriptor_pool.DescriptorPool()
    names: list[str] = []
    for file in _in_order({file.name: file for file in files}, where):
        _add(pool, file, where)
        names += _message_names(file.message_type, f"{file.package}." if file.package else "")
    return pool, tuple(names)


def _in_order(files: Mapping[str, Any], where: str) -> list[Any]:
    """Sort the files so that each one comes after its imports."""
    order = TopologicalSorter(
        {name: [one for one in file.dependency if one in files] for name, file in files.items()}
    )
    try:
        return [files[name] for name in order.static_order()]
    except CycleError as error:
        circle = error.args[1][:_NAMES_SHOWN]
        raise OptionError(
            f"circular imports in {where}: {', '.join(circle)}", option="descriptors"
        ) from None


def _add(pool: Any, file: Any, where: str) -> None:
    for imported in file.dependency:
        try:
            pool.FindFileByName(imported)
        except KeyError:
            raise OptionError(
                f"{imported}, which {file.name} imports, is missing from {where}",
                option="descriptors",
                remedy=_HOW_TO_MAKE_ONE,
            ) from None
    try:
        pool.Add(file)
        pool.FindFileByName(file.name)  # some implementations build it only here
    except (TypeError, KeyError, ValueError) as error:
        raise OptionError(
            f"invalid descriptor of {file.name} in {where}: {error}", option="descriptors"
        ) from None


def _message_names(messages: Any, prefix: str) -> list[str]:
    names = []
    for message in messages:
        if message.options.map_entry:
            continue
        names.append(prefix + message.name)
        names += _message_names(message.nested_type, f"{prefix}{message.name}.")
    return names


def _plain(message: Any) -> dict[str, Any]:
    """Convert a message to a dict."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    fields = {}
    for field, value in message.ListFields():
        name = f"[{field.full_name}]" if field.is_extension else field.name
        fields[name] = _value(field, value)
    return fields | _unknown(UnknownFieldSet(message))


def _value(field: Any, value: Any) -> Any:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        of_value = inner.fields_by_name["value"]
        return {_key(key): _single(of_value, value[key]) for key in value}
    if _is_repeated(field):
        return [_single(field, item) for item in value]
    return _single(field, value)


def _is_repeated(field: Any) -> bool:
    is_repeated = getattr(field, "is_repeated", None)  # newer than protobuf 5
    return bool(field.label == field.LABEL_REPEATED if is_repeated is None else is_repeated)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _single(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _plain(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    return value


def _unknown(found: Any) -> dict[str, Any]:
    """Return undeclared fields, by number."""
    fields: dict[str, list[Any]] = {}
    for field in found:
        data = field.data
        value = data if isinstance(data, (int, bytes)) else _unknown(data)
        fields.setdefault(str(field.field_number), []).append(value)
    return {number: items[0] if len(items) == 1 else items for number, items in fields.items()}
