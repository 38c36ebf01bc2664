"""What transformers and PEFT compute of models that were exported: log-probabilities, and gradients of an adapter.

usage: python real_model.py < spec.json    needs: torch transformers peft gguf
"""
import json
import os
import sys

import torch
from transformers import AutoModelForCausalLM

spec = json.load(sys.stdin)
ids = spec["ids"]


def opened(path):
    folder, file = os.path.split(path)
    if file.endswith(".gguf"):
        return AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")


def logprobs(model):
    scores = torch.log_softmax(model(torch.tensor([ids])).logits[0].float(), -1)
    return scores[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]


def attempt(name, work):
    try:
        return dict(name=name, **work())
    except Exception as error:
        return dict(name=name, failed=f"{type(error).__name__}: {error}"[:300])


def scored(path):
    with torch.no_grad():
        return dict(logprobs=logprobs(opened(path)).tolist())


def learned():
    from peft import PeftModel

    model = PeftModel.from_pretrained(opened(spec["base"]), spec["adapter"], is_trainable=True)
    found = logprobs(model)
    (found * torch.cos(torch.arange(len(found)))).sum().backward()
    names = {name.replace(".default", ""): p for name, p in model.named_parameters() if "lora_" in name}
    gradients = {name: [p.grad.double().norm().item(), (p.grad.double().flatten() * torch.cos(torch.arange(p.numel(), dtype=torch.float64))).sum().item()] for name, p in names.items()}
    return dict(logprobs=found.tolist(), gradients=gradients)


print(json.dumps([attempt("peft", learned), *(attempt(name, lambda: scored(path)) for name, path in spec["exports"].items())]))
