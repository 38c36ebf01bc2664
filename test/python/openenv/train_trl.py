"""A few steps of TRL's GRPOTrainer on an environment written in TypeScript: train_trl.py URL.

The environment is served by `espalier environment serve` and played through OpenEnv's own client, by TRL's
`environment_factory`: TRL resets the worlds, runs the tool calls and asks for the reward. The model is tiny and
random, which calls no tools by itself, so what it says is drawn from a few words; everything else (prompts, tool loop,
masks, rewards, advantages, loss, gradient) is TRL's own. Prints one line of JSON.
"""

import json
import os
import random
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import trl
from datasets import Dataset
from openenv.core.generic_client import GenericEnvClient
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
from trl import GRPOConfig, GRPOTrainer

URL = sys.argv[1]
ROOT = Path(__file__).resolve().parents[3]
STEPS, GENERATIONS = 3, 4
draw = random.Random(1)


class Shop:
    """One rollout's world, as TRL wants it: what is public is a tool of the policy."""

    worlds = 0

    def __init__(self):
        self._client = GenericEnvClient(base_url=URL).sync()
        self._client.connect()
        Shop.worlds += 1
        self._reward = None

    def reset(self, index=0, **_):
        self._reward = None
        return self._client.reset(index=index).observation["text"]

    def sell(self, pears: int) -> str:
        """
        Sells pears.

        Args:
            pears: how many

        Returns:
            What is left.
        """
        return self._act("sell", {"pears": pears})

    def get_reward(self) -> float:
        if self._reward is None:
            self._act("say", {"text": "sold"})
        return self._reward

    def _act(self, tool, arguments):
        step = self._client.step({"type": "call_tool", "tool_name": tool, "arguments": arguments})
        if step.done:
            self._reward = float(step.reward)
        return json.dumps(step.observation.get("result"))


class Talker(LlamaForCausalLM):
    """A model that is trained as it is, and whose words are drawn."""

    def generate(self, input_ids=None, **_):
        rows = []
        for row in input_ids:
            text = tokenizer.decode(row)
            if "<tool_response>" in text.rsplit("<|im_start|>user", 1)[-1]:
                said = "sold"
            else:
                call = {"name": "sell", "arguments": {"pears": draw.randint(1, 3)}}
                said = f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
            rows.append(tokenizer.encode(said, add_special_tokens=False) + [tokenizer.eos_token_id])
        longest = max(map(len, rows))
        padded = [row + [tokenizer.pad_token_id] * (longest - len(row)) for row in rows]
        return torch.cat([input_ids, torch.tensor(padded)], dim=1)


tokenizer = AutoTokenizer.from_pretrained(ROOT / "models" / "chatml-bytes")
# A template that TRL knows how to read calls from.
tokenizer.chat_template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
torch.manual_seed(1)
model = Talker(
    LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=4096, pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
    )
)
before = [parameter.detach().clone() for parameter in model.parameters()]
rows = [{"prompt": [{"role": "user", "content": ""}], "index": index} for index in range(4)]
with tempfile.TemporaryDirectory() as folder:
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rows),
        environment_factory=Shop,
        args=GRPOConfig(
            output_dir=folder, max_steps=STEPS, per_device_train_batch_size=GENERATIONS, num_generations=GENERATIONS,
            max_completion_length=512, learning_rate=1e-3, logging_steps=1, report_to=[], use_cpu=True, bf16=False,
            save_strategy="no", disable_tqdm=True, beta=0.0,
        ),
    )
    trainer.train()
logged = [entry for entry in trainer.state.log_history if "loss" in entry]
moved = max(float((a - b.detach()).abs().max()) for a, b in zip(before, model.parameters()))
found = {
    "steps": len(logged),
    "rewards": [entry["reward"] for entry in logged],
    "spread": [entry["reward_std"] for entry in logged],
    "losses": [entry["loss"] for entry in logged],
    "moved": moved,
    "worlds": Shop.worlds,
}
print(json.dumps(found), flush=True)
