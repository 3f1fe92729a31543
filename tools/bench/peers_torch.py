#!/usr/bin/env python3
"""What PyTorch (cuBLAS and cuDNN, TF32 off) takes for the products and convolutions of schedules.py, on the same GPU.

  peers_torch.py OUT.tsv [SWEEP.tsv]     with a table of schedules.py: prints its quickest beside PyTorch

Each call is recorded 20 times in a CUDA graph; the figure is the median of 7 replays, by events.
"""
import re
import statistics
import sys

import torch

from schedules import problems

CALLS = 20


def call(problem):
    """A function of no arguments that computes the problem, and where its result lies."""
    a, b = (torch.randn(problem[s], device="cuda") for s in "ab")
    op, pad = problem["op"], int((re.search(r"pad = \[(\d+)", problem["op"]) or [0, 0])[1])
    if op.startswith("matmul"):
        return lambda: a @ b
    if op.startswith("conv2d_input"):
        mask, x, w, y = [True, False, False], torch.empty(problem["c"], device="cuda"), b, a
    elif op.startswith("conv2d_weight"):
        mask, x, w, y = [False, True, False], a, torch.empty(problem["c"], device="cuda"), b
    else:
        return lambda: torch.nn.functional.conv2d(a, b, padding=pad)
    ones, zeros = [1, 1], [0, 0]
    return lambda: torch.ops.aten.convolution_backward(y, x, w, None, ones, [pad, pad], ones, False, zeros, 1, mask)


def microseconds(f):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            f()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            f()
    times = []
    for _ in range(8):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(times[1:])


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    ours = {}
    for path in sys.argv[2:]:
        for line in open(path):
            name, schedule, time, _ = line.rstrip("\n").split("\t")
            if time != "WRONG" and float(time) < ours.get(name, (1e30,))[0]:
                ours[name] = (float(time), schedule)
    with open(sys.argv[1], "w") as out:
        for name, problem in problems().items():
            time = microseconds(call(problem))
            flops = 2.0
            for x in problem["mkn"]:
                flops *= x
            row = f"{name}\t{time:.1f}\t{flops / time * 1e-6:.2f}"
            if name in ours:
                row += f"\t{ours[name][0]:.1f}\t{time / ours[name][0]:.2f}\t{ours[name][1]}"
            out.write(row + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
