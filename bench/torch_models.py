"""The models of the comparisons with PyTorch 1.13, as one writes them there."""
import os
import subprocess
import sys


def make(name):
    """The model, its inputs and its labels; nothing of PyTorch uses more than one thread."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    if name == "mlp":
        model = torch.nn.Sequential(
            torch.nn.Linear(784, 1024), torch.nn.ReLU(),
            torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
            torch.nn.Linear(1024, 10),
        )  # fmt: skip
        return model, torch.randn(64, 784), torch.randint(10, (64,))
    model = gpt(torch, layers=4, hidden=256, heads=4, context=128, vocabulary=256)
    return model, torch.randint(256, (8, 128)), torch.randint(256, (8, 128))


def step_of(model, inputs, labels):
    """A function that trains one step, SGD with momentum."""
    import torch
    from torch.nn import functional

    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs).flatten(0, -2), labels.flatten()).backward()
        optimizer.step()

    return step


def gpt(torch, layers, hidden, heads, context, vocabulary):
    """The model of worker/gpt.h with a tied head."""
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

        def forward(self, tokens):
            x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
            for block in self.blocks:
                x = block(x, self.mask)
            return functional.linear(self.norm(x), self.tokens.weight)

    return Model()


def environment():
    """One thread, and the fastest OpenBLAS kernel that the processor has."""
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
        sys.exit("PyTorch runs without OpenBLAS here: install python3-torch and libopenblas0-pthread")
    return run.stdout.decode().strip()
