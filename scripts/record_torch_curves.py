#!/usr/bin/env python3
"""Trains the reference curves of tests/worker/learning_test.cc with PyTorch.

    /usr/bin/python3 scripts/record_torch_curves.py mlp > tests/worker/torch_mlp_curve.json
    /usr/bin/python3 scripts/record_torch_curves.py gpt > tests/worker/torch_gpt_curve.json

Needs Debian's python3-torch. Nothing but the settings and the losses is stored: initial weights,
data and order of samples are derived here from the seeds, by the formulas of core/random.h,
worker/streams.h, worker/mlp.h, worker/gpt_layout.h, worker/digits.h, worker/grammar.h and
worker/sample_plan.h.
"""
import json
import math
import pathlib
import sys

import torch
from torch.nn import functional

MASK = (1 << 64) - 1
INITIAL_WEIGHTS, SAMPLE_ORDER, DATA_SPLIT, TEACHER, INPUTS = 1, 2, 3, 4, 5  # worker/streams.h

WIDTHS = [64, 32, 10]
SEED, SPLIT_SEED = 7, 1
GLOBAL_BATCH = 128  # 1,437 samples: batch 12 is short, and the second epoch begins before step 20
STEPS = 20
RUNS = [
    {"optimizer": "sgd", "learning_rate": 0.5, "momentum": 0.0},
    {"optimizer": "momentum", "learning_rate": 0.1, "momentum": 0.9},
]

GPT = {"layers": 2, "hidden": 32, "heads": 2, "context": 24}
GRAMMAR = {"vocabulary": 4, "branching": 2, "samples": 100, "shortest": 5}
GPT_BATCH = 16  # 100 samples: batch 7 is short
# Rates at which PyTorch's own curves in fp32 and fp64 agree to 1e-5: with larger ones AdamW turns
# the rounding of gradients near 0 into whole steps.
GPT_RUNS = [
    {"tied": False, "optimizer": "momentum", "learning_rate": 0.05, "momentum": 0.5},
    {"tied": False, "optimizer": "sgd", "learning_rate": 0.15},
    {"tied": True, "optimizer": "adamw", "learning_rate": 0.003, "weight_decay": 0.1},
    {"tied": True, "optimizer": "adamw", "learning_rate": 0.003, "clip_norm": 0.5},
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

    def normal(self):
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())

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


def batches(samples, size):
    epoch = 0
    while True:
        order = list(range(samples))
        Random(SEED).split(SAMPLE_ORDER).split(epoch).shuffle(order)
        for first in range(0, samples, size):
            yield order[first : first + size]
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
    for _, batch in zip(range(STEPS), batches(len(labels), GLOBAL_BATCH)):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def grammar_split():
    """tokens and labels (samples, context); -100 is no target."""
    size, branching = GRAMMAR["vocabulary"], GRAMMAR["branching"]
    random = Random(SPLIT_SEED).split(TEACHER)
    order = list(range(size))
    successors = []
    for _ in range(size * size):
        random.shuffle(order)
        successors.append(order[:branching])
    random = Random(SPLIT_SEED).split(INPUTS)
    tokens, labels = [], []
    for _ in range(GRAMMAR["samples"]):
        context, shortest = GPT["context"], GRAMMAR["shortest"]
        length = shortest + random.below(context - shortest + 1)
        sample = [random.below(size), random.below(size)]
        while len(sample) <= length:
            choice = 0
            while choice + 1 < branching and random.below(2) == 0:
                choice += 1
            sample.append(successors[sample[-2] * size + sample[-1]][choice])
        padding = context - length
        tokens.append(sample[:length] + [0] * padding)
        labels.append([-100] + sample[2:] + [-100] * padding)
    return torch.tensor(tokens), torch.tensor(labels)


class Gpt:
    """Parameters in the order and with the initial values of worker/gpt_layout.h."""

    def __init__(self, tied):
        hidden, context, size = GPT["hidden"], GPT["context"], GRAMMAR["vocabulary"]
        residual = 0.02 / math.sqrt(2 * GPT["layers"])
        block = [
            (1, hidden), (0, hidden), (0.02, 3 * hidden, hidden), (0, 3 * hidden),
            (residual, hidden, hidden), (0, hidden), (1, hidden), (0, hidden),
            (0.02, 4 * hidden, hidden), (0, 4 * hidden), (residual, hidden, 4 * hidden), (0, hidden),
        ]  # fmt: skip
        layers = [[(0.02, size, hidden), (0.02, context, hidden)]]
        layers += [block] * GPT["layers"]
        layers += [[(1, hidden), (0, hidden)] + ([] if tied else [(0.02, size, hidden)])]
        weights = Random(SEED).split(INITIAL_WEIGHTS)
        self.layers = [self.tensors(weights.split(i), layer) for i, layer in enumerate(layers)]

    @staticmethod
    def tensors(random, specs):
        made = []
        for value, *shape in specs:
            if len(shape) == 1:
                tensor = torch.full(shape, float(value))
            else:
                values = [random.normal() * value for _ in range(math.prod(shape))]
                tensor = torch.tensor(values).view(shape)
            made.append(tensor.requires_grad_())
        return made

    def parameters(self):
        return [tensor for layer in self.layers for tensor in layer]

    def logits(self, tokens):
        hidden, heads = GPT["hidden"], GPT["heads"]
        samples, length = tokens.shape
        (table, positions), *blocks, (gain, bias, *head) = self.layers
        x = table[tokens] + positions[:length]
        mask = torch.full((length, length), -math.inf).triu(1)
        for g1, b1, qkv, qkv_b, proj, proj_b, g2, b2, up, up_b, down, down_b in blocks:
            parts = functional.linear(functional.layer_norm(x, (hidden,), g1, b1), qkv, qkv_b)
            q, k, v = parts.view(samples, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-2, -1) / math.sqrt(hidden // heads) + mask
            mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(samples, length, hidden)
            x = x + functional.linear(mixed, proj, proj_b)
            wide = functional.linear(functional.layer_norm(x, (hidden,), g2, b2), up, up_b)
            x = x + functional.linear(functional.gelu(wide, approximate="tanh"), down, down_b)
        x = functional.layer_norm(x, (hidden,), gain, bias)
        return functional.linear(x, head[0] if head else table)


def gpt_losses(run, tokens, labels):
    model = Gpt(run["tied"])
    if run["optimizer"] == "adamw":
        optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=run["learning_rate"],
            weight_decay=run.get("weight_decay", 0),
        )
    else:
        optimizer = torch.optim.SGD(
            model.parameters(), lr=run["learning_rate"], momentum=run.get("momentum", 0)
        )
    losses = []
    for _, batch in zip(range(STEPS), batches(len(labels), GPT_BATCH)):
        optimizer.zero_grad()
        logits = model.logits(tokens[batch])
        loss = functional.cross_entropy(logits.flatten(0, 1), labels[batch].flatten())
        loss.backward()
        if "clip_norm" in run:
            torch.nn.utils.clip_grad_norm_(model.parameters(), run["clip_norm"])
        optimizer.step()
        losses.append(loss.item())
    return losses


def mlp_record():
    inputs, labels = training_split()
    return {
        "widths": WIDTHS,
        "seed": SEED,
        "split_seed": SPLIT_SEED,
        "global_batch": GLOBAL_BATCH,
        "runs": [dict(run, losses=losses_of(run, inputs, labels)) for run in RUNS],
    }


def gpt_record():
    tokens, labels = grammar_split()
    return {
        "gpt": GPT,
        "grammar": GRAMMAR,
        "seed": SEED,
        "split_seed": SPLIT_SEED,
        "global_batch": GPT_BATCH,
        "runs": [dict(run, losses=gpt_losses(run, tokens, labels)) for run in GPT_RUNS],
    }


def main():
    record = {"mlp": mlp_record, "gpt": gpt_record}[sys.argv[1]]()
    print(json.dumps({"torch": torch.__version__, **record}, indent=1))


if __name__ == "__main__":
    main()
