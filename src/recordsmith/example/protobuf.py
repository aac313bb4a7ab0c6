"""Payloads of any message -> dicts, with the descriptors that the user gives.

A descriptor set is what `protoc` writes; it lies in a pool of its own, so that it cannot collide
with TensorFlow's messages, nor with another set. The only place that imports protobuf.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from recordsmith.buffers import BytesLike, as_view
from recordsmith.errors import CorruptDataError, Defect, MissingExtraError, OptionError, names_like
from recordsmith.files import PathLike, as_path, read_document

_HOW_TO_MAKE_ONE = (
    "make one with: protoc --include_imports --descriptor_set_out=messages.pb messages.proto"
)
_NAMES_SHOWN = 8


class MessageDecoder:
    """Decodes payloads that are messages of one type. Safe to use from several threads."""

    def __init__(self, descriptors: PathLike | bytes, message: str) -> None:
        """Learn a message from its descriptors.

        Args:
            descriptors: a file with a FileDescriptorSet, as `protoc --include_imports
                --descriptor_set_out=FILE` writes it; or its bytes.
            message: the full name of the message, such as `my.package.Detection`.

        Raises:
            FileAccessError: the file cannot be read.
            OptionError: it is no descriptor set, or lacks what it imports, or this message.
            MissingExtraError: protobuf is not installed.
        """
        if isinstance(descriptors, bytes):
            where, data = "the descriptors", descriptors
        else:
            where = os.fspath(as_path(descriptors))
            data = read_document(descriptors)
        pool, self.message_names = _pool(data, where)
        if message not in self.message_names:
            last = [name for name in self.message_names if name.split(".")[-1] == message]
            hint = f"did you mean {last[0]!r}?" if last else _names(message, self.message_names)
            raise OptionError(f"{where} has no message {message!r}; {hint}")
        from google.protobuf import message_factory

        self.message = message
        self._class: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))

    def decode(self, payload: BytesLike) -> dict[str, Any]:
        """Decode one payload.

        Returns:
            The fields that are set, by name: numbers, bool, str, bytes, the names of enum values,
            a list for a repeated field, a dict for a message or a map. Fields that the message does
            not declare are there by their number, as in "7": an int, bytes, or a dict for a group;
            a list where there are several. An extension has its full name in brackets.

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
                f"the payload does not parse as {self.message}. It is another message, or was "
                "damaged before it was written; look at its fields without descriptors.",
            ) from None
        return _plain(found)


def _pool(data: bytes, where: str) -> tuple[Any, tuple[str, ...]]:
    """A pool with all files of the set, and the names of their messages."""
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
        raise OptionError(f"{where} is no descriptor set; {_HOW_TO_MAKE_ONE}")
    pool = descriptor_pool.DescriptorPool()
    names: list[str] = []
    for file in _in_order({file.name: file for file in files}, where):
        _add(pool, file, where)
        names += _message_names(file.message_type, f"{file.package}." if file.package else "")
    return pool, tuple(names)


def _in_order(files: Mapping[str, Any], where: str) -> list[Any]:
    """Each file after those that it imports, as far as the set has them."""
    order = TopologicalSorter(
        {name: [one for one in file.dependency if one in files] for name, file in files.items()}
    )
    try:
        return [files[name] for name in order.static_order()]
    except CycleError as error:
        circle = error.args[1][:_NAMES_SHOWN]
        raise OptionError(
            f"{where}: its files import each other in a circle: {', '.join(circle)}"
        ) from None


def _add(pool: Any, file: Any, where: str) -> None:
    for imported in file.dependency:
        try:
            pool.FindFileByName(imported)
        except KeyError:
            raise OptionError(
                f"{where} lacks {imported}, which {file.name} imports; {_HOW_TO_MAKE_ONE}"
            ) from None
    try:
        pool.Add(file)
        pool.FindFileByName(file.name)  # some implementations build it only now
    except (TypeError, KeyError, ValueError) as error:
        raise OptionError(f"{where}: {file.name} is no valid description: {error}") from None


def _message_names(messages: Any, prefix: str) -> list[str]:
    names = []
    for message in messages:
        if message.options.map_entry:
            continue
        names.append(prefix + message.name)
        names += _message_names(message.nested_type, f"{prefix}{message.name}.")
    return names


def _names(message: str, known: tuple[str, ...]) -> str:
    hint = names_like(message, known, "it has no messages")
    if hint.startswith("there are") and len(known) > _NAMES_SHOWN:
        return f"there are {', '.join(known[:_NAMES_SHOWN])} and {len(known) - _NAMES_SHOWN} more"
    return hint


def _plain(message: Any) -> dict[str, Any]:
    """A message as a dict."""
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
    told = getattr(field, "is_repeated", None)  # newer than protobuf 5
    return bool(field.label == field.LABEL_REPEATED if told is None else told)


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
    """Fields that the message does not declare, by number."""
    fields: dict[str, list[Any]] = {}
    for field in found:
        data = field.data
        value = data if isinstance(data, (int, bytes)) else _unknown(data)
        fields.setdefault(str(field.field_number), []).append(value)
    return {number: items[0] if len(items) == 1 else items for number, items in fields.items()}
