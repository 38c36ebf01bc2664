"""The official Tinker SDK drives a server of Tinker's API: python sdk_drives.py URL

Prints one line per promise, `ok   …` or `FAIL …`.
"""

import sys

import tinker
from tinker import types

BASE = "espalier/small"


def tell(holds, words):
    print(f"{'ok   ' if holds else 'FAIL '}{words}", flush=True)


def datum(prompt, tokens, logprobs, advantage):
    ids = [*prompt, *tokens]
    before = [0.0] * (len(prompt) - 1)
    return types.Datum(
        model_input=types.ModelInput.from_ints(ids[:-1]),
        loss_fn_inputs={
            "target_tokens": types.TensorData(data=ids[1:], dtype="int64", shape=[len(ids) - 1]),
            "logprobs": types.TensorData(data=[*before, *logprobs], dtype="float32", shape=[len(ids) - 1]),
            "advantages": types.TensorData(
                data=[*before, *[advantage] * len(tokens)], dtype="float32", shape=[len(ids) - 1]
            ),
        },
    )


def main(url):
    service = tinker.ServiceClient(base_url=url, api_key="tml-none")
    names = [each.model_name for each in service.get_server_capabilities().supported_models]
    tell(names == [BASE], f"the SDK {tinker.__version__} opens a session and sees {names}")
    trainer = service.create_lora_training_client(base_model=BASE, rank=8)
    sampler = trainer.save_weights_and_get_sampling_client()
    prompt = [5, 6, 7]
    parameters = types.SamplingParams(max_tokens=8, seed=4, temperature=1.0)
    drawn = sampler.sample(types.ModelInput.from_ints(prompt), 3, parameters).result()
    tell(len(drawn.sequences) == 3, "three samples come from one request")
    first = drawn.sequences[0]
    tokens, logprobs = list(first.tokens), list(first.logprobs)
    scored = sampler.compute_logprobs(types.ModelInput.from_ints([*prompt, *tokens])).result()
    apart = max(abs(a - b) for a, b in zip(scored[len(prompt) :], logprobs))
    tell(apart < 1e-5, f"prompt_logprobs are the sampled ones, {apart:.1e} apart")
    data = [datum(prompt, tokens, logprobs, 1.0)]
    answer = trainer.forward_backward(data, "ppo").result()
    now = list(answer.loss_fn_outputs[0]["logprobs"].data)[len(prompt) - 1 :]
    apart = max(abs(a - b) for a, b in zip(now, logprobs))
    tell(apart < 1e-5, f"the trainer's log-probabilities are the sampler's, {apart:.1e} apart")
    total = answer.metrics["loss:sum"]
    tell(abs(total + len(tokens)) < 1e-3, f"the loss at ratio 1 is minus the advantages, {total:.4f}")
    trainer.optim_step(types.AdamParams(learning_rate=0.01)).result()
    sampler = trainer.save_weights_and_get_sampling_client()
    after = sampler.compute_logprobs(types.ModelInput.from_ints([*prompt, *tokens])).result()
    rise = sum(after[len(prompt) :]) - sum(logprobs)
    tell(rise > 0, f"a step makes what was rewarded likelier, by {rise:.3f} nats")
    saved = trainer.save_state("sdk").result()
    tell(str(saved.path).startswith("tinker://"), f"weights are saved as {saved.path}")


if __name__ == "__main__":
    main(sys.argv[1])
    print("all told")
