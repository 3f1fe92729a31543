"""What the cases of newer_ops_test.py share: a case is a function that returns nodes, inputs, expected outputs and the
opset. Each reference is written from the operator's definition in the standard."""
import math

import numpy as np
from onnx_file import node

ALL = {}


def case(f):
    ALL[f.__name__] = f
    return f


def rand(*shape, dtype=np.float32):
    return np.random.uniform(-1, 1, shape).astype(dtype)


def one(op, inputs, output, opset, **attrs):
    """A node of all inputs with one result."""
    return {"nodes": [node(op, list(inputs), ["y"], **attrs)], "inputs": inputs, "outputs": {"y": output}, "opset": opset}


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


erf = np.vectorize(math.erf)


def normalised(x, axes, epsilon):
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)


def attend(q, k, v, bias=0.0, scale=None, softcap=0):
    k, v = (np.repeat(t, q.shape[1] // t.shape[1], axis=1) for t in (k, v))
    scores = q @ k.transpose(0, 1, 3, 2) * (scale or 1 / math.sqrt(q.shape[-1])) + bias
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    return softmax(scores) @ v


def causal(queries, keys, past=0):
    return np.where(np.arange(keys)[None] <= np.arange(queries)[:, None] + past, 0, -np.inf)


def rotated(x, cos, sin, interleaved):
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else np.split(x, 2, axis=-1)
    real, imag = cos * a - sin * b, sin * a + cos * b
    return np.stack([real, imag], -1).reshape(x.shape) if interleaved else np.concatenate([real, imag], -1)


def known(op, x, operands, output, opset, **attrs):
    """A node whose further operands are initialisers."""
    return {"nodes": [node(op, ["x", *operands], ["y"], **attrs)], "inputs": {"x": x}, "outputs": {"y": output}, "opset": opset,
            "initializers": {k: v for k, v in operands.items() if k}}


def ints(*values):
    return np.array(values, np.int64)


def microsoft(op, inputs, outputs, **attrs):
    return {"nodes": [node(op, list(inputs), list(outputs), domain="com.microsoft", **attrs)], "inputs": inputs, "outputs": outputs,
            "opset": 17, "domains": {"com.microsoft": 1}}
