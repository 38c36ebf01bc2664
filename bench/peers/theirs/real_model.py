"""A pretrained model in PyTorch's float32: tokens per second of the clock and of processor time, as `real-model.bench.ts` measures ours."""
import json
import sys
import time

try:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, DynamicCache
except ImportError as error:
    sys.exit(f"torch, transformers or peft is not installed: {error}")

work = json.load(sys.stdin)
torch.set_num_threads(work["threads"])
torch.manual_seed(1)
model = AutoModelForCausalLM.from_pretrained(work["folder"], dtype=torch.float32)


def timed(tokens, run):
    before, start = time.process_time(), time.perf_counter()
    run()
    seconds, used = time.perf_counter() - start, time.process_time() - before
    return dict(clock=tokens / seconds, processor=tokens / used)


def ids(rows, length):
    return torch.randint(100, 40_000, (rows, length))


def decode(rows, prompt, tokens):
    with torch.no_grad():
        cache = DynamicCache()
        model(ids(rows, prompt), past_key_values=cache, logits_to_keep=1)

        def run():
            last = ids(rows, 1)
            for _ in range(tokens):
                logits = model(last, past_key_values=cache, logits_to_keep=1).logits[:, -1]
                last = torch.multinomial(torch.softmax(logits, -1), 1)

        return timed(rows * tokens, run)


def prefill(rows, prompt):
    with torch.no_grad():
        text = ids(rows, prompt)
        return timed(rows * prompt, lambda: model(text, logits_to_keep=1))


def learn(rows, length, trained, rank):
    maps = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    adapted = get_peft_model(model, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=maps))
    optimizer = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], lr=1e-4)
    text = ids(rows, length)

    def run():
        logits = adapted(text, logits_to_keep=trained + 1).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), text[:, -trained:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(adapted.parameters(), 1)
        optimizer.step()

    return timed(rows * length, run)


rates = dict(decode32=decode(**work["decode"]), decode1=decode(1, **work["single"]), prefill=prefill(**work["prefill"]))
print(json.dumps(dict(**rates, learn=learn(**work["learn"]))))
