#!/usr/bin/python3
"""One training step of LeNet-5 (LeCun et al. 1998, as in examples/lenet5) in numpy, f64, written from the definitions.

  lenet_numpy.py DIR [--batch=N]

Writes what the step is given (images, labels, lr, state.<name>) and what it must give (loss, logits, grad.<name>,
next.<name>, next.<name>.velocity) as DIR/<what>.npy. The images are dark but for a bright patch, so that pooling
windows tie.
"""
import os
import sys

import numpy as np

SHAPES = {
    "c1.weight": (6, 1, 5, 5), "c1.bias": (6,), "c2.weight": (16, 6, 5, 5), "c2.bias": (16,),
    "f1.weight": (400, 120), "f1.bias": (120,), "f2.weight": (120, 84), "f2.bias": (84,),
    "f3.weight": (84, 10), "f3.bias": (10,),
}
MOMENTUM = np.float64(np.float32(0.9))  # the constant of an f32 graph


def conv(x, w, b, pad):
    """Cross-correlation, NCHW and OIHW; also what the backward pass needs."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    height, width = x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1
    y = np.zeros((x.shape[0], w.shape[0], height, width)) + b[:, None, None]
    for r in range(w.shape[2]):
        for s in range(w.shape[3]):
            y += np.einsum("nchw,kc->nkhw", x[:, :, r:r + height, s:s + width], w[:, :, r, s])
    return y, x


def conv_grad(g, padded, w, pad):
    """Gradients of the input, the weight and the bias."""
    height, width = g.shape[2:]
    dx, dw = np.zeros_like(padded), np.zeros_like(w)
    for r in range(w.shape[2]):
        for s in range(w.shape[3]):
            window = (slice(None), slice(None), slice(r, r + height), slice(s, s + width))
            dw[:, :, r, s] = np.einsum("nkhw,nchw->kc", g, padded[window])
            dx[window] += np.einsum("nkhw,kc->nchw", g, w[:, :, r, s])
    inner = slice(pad, dx.shape[2] - pad)
    return dx[:, :, inner, inner], dw, g.sum(axis=(0, 2, 3))


def pool(x):
    """2x2 maxima and the position of the first one in each window."""
    n, c, h, w = x.shape
    windows = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
    return windows.max(axis=-1), windows.argmax(axis=-1)


def pool_grad(g, winner):
    n, c, h, w = g.shape
    windows = np.zeros((n, c, h, w, 4))
    np.put_along_axis(windows, winner[..., None], g[..., None], axis=-1)
    return windows.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * h, 2 * w)


def step(images, labels, p):
    """Loss, logits and the gradient of every parameter."""
    n = len(labels)
    a1, padded1 = conv(images[:, None] / 255.0, p["c1.weight"], p["c1.bias"], 2)
    m1, i1 = pool(np.maximum(a1, 0))
    a2, padded2 = conv(m1, p["c2.weight"], p["c2.bias"], 0)
    m2, i2 = pool(np.maximum(a2, 0))
    flat = m2.reshape(n, 400)
    a3 = flat @ p["f1.weight"] + p["f1.bias"]
    h3 = np.maximum(a3, 0)
    a4 = h3 @ p["f2.weight"] + p["f2.bias"]
    h4 = np.maximum(a4, 0)
    logits = h4 @ p["f3.weight"] + p["f3.bias"]
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    loss = -log_p[np.arange(n), labels].mean()

    grad = {}
    g = np.exp(log_p)
    g[np.arange(n), labels] -= 1
    g /= n
    for layer, x, a in (("f3", h4, a4), ("f2", h3, a3), ("f1", flat, None)):
        grad[layer + ".weight"], grad[layer + ".bias"] = x.T @ g, g.sum(axis=0)
        g = g @ p[layer + ".weight"].T
        if a is not None:
            g = g * (a > 0)
    g = pool_grad(g.reshape(m2.shape), i2) * (a2 > 0)
    g, grad["c2.weight"], grad["c2.bias"] = conv_grad(g, padded2, p["c2.weight"], 0)
    g = pool_grad(g, i1) * (a1 > 0)
    _, grad["c1.weight"], grad["c1.bias"] = conv_grad(g, padded1, p["c1.weight"], 2)
    return loss, logits, grad


def main():
    directory = sys.argv[1]
    batch = next((int(a[8:]) for a in sys.argv[2:] if a.startswith("--batch=")), 6)
    rng = np.random.default_rng(5)
    images = np.zeros((batch, 28, 28), np.uint8)
    for image in images:
        top, left = rng.integers(2, 12, 2)
        image[top:top + 14, left:left + 12] = rng.integers(0, 256, (14, 12))
    labels = rng.integers(0, 10, batch).astype(np.int32)
    lr = np.float32(0.05)
    states = {}
    for name, shape in SHAPES.items():
        fan_in = np.prod(shape[1:]) if len(shape) == 4 else shape[0]
        states[name] = rng.uniform(-1, 1, shape).astype(np.float32) / np.float32(np.sqrt(fan_in))
        states[name + ".velocity"] = rng.uniform(-0.1, 0.1, shape).astype(np.float32)
    exact = {name: value.astype(np.float64) for name, value in states.items()}
    loss, logits, grad = step(images.astype(np.float64), labels, exact)

    def save(name, value):
        np.save(os.path.join(directory, name + ".npy"), value)

    save("images", images)
    save("labels", labels)
    save("lr", lr)
    save("loss", np.float64(loss))
    save("logits", logits)
    for name, value in states.items():
        save("state." + name, value)
    for name in SHAPES:
        velocity = MOMENTUM * exact[name + ".velocity"] + grad[name]
        save("grad." + name, grad[name])
        save(f"next.{name}.velocity", velocity)
        save("next." + name, exact[name] - np.float64(lr) * velocity)


if __name__ == "__main__":
    main()
