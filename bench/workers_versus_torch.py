#!/usr/bin/env python3
"""Data-parallel training steps of ours, a ring over TCP, against PyTorch DDP's with gloo.

    /usr/bin/python3 bench/workers_versus_torch.py build/release/ranklab [mlp|gpt] ...

2 and 4 workers on this machine, one thread each, the models of step_versus_torch.py with its batch
on every worker, SGD with momentum. Ours is `ranklab run` with its records and traces; beside TCP,
which is what DDP has, also through memory that the workers share. All take turns, a few steps at a time in fresh processes, so that what disturbs the machine disturbs both.
Printed are the medians over the steps of all ranks but each turn's first ones, and their ratio.
"""
import csv
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

import torch_models

TURNS, WARM_UP, STEPS = 3, 3, {"mlp": 40, "gpt": 6}
WORKERS = (2, 4)
LAB = """
name: {name}
model: {model}
data: {data}
train: {{steps: {steps}, warmup_steps: {warm_up}, batch_per_worker: {batch}, optimizer: momentum, learning_rate: 0.01}}
cluster: {{workers: {workers}, device: cpu}}
exchange: {{kind: collective, algorithm: ring, transport: {transport}}}
"""
MODELS = {
    "mlp": {
        "model": "{kind: mlp, layers: [784, 1024, 1024, 10]}",
        "data": "{kind: synthetic, samples: 1024, inputs: 784, classes: 10}",
        "batch": 64,
    },
    "gpt": {
        "model": "{kind: gpt, layers: 4, hidden: 256, heads: 4, context: 128, tied: true}",
        "data": "{kind: grammar, samples: 64, vocabulary: 256}",
        "batch": 8,
    },
}


def train_rank(name, workers, rank, port):
    """A rank of PyTorch's, in a process of its own."""
    import time

    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", world_size=workers, rank=rank
    )
    model, inputs, labels = torch_models.make(name)
    step = torch_models.step_of(DistributedDataParallel(model), inputs, labels)
    seconds = []
    for _ in range(WARM_UP + STEPS[name]):
        begins = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begins)
    print(*seconds[WARM_UP:])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def torch_turn(name, workers):
    port = str(free_port())
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__, "--rank", name, str(workers), str(rank), port],
            stdout=subprocess.PIPE, text=True, env=torch_models.environment(),
        )
        for rank in range(workers)
    ]  # fmt: skip
    outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode != 0 for rank in ranks):
        sys.exit("a rank of PyTorch's failed")
    return [float(word) for output in outputs for word in output.split()]


def our_turn(ranklab, name, workers, transport):
    with tempfile.TemporaryDirectory() as folder:
        lab = pathlib.Path(folder, "lab.yaml")
        lab.write_text(
            LAB.format(name=name, workers=workers, transport=transport, steps=WARM_UP + STEPS[name], warm_up=WARM_UP, **MODELS[name])
        )  # fmt: skip
        run = subprocess.run(
            [ranklab, "run", str(lab), "--out", folder], capture_output=True, text=True
        )
        if run.returncode != 0:
            sys.exit(f"{run.stdout}\n{run.stderr}")
        with open(next(pathlib.Path(folder).glob("*/steps.csv")), newline="") as steps:
            return [
                float(row["step_s"])
                for row in csv.DictReader(steps)
                if row["cell"] == "0" and int(row["step"]) > WARM_UP  # the other is one worker alone
            ]


def compare(ranklab, name, workers):
    tcp, shm, torchs = [], [], []
    for _ in range(TURNS):
        tcp += our_turn(ranklab, name, workers, "tcp")
        torchs += torch_turn(name, workers)
        shm += our_turn(ranklab, name, workers, "shm")
    tcp, shm, ddp = (statistics.median(seconds) for seconds in (tcp, shm, torchs))
    print(
        f"{name}, {workers} workers: DDP {ddp * 1e3:.1f} ms, ours over TCP {tcp * 1e3:.1f} ms, "
        f"ratio {tcp / ddp:.3f}, through shared memory {shm * 1e3:.1f} ms, ratio {shm / ddp:.3f}",
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        train_rank(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        print(f"PyTorch and OpenBLAS kernel: {torch_models.kernel()}; {os.cpu_count()} cores", flush=True)
        for case in sys.argv[2:] or ["mlp", "gpt"]:
            for count in WORKERS:
                compare(os.path.abspath(sys.argv[1]), case, count)
