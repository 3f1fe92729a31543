"""Reads and writes ONNX files with numpy alone: the few messages that tests need, in protocol-buffer wire format.

  node("Add", ["x", "y"], ["z"], axis=1)              attributes by type: int, float, str, lists of these, numpy arrays
  model([node(...)], {"x": x}, ["z"], opset=18)       bytes of a model whose inputs have the arrays' types
  tensor("x", x)                                      bytes of a TensorProto, as test data files hold
"""
import struct

import numpy as np

DTYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9,
          "float16": 10, "float64": 11, "uint32": 12, "uint64": 13}


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def field(number, value):
    """An int as a varint, bytes and strings by their length."""
    if isinstance(value, (int, np.integer)):
        return varint(number << 3) + varint(int(value))
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, array, **more):
    array = np.asarray(array)
    out = b"".join(field(1, d) for d in array.shape) + field(2, more.get("data_type", DTYPES[array.dtype.name]))
    return out + field(8, name) + field(9, more.get("raw", np.ascontiguousarray(array).tobytes()))


def floats(number, values):
    return field(number, struct.pack(f"<{len(values)}f", *values))


def attribute(name, value):
    out = field(1, name)
    if isinstance(value, Graph):
        return out + field(6, value.data) + field(20, 5)
    if isinstance(value, np.ndarray):
        return out + field(5, tensor("", value)) + field(20, 4)
    if isinstance(value, (bool, int)):
        return out + field(3, int(value)) + field(20, 2)
    if isinstance(value, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    if isinstance(value, str):
        return out + field(4, value) + field(20, 3)
    if isinstance(value[0], float):
        return out + floats(7, value) + field(20, 6)
    if isinstance(value[0], str):
        return out + b"".join(field(9, v) for v in value) + field(20, 8)
    return out + b"".join(field(8, v) for v in value) + field(20, 7)


def node(op, inputs, outputs, name="", domain="", **attrs):
    out = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
    out += field(3, name) + field(4, op) + b"".join(field(5, attribute(k, v)) for k, v in attrs.items())
    return out + (field(7, domain) if domain else b"")


def value_info(name, dtype, dims):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims or [])
    tensor_type = field(1, dtype) + (field(2, shape) if dims is not None else b"")
    return field(1, name) + field(2, field(1, tensor_type))


class Graph:
    """A graph: the model's, or one in an attribute. Inputs are arrays, or (dtype number, dims)."""

    def __init__(self, nodes, inputs, outputs, initializers=None):
        out = b"".join(field(1, n) for n in nodes) + field(2, "g")
        for name, array in (initializers or {}).items():
            out += field(5, array if isinstance(array, bytes) else tensor(name, array))
        for name, x in inputs.items():
            dtype, dims = x if isinstance(x, tuple) else (DTYPES[np.asarray(x).dtype.name], np.asarray(x).shape)
            out += field(11, value_info(name, dtype, dims))
        self.data = out + b"".join(field(12, field(1, o)) for o in outputs)


def model(nodes, inputs, outputs, opset=18, initializers=None, domains=None, functions=()):
    out = field(1, 8) + field(7, Graph(nodes, inputs, outputs, initializers).data)
    for domain, version in {"": opset, **(domains or {})}.items():
        out += field(8, field(1, domain) + field(2, version))
    return out + b"".join(field(25, f) for f in functions)


def function(name, domain, inputs, outputs, nodes, opset=18, attrs=()):
    out = field(1, name) + b"".join(field(4, i) for i in inputs) + b"".join(field(5, o) for o in outputs)
    out += b"".join(field(6, a) for a in attrs) + b"".join(field(7, n) for n in nodes)
    return out + field(9, field(1, "") + field(2, opset)) + field(10, domain)


def fields(data):
    """(field number, value) of a message: ints, or bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
            continue
        size = {1: 8, 5: 4}.get(tag & 7) or number()
        yield tag >> 3, data[at:at + size]
        at += size


def operators(data):
    """(domain, operator) of the nodes of a model's graph."""
    for number, graph in fields(data):
        if number != 7:
            continue
        for kind, message in fields(graph):
            if kind == 1:
                parts = dict(fields(message))
                yield parts.get(7, b"").decode(), parts[4].decode()
