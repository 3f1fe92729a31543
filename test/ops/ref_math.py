"""References for mathematical functions, bits and activations that numpy has no name for, written from definitions.

The op sweep evaluates the `numpy` text of a row with these functions in scope.
"""
import numpy as np


def erf(x):
    """2 / sqrt(pi) exp(-x^2) times the sum of 2^n x^(2n+1) / (1 * 3 * ... * (2n+1)), whose terms have one sign."""
    x = np.asarray(x, dtype=np.float64)
    term, total = x.copy(), x.copy()
    for n in range(1, 120):
        term = term * 2 * x * x / (2 * n + 1)
        total = total + term
    return 2 / np.sqrt(np.pi) * np.exp(-x * x) * total


def population_count(x):
    width = 8 * x.dtype.itemsize
    ones = [bin(int(v) & (2**width - 1)).count("1") for v in x.flat]
    return np.array(ones, dtype=x.dtype).reshape(x.shape)


def glu(x, axis):
    a, b = np.split(x, 2, axis=axis)
    return a / (1 + np.exp(-b))


def gelu(x, approximate):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))
