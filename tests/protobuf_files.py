"""Descriptor files for tests, without protoc."""

from __future__ import annotations

from typing import Any


def trade_descriptors() -> bytes:
    """shop.Trade: scalars of many kinds, an enum, a message inside, lists, a map, a timestamp and a wrapper."""
    from google.protobuf import descriptor_pb2, timestamp_pb2, wrappers_pb2

    kinds: Any = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="trade.proto", package="shop", syntax="proto3")
    file.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"])
    side = file.enum_type.add(name="Side")
    for number, name in enumerate(("UNKNOWN", "BUY", "SELL")):
        side.value.add(name=name, number=number)
    place = file.message_type.add(name="Place")
    place.field.add(name="city", number=1, type=kinds.TYPE_STRING, label=1)
    place.field.add(name="at", number=2, type=kinds.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=1)
    trade = file.message_type.add(name="Trade")
    for number, (name, kind) in enumerate(
        (
            ("symbol", kinds.TYPE_STRING), ("price", kinds.TYPE_DOUBLE), ("count", kinds.TYPE_INT64),
            ("small", kinds.TYPE_SINT32), ("huge", kinds.TYPE_UINT64), ("flag", kinds.TYPE_BOOL),
            ("body", kinds.TYPE_BYTES),
        ),
        start=1,
    ):  # fmt: skip
        trade.field.add(name=name, number=number, type=kind, label=1)
    trade.field.add(name="side", number=8, type=kinds.TYPE_ENUM, type_name=".shop.Side", label=1)
    trade.field.add(name="ts", number=9, type=kinds.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=1)
    trade.field.add(name="place", number=10, type=kinds.TYPE_MESSAGE, type_name=".shop.Place", label=1)
    trade.field.add(name="tags", number=11, type=kinds.TYPE_STRING, label=3)
    trade.field.add(name="note", number=12, type=kinds.TYPE_MESSAGE, type_name=".google.protobuf.StringValue", label=1)
    trade.oneof_decl.add(name="_maybe")
    trade.field.add(name="maybe", number=13, type=kinds.TYPE_INT32, label=1, proto3_optional=True, oneof_index=0)
    entry = trade.nested_type.add(name="LevelsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=kinds.TYPE_INT64, label=1)
    trade.field.add(name="levels", number=14, type=kinds.TYPE_MESSAGE, type_name=".shop.Trade.LevelsEntry", label=3)
    files = descriptor_pb2.FileDescriptorSet()
    for module in (timestamp_pb2, wrappers_pb2):
        module.DESCRIPTOR.CopyToProto(files.file.add())
    files.file.add().CopyFrom(file)
    return bytes(files.SerializeToString())


def chain_descriptors() -> bytes:
    """chain.Link, which holds itself."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="chain.proto", package="chain", syntax="proto3")
    link = file.message_type.add(name="Link")
    link.field.add(name="next", number=1, type=11, type_name=".chain.Link", label=1)
    return bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())


def order_descriptors() -> bytes:
    """shop.Order of a file that imports another one, which imports a third one."""
    from google.protobuf import descriptor_pb2, timestamp_pb2

    files = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    inner: tuple[tuple[str, str, str, str], ...] = (
        ("shop/time.proto", "Time", ".google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
        ("shop/place.proto", "Place", ".shop.Time", "shop/time.proto"),
        ("shop/order.proto", "Order", ".shop.Place", "shop/place.proto"),
    )
    for name, message, needed, imported in inner:
        file = files.file.add(name=name, package="shop", syntax="proto3", dependency=[imported])
        made = file.message_type.add(name=message)
        made.field.add(name="id", number=1, type=3, label=1)
        made.field.add(name="inner", number=2, type=11, type_name=needed, label=1)
    return bytes(files.SerializeToString())
