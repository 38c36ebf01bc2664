"""The gepa package on the house's rules: prints the best validation score and what it took, seed by seed."""

import json
import sys
import urllib.request

import gepa
from gepa.adapters.default_adapter.default_adapter import DefaultAdapter

url, tasks, seeds, calls = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]), int(sys.argv[4])
asked = 0


def ask(messages):
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    body = json.dumps({"messages": list(messages)}).encode()
    request = urllib.request.Request(f"{url}/chat/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def assistant(messages):
    global asked
    asked += 1
    return ask(messages)


class Quiet:
    def log(self, message):
        pass


def examples(kinds):
    return [
        {"input": f"Question of kind {kind}.", "additional_context": {}, "answer": f"answer {kind}"} for kind in kinds
    ]


for seed in seeds:
    asked = 0
    found = gepa.optimize(
        seed_candidate={"system": "Be helpful."},
        trainset=examples(tasks["reflected"]),
        valset=examples(tasks["validation"]),
        adapter=DefaultAdapter(model=assistant),
        reflection_lm=ask,
        max_metric_calls=calls,
        use_merge=True,
        cache_evaluation=True,
        logger=Quiet(),
        seed=seed,
    )
    best = max(found.val_aggregate_scores)
    print(json.dumps({"seed": seed, "best": best, "asked": asked, "candidates": len(found.candidates)}))
