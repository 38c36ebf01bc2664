"""PyTorch on one core: the embedded model's sizes and arithmetic, a training step and sampling with a cache."""
import time

from side import cannot_run, print_figures, read_work

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    cannot_run(f"torch is not installed: {error}")

work = read_work()
shape = work["shape"]
torch.set_num_threads(work["threads"])
torch.manual_seed(1)
WIDTH, HEADS = shape["width"], shape["heads"]
SIZE = WIDTH // HEADS


def rotate(x, cosine, sine):
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * cosine - right * sine, right * cosine + left * sine), dim=-1)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before = torch.nn.RMSNorm(WIDTH)
        self.inputs = torch.nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.output = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.middle = torch.nn.RMSNorm(WIDTH)
        self.gates = torch.nn.Linear(WIDTH, 2 * shape["hidden"], bias=False)
        self.down = torch.nn.Linear(shape["hidden"], WIDTH, bias=False)

    def forward(self, x, angles, cache=None, at=0):
        rows, length, _ = x.shape
        heads = self.inputs(self.before(x)).view(rows, length, 3, HEADS, SIZE).permute(2, 0, 3, 1, 4)
        query, key, value = rotate(heads[0], *angles), rotate(heads[1], *angles), heads[2]
        if cache is not None:
            cache[0][:, :, at : at + length] = key
            cache[1][:, :, at : at + length] = value
            key, value = cache[0][:, :, : at + length], cache[1][:, :, : at + length]
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=length > 1)
        x = x + self.output(seen.transpose(1, 2).reshape(rows, length, WIDTH))
        gate, up = self.gates(self.middle(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(shape["vocabulary"], WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(shape["layers"]))
        self.norm = torch.nn.RMSNorm(WIDTH)
        steps = torch.arange(shape["context"])[:, None] / 10_000 ** (
            torch.arange(SIZE // 2) * 2 / SIZE
        )
        self.register_buffer("cosine", steps.cos())
        self.register_buffer("sine", steps.sin())

    def forward(self, ids, caches=None, at=0):
        x = self.embedding(ids)
        angles = self.cosine[at : at + ids.shape[1]], self.sine[at : at + ids.shape[1]]
        for index, layer in enumerate(self.layers):
            x = layer(x, angles, None if caches is None else caches[index], at)
        return self.norm(x) @ self.embedding.weight.T


def training_step(model, optimizer, ids):
    logprobs = torch.log_softmax(model(ids[:, :-1]), dim=-1)
    chosen = logprobs.gather(-1, ids[:, 1:, None])[..., 0]
    (-chosen.mean()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


@torch.no_grad()
def sample(model, rows, prompt, count):
    caches = [
        [torch.zeros(rows, HEADS, prompt + count, SIZE) for _ in range(2)] for _ in model.layers
    ]
    ids = torch.randint(shape["vocabulary"], (rows, prompt))
    at = 0
    for _ in range(count):
        logprobs = torch.log_softmax(model(ids, caches, at)[:, -1], dim=-1)
        at += ids.shape[1]
        ids = torch.multinomial(logprobs.exp(), 1)
        logprobs.gather(-1, ids)


def fastest(work, rounds):
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.0)
ids = torch.randint(shape["vocabulary"], (work["rows"], work["length"]))
step = fastest(lambda: training_step(model, optimizer, ids), 8)
decode = fastest(lambda: sample(model, 64, 16, 96), 4)
print_figures("torch", stepMilliseconds=step * 1000, sampledPerSecond=64 * 96 / decode)
