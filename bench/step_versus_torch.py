#!/usr/bin/env python3
"""A training step of ours against PyTorch's, on one CPU thread, SGD with momentum.

    /usr/bin/python3 bench/step_versus_torch.py build/release/bench/step_versus_torch

Each program runs in a process of its own and is kept; they take turns, a few steps at a time, so
that what disturbs the machine disturbs both. Printed are the medians over all steps, their ratio,
and the peak resident memory of the gpt step over that of a program that has only started.
PyTorch uses the fastest OpenBLAS kernel that the processor has: OPENBLAS_CORETYPE is removed.
"""
import os
import statistics
import subprocess
import sys

import torch_models

TURNS, STEPS = 15, {"gpt": 2, "mlp": 10}


def serve(name):
    """PyTorch's half, in a process of its own."""
    import time

    step = torch_models.step_of(*torch_models.make(name))
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            begins = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - begins)
        print(*seconds, flush=True)


class Rival:
    def __init__(self, command, environment):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.run(0)
        self.idle_kilobytes = self.resident_peak()
        self.run(2)  # what is made on first use
        self.seconds = []

    def run(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return [float(word) for word in self.process.stdout.readline().split()]

    def resident_peak(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmHWM"):
                return int(line.split()[1])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(name, program):
    ours = Rival([program, name], torch_models.environment())
    torchs = Rival([sys.executable, __file__, "--serve", name], torch_models.environment())
    for _ in range(TURNS):
        for rival in (ours, torchs):
            rival.seconds += rival.run(STEPS[name])
    medians = [statistics.median(rival.seconds) for rival in (ours, torchs)]
    memory = [(rival.resident_peak() - rival.idle_kilobytes) / 1024 for rival in (ours, torchs)]
    print(
        f"{name}: ours {medians[0] * 1e3:.2f} ms, PyTorch {medians[1] * 1e3:.2f} ms, "
        f"ratio {medians[0] / medians[1]:.3f}; memory of the steps: ours {memory[0]:.1f} MiB, "
        f"PyTorch {memory[1]:.1f} MiB"
    )
    for rival in (ours, torchs):
        rival.close()


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    else:
        print("PyTorch and OpenBLAS kernel:", torch_models.kernel())
        for case in sys.argv[2:] or ["gpt", "mlp"]:
            compare(case, sys.argv[1])
