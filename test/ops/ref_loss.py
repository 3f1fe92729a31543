"""References for losses, written from the definitions."""
import math

import numpy as np


def reduce_loss(each, reduction):
    return {"none": np.asarray, "mean": np.mean, "sum": np.sum}[reduction](each)


def log_probabilities(x):
    return x - np.expand_dims(np.logaddexp.reduce(x, 1), 1)


def cross_entropy(logits, labels, weight=None, label_smoothing=0.0, ignore_index=(), reduction="mean"):
    return nll(log_probabilities(logits), labels, weight, ignore_index, reduction, label_smoothing)


def nll(logp, labels, weight=None, ignore_index=(), reduction="mean", smoothing=0.0):
    classes = logp.shape[1]
    other = 1 if weight is None else 0  # what a label that is no class counts for
    weight = np.ones(classes) if weight is None else weight
    soft = labels.dtype.kind == "f"
    each, counts = np.zeros((logp.shape[0],) + logp.shape[2:]), 0.0
    for place in np.ndindex(each.shape):
        row = logp[(place[0], slice(None)) + place[1:]]
        target = np.zeros(classes)
        if soft:
            target = labels[(place[0], slice(None)) + place[1:]]
            counts += 1
        elif labels[place] in ignore_index:
            continue
        elif 0 <= labels[place] < classes:
            target[int(labels[place])] = 1
            counts += weight[int(labels[place])]
        else:
            counts += other
            continue
        target = (1 - smoothing) * target + smoothing / classes
        each[place] = -sum(weight[c] * target[c] * row[c] for c in range(classes) if target[c] != 0)
    if reduction == "mean":
        return np.asarray(each.sum() / counts if counts else 0.0)
    return reduce_loss(each, reduction)


def ctc(logp, labels, steps, lengths, blank, zero_infinity, reduction):
    """Sums over the paths that collapse to the first l labels, by whether their last frame is a blank or label l."""
    frames, n, classes = logp.shape
    each = np.zeros(n)
    for i in range(n):
        count = min(max(int(lengths[i]), 0), labels.shape[1])
        wrapped = [c + classes if c < 0 else c for c in labels[i, :count].astype(int)]
        target = [min(max(c, 0), classes - 1) for c in wrapped]
        in_blank, in_label = np.full(count + 1, -np.inf), np.full(count + 1, -np.inf)
        in_blank[0] = 0
        for t in range(min(max(int(steps[i]), 0), frames)):
            row = logp[t, i]
            blanks = row[blank] + np.logaddexp(in_blank, in_label)
            ends = np.full(count + 1, -np.inf)
            for l in range(1, count + 1):
                new = l == 1 or target[l - 1] != target[l - 2]
                ends[l] = row[target[l - 1]] + np.logaddexp.reduce(
                    [in_label[l], in_blank[l - 1], in_label[l - 1] if new else -np.inf])
            in_blank, in_label = blanks, ends
        total = np.logaddexp(in_blank[count], in_label[count])
        each[i] = 0 if zero_infinity and np.isneginf(total) else -total
        each[i] /= max(count, 1) if reduction == "mean" else 1
    return reduce_loss(each, reduction)


def huber(x, y, delta, reduction):
    d = np.abs(x - y)
    return reduce_loss(np.where(d <= delta, d ** 2 / 2, delta * (d - delta / 2)), reduction)


def smooth_l1(x, y, beta, reduction):
    d = np.abs(x - y)
    return reduce_loss(np.where(d < beta, d ** 2 / (2 * (beta or 1)), d - beta / 2), reduction)


def poisson_nll(x, t, log_input, full, epsilon, reduction):
    each = np.exp(x) - t * x if log_input else x - t * np.log(x + epsilon)
    stirling = t * np.log(t) - t + 0.5 * np.log(2 * math.pi * t)
    return reduce_loss(each + np.where(t > 1, stirling, 0) if full else each, reduction)


def gaussian_nll(x, t, variance, full, epsilon, reduction):
    variance = np.maximum(variance, epsilon)
    each = 0.5 * np.log(variance) + 0.5 * (x - t) ** 2 / variance
    return reduce_loss(each + 0.5 * math.log(2 * math.pi) if full else each, reduction)


def kl_div(x, t, log_target, reduction):
    p = np.exp(t) if log_target else t
    return reduce_loss(np.where(p == 0, 0, p * (np.log(p) - x)), reduction)


def bce(p, t, reduction):
    return reduce_loss(-t * np.maximum(np.log(p), -100) - (1 - t) * np.maximum(np.log(1 - p), -100), reduction)


def bce_with_logits(x, t, pos_weight, reduction):
    p = 1 / (1 + np.exp(-x))
    return reduce_loss(-pos_weight * t * np.log(p) - (1 - t) * np.log(1 - p), reduction)


def sigmoid_focal(x, t, alpha, gamma, reduction):
    p = 1 / (1 + np.exp(-x))
    each = -t * np.log(p) - (1 - t) * np.log(1 - p)
    each = each * (1 - (p * t + (1 - p) * (1 - t))) ** gamma
    return reduce_loss(each * (alpha * t + (1 - alpha) * (1 - t)) if alpha >= 0 else each, reduction)


def multi_margin(x, labels, p, margin, reduction):
    each = np.zeros(len(labels))
    for n, label in enumerate(int(v) for v in labels):
        if 0 <= label < x.shape[1]:
            each[n] = sum(max(0, margin - x[n, label] + x[n, c]) ** p for c in range(x.shape[1]) if c != label)
    return reduce_loss(each / x.shape[1], reduction)


def cosine_similarity(a, b, axis, epsilon):
    norms = [np.maximum(np.linalg.norm(v, axis=axis), epsilon) for v in (a, b)]
    return np.sum(a * b, axis) / (norms[0] * norms[1])


def cosine_embedding(a, b, y, margin, reduction):
    cosine = cosine_similarity(a, b, -1, 1e-8)
    return reduce_loss(np.where(y > 0, 1 - cosine, np.maximum(cosine - margin, 0)), reduction)


def triplet_margin(anchor, positive, negative, margin, p, epsilon, reduction):
    distances = [np.sum(np.abs(anchor - other + epsilon) ** p, -1) ** (1 / p) for other in (positive, negative)]
    return reduce_loss(np.maximum(distances[0] - distances[1] + margin, 0), reduction)
