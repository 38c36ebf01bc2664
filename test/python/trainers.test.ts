import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'

/** Runs lines of Python beside our integrations; the standard library is enough for these. */
function python(code: string): string {
  const path = { PYTHONPATH: 'integrations/python' }
  const { stdout, stderr, status } = spawnSync('python3', ['-c', code], {
    encoding: 'utf8',
    env: { ...process.env, ...path },
  })
  if (status !== 0) throw new Error(stderr)
  return stdout.trim()
}

describe('what trainers are handed', () => {
  it('slime compares attempts that were rolled one by one, each once', () => {
    const code = `
from types import SimpleNamespace as Made
import espalier_slime
def sample(group, index, reward, advantage=0.0, alone=True):
    return Made(group_index=group, index=index, reward=reward, remove_sample=False,
                metadata={"espalier": {"alone": alone, "advantage": advantage}})
samples = [sample(0, 0, 1.0), sample(0, 0, 1.0), sample(0, 1, 0.0), sample(1, 2, 0.5, 0.25, False)]
raw, compared = espalier_slime.post_process_rewards(Made(grpo_std_normalization=False), samples)
print(raw, compared)`
    expect(python(code)).toBe('[1.0, 1.0, 0.0, 0.5] [0.5, 0.5, -0.5, 0.25]')
  })

  it('verl and SkyRL get no log-probability that was not there', () => {
    const code = `
import espalier_verl, espalier_skyrl
def row(logprobs):
    return dict(prompt_ids=[1], response_ids=[2, 3], response_mask=[1, 1], response_logprobs=logprobs,
                token_level_scores=[0, 1], advantages=[1, 1], espalier=dict(trajectory="t"))
known, none = row([-0.5, -0.25]), row(None)
print(espalier_verl.padded([known, known], 1, 3, 0)["rollout_log_probs"][0])
print("rollout_log_probs" in espalier_verl.padded([none, none], 1, 3, 0))
entry = lambda logprobs: dict(rollout_logprobs=logprobs)
for mixed in (lambda: espalier_verl.padded([known, none], 1, 3, 0),
              lambda: espalier_skyrl.to_generator_output([entry([0.0]), entry(None)], dict)):
    try:
        mixed()
    except ValueError as error:
        print(error)`
    expect(python(code).split('\n')).toEqual([
      '[-0.5, -0.25, 0.0]',
      'False',
      expect.stringMatching(/^some rows have log-probabilities and others have none/),
      expect.stringMatching(/^some rows have log-probabilities and others have none/),
    ])
  })

  it('verl’s estimator refuses batches that bring no advantages, as the agent loop’s do', () => {
    const code = `
from types import SimpleNamespace as Made
import espalier_verl
mask = Made(shape=(1, 2))
try:
    espalier_verl.token_advantages(Made(), mask)
except ValueError as error:
    print(error)`
    expect(python(code)).toMatch(/agent loop rolls one attempt at a time.*adv_estimator=grpo/)
  })

  it('groups that do not match the prompts one by one are refused, with the reason', () => {
    const code = `
from types import SimpleNamespace as Made
from espalier_client import Client
import espalier_trl
def seats(client, tasks, **options):
    return [{"index": index, "seat": seat, "group": "x", "rows": []} for index in range(len(tasks)) for seat in ("buyer", "seller")]
def cancelled(client, tasks, **options):
    return [{"index": 1, "group": "x", "rows": []}]
for roll in (seats, cancelled):
    Client.roll = roll
    try:
        espalier_trl.rollout(Client())(["a", "b"], Made(state=Made(global_step=1)))
    except ValueError as error:
        print(error)`
    expect(python(code).split('\n')).toEqual([
      expect.stringMatching(
        /^every task has a group for each of the seats buyer, seller, .*--seat/,
      ),
      '1 groups came of 2 tasks: the submission was cancelled',
    ])
  })

  it('a world of TRL’s that the service closed meanwhile does not keep the next from opening', () => {
    const code = `
import espalier_trl
from espalier_client import Client, EspalierError
class Service(Client):
    def open_world(self, task, seed=0):
        return {"id": "w", "tools": []}
    def close_world(self, world, answer=None):
        if closed: raise EspalierError(closed.pop(), "no open world")
closed = []
world = espalier_trl.environment(Service(), {})()
for code in (404, 400):
    world.reset()
    closed.append(code)
    try:
        world.reset()
        print("open")
    except EspalierError as error:
        print(error)`
    expect(python(code)).toBe('open\n400: no open world')
  })

  it('TRL’s replay refuses endings that do not count alike', () => {
    const code = `
import espalier_trl
row = {"trajectory": "t", "rows": 1, "parts": 1, "weight": 0.5, "env_mask": [1]}
try:
    espalier_trl._members({"rows": [row]}, 1)
except ValueError as error:
    print(error)`
    expect(python(code)).toMatch(/weight 0.5.*--weighting uniform/)
  })
})
