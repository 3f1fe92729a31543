"""References for recurrent layers: the equations of ONNX's RNN, GRU and LSTM, example by example and step by step."""
import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn_cell(x, w, r, wb, rb, state, activation):
    z = w[0] @ x + r[0] @ state[0] + wb[0] + rb[0]
    return [np.tanh(z) if activation == "tanh" else np.maximum(z, 0)]


def gru_cell(x, w, r, wb, rb, state, linear_before_reset):
    h = state[0]
    update = sigmoid(w[0] @ x + r[0] @ h + wb[0] + rb[0])
    reset = sigmoid(w[1] @ x + r[1] @ h + wb[1] + rb[1])
    past = reset * (r[2] @ h + rb[2]) if linear_before_reset else r[2] @ (reset * h) + rb[2]
    return [(1 - update) * np.tanh(w[2] @ x + wb[2] + past) + update * h]


def lstm_cell(x, w, r, wb, rb, state, peepholes):
    h, c = state
    i, o, f, new = (w[k] @ x + r[k] @ h + wb[k] + rb[k] for k in range(4))
    new = sigmoid(f + peepholes[2] * c) * c + sigmoid(i + peepholes[0] * c) * np.tanh(new)
    return [sigmoid(o + peepholes[1] * new) * np.tanh(new), new]


def recurrent(cell, gates, x, w, r, b, direction, batch_first, states, lengths, extra):
    """`states`: h0 and c0 or None each; `extra(direction)`: the cell's last argument."""
    if batch_first:
        x = np.swapaxes(x, 0, 1)
        states = [s if s is None else np.swapaxes(s, 0, 1) for s in states]
    (steps, batch, _), (directions, _, hidden) = x.shape, r.shape
    y = np.zeros((steps, directions, batch, hidden))
    last = [np.zeros((directions, batch, hidden)) for _ in states]
    for d, n in np.ndindex(directions, batch):
        parts = [m[d].reshape(gates, hidden, -1) for m in (w, r)]
        bias = np.zeros((2, gates, hidden)) if b is None else b[d].reshape(2, gates, hidden)
        state = [np.zeros(hidden) if s is None else s[d, n] for s in states]
        order = list(range(steps if lengths is None else int(lengths[n])))
        for t in reversed(order) if direction == "reverse" or d == 1 else order:
            state = cell(x[t, n], *parts, *bias, state, extra(d))
            y[t, d, n] = state[0]
        for out, value in zip(last, state):
            out[d, n] = value
    if batch_first:
        y, last = y.transpose(2, 0, 1, 3), [np.swapaxes(s, 0, 1) for s in last]
    return (y, *last)


def rnn(x, w, r, b=None, h0=None, lengths=None, direction="forward", batch_first=False, activation="tanh"):
    return recurrent(rnn_cell, 1, x, w, r, b, direction, batch_first, [h0], lengths, lambda d: activation)


def gru(x, w, r, b=None, h0=None, lengths=None, direction="forward", batch_first=False, linear_before_reset=False):
    return recurrent(gru_cell, 3, x, w, r, b, direction, batch_first, [h0], lengths, lambda d: linear_before_reset)


def lstm(x, w, r, b=None, h0=None, c0=None, lengths=None, peepholes=None, direction="forward", batch_first=False):
    hidden = r.shape[2]
    holes = np.zeros((r.shape[0], 3 * hidden)) if peepholes is None else peepholes
    return recurrent(lstm_cell, 4, x, w, r, b, direction, batch_first, [h0, c0], lengths,
                     lambda d: holes[d].reshape(3, hidden))
