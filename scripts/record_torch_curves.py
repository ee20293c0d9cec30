#!/usr/bin/env python3
"""Trains the reference curves of tests/worker/torch_curve_test.cc with PyTorch.

    /usr/bin/python3 scripts/record_torch_curves.py > tests/worker/torch_mlp_curve.json

Needs Debian's python3-torch. Nothing but the settings and the losses is stored: initial weights,
split and order of samples are derived here from the seeds, by the formulas of core/random.h,
worker/streams.h, worker/mlp.h, worker/digits.h and worker/sample_plan.h.
"""
import json
import math
import pathlib

import torch

MASK = (1 << 64) - 1
INITIAL_WEIGHTS, SAMPLE_ORDER, DATA_SPLIT = 1, 2, 3  # worker/streams.h

WIDTHS = [64, 32, 10]
SEED, SPLIT_SEED = 7, 1
GLOBAL_BATCH = 128  # 1,437 samples: batch 12 is short, and the second epoch begins before step 20
STEPS = 20
RUNS = [
    {"optimizer": "sgd", "learning_rate": 0.5, "momentum": 0.0},
    {"optimizer": "momentum", "learning_rate": 0.1, "momentum": 0.9},
]


class Random:
    """SplitMix64, as core/random.h."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def uniform(self):
        return (self.next() >> 11) * 2.0**-53

    def below(self, bound):
        return (self.next() * bound) >> 64

    def split(self, stream):
        return Random(Random(self.state ^ Random(stream + 1).next()).next())

    def shuffle(self, items):
        for i in range(len(items), 1, -1):
            j = self.below(i)
            items[i - 1], items[j] = items[j], items[i - 1]


def training_split():
    path = pathlib.Path(__file__).parent.parent / "data" / "digits.csv"
    rows = [[int(value) for value in line.split(",")] for line in path.read_text().split()]
    Random(SPLIT_SEED).split(DATA_SPLIT).shuffle(rows)
    rows = rows[:1437]
    inputs = torch.tensor([[pixel / 16 for pixel in row[:64]] for row in rows])
    return inputs, torch.tensor([row[64] for row in rows])


def batches(samples):
    epoch = 0
    while True:
        order = list(range(samples))
        Random(SEED).split(SAMPLE_ORDER).split(epoch).shuffle(order)
        for first in range(0, samples, GLOBAL_BATCH):
            yield order[first : first + GLOBAL_BATCH]
        epoch += 1


def make_model():
    layers = []
    for layer, (inputs, outputs) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        random = Random(SEED).split(INITIAL_WEIGHTS).split(layer)
        bound = 1 / math.sqrt(inputs)
        values = [(2 * random.uniform() - 1) * bound for _ in range((inputs + 1) * outputs)]
        linear = torch.nn.Linear(inputs, outputs)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(values[: inputs * outputs]).view(outputs, inputs))
            linear.bias.copy_(torch.tensor(values[inputs * outputs :]))
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def losses_of(run, inputs, labels):
    model = make_model()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=run["learning_rate"], momentum=run["momentum"]
    )
    losses = []
    for _, batch in zip(range(STEPS), batches(len(labels))):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    inputs, labels = training_split()
    runs = [dict(run, losses=losses_of(run, inputs, labels)) for run in RUNS]
    record = {
        "torch": torch.__version__,
        "widths": WIDTHS,
        "seed": SEED,
        "split_seed": SPLIT_SEED,
        "global_batch": GLOBAL_BATCH,
        "runs": runs,
    }
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
