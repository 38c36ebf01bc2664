import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** Scores tokens with PyTorch, as the reference for servers. */
export interface Torch extends AsyncDisposable {
  /** Log-probabilities of `ids` from `from` on, at a temperature. */
  score(ids: readonly number[], from: number, temperature: number): Promise<readonly number[]>
}

const program = `
import json, sys, torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
print("ready", flush=True)
for line in sys.stdin:
    ids, start, temperature = json.loads(line)
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1].float() / temperature
    own = logits.log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    print(json.dumps(own[start - 1:].tolist()), flush=True)
`

/** Loads the model into a Python that has torch and transformers. */
export async function openTorch(python: string, model: string): Promise<Torch> {
  const child = spawn(python, ['-c', program, model], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next()
    if (done) throw new Error(`${python} ended: it needs torch and transformers`)
    return value
  }
  while ((await next()) !== 'ready');
  return {
    async score(ids, from, temperature) {
      child.stdin.write(`${JSON.stringify([ids, from, temperature])}\n`)
      return JSON.parse(await next()) as number[]
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end()
    },
  }
}
