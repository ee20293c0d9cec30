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

TURNS, STEPS = 15, {"gpt": 2, "mlp": 10}


def serve(name):
    """PyTorch's half, in a process of its own."""
    import time

    import torch
    from torch.nn import functional

    torch.set_num_threads(1)
    torch.manual_seed(1)
    if name == "mlp":
        model = torch.nn.Sequential(
            torch.nn.Linear(784, 1024), torch.nn.ReLU(),
            torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
            torch.nn.Linear(1024, 10),
        )  # fmt: skip
        inputs, labels = torch.randn(64, 784), torch.randint(10, (64,))
        loss_of = lambda: functional.cross_entropy(model(inputs), labels)
    else:
        model = Gpt(torch, layers=4, hidden=256, heads=4, context=128, vocabulary=256)
        tokens, labels = torch.randint(256, (8, 128)), torch.randint(256, (8, 128))
        loss_of = lambda: functional.cross_entropy(
            model.logits(tokens).flatten(0, 1), labels.flatten()
        )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            begins = time.perf_counter()
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
            seconds.append(time.perf_counter() - begins)
        print(*seconds, flush=True)


def Gpt(torch, layers, hidden, heads, context, vocabulary):
    """The model of worker/gpt.h as one writes it in PyTorch 1.13."""
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
            self.qkv, self.proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
            self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

        def forward(self, x, mask):
            batch, length, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).split(hidden, dim=2)
            q, k, v = (t.view(batch, length, heads, -1).transpose(1, 2) for t in (q, k, v))
            scores = (q @ k.transpose(-2, -1)) * (hidden // heads) ** -0.5
            weights = functional.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
            mixed = (weights @ v).transpose(1, 2).reshape(batch, length, hidden)
            x = x + self.proj(mixed)
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, hidden), nn.Embedding(context, hidden)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(hidden)
            self.mask = torch.ones(context, context, dtype=torch.bool).triu(1)

        def logits(self, tokens):
            x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
            for block in self.blocks:
                x = block(x, self.mask)
            return functional.linear(self.norm(x), self.tokens.weight)

    return Model()


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


def environment():
    result = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    result.pop("OPENBLAS_CORETYPE", None)
    return result


def kernel():
    """Of the library that PyTorch has loaded; without OpenBLAS the comparison would be unfair."""
    code = (
        "import ctypes, torch;"
        "paths = {line.split()[-1] for line in open('/proc/self/maps') if 'openblas' in line};"
        "lib = ctypes.CDLL(paths.pop()); lib.openblas_get_corename.restype = ctypes.c_char_p;"
        "print(torch.__version__, lib.openblas_get_corename().decode())"
    )
    run = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True)
    if run.returncode != 0:
        sys.exit("PyTorch runs without OpenBLAS here: install libopenblas0-pthread")
    return run.stdout.decode().strip()


def compare(name, program):
    ours = Rival([program, name], environment())
    torchs = Rival([sys.executable, __file__, "--serve", name], environment())
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
        print("PyTorch and OpenBLAS kernel:", kernel())
        for case in sys.argv[2:] or ["gpt", "mlp"]:
            compare(case, sys.argv[1])
