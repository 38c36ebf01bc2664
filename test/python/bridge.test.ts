import { spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const program = fileURLToPath(
  new URL('../../integrations/python/espalier_bridge.py', import.meta.url),
)
const hasPython = spawnSync('python3', ['--version']).status === 0
if (!hasPython) console.warn('SKIPPED: no python3 here; the bridge was not run.')

/** What the bridge answers to requests where Python has modules of these names and nothing else. */
function answers(modules: Readonly<Record<string, string>>, requests: readonly object[]) {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-bridge-'))
  for (const [module, text] of Object.entries(modules)) {
    writeFileSync(join(folder, `${module}.py`), text)
  }
  const input = requests.map((request, id) => `${JSON.stringify({ id, ...request })}\n`).join('')
  // Without the packages of this machine: only the standard library and the folder.
  const { stdout } = spawnSync('python3', ['-S', '-B', program], {
    input,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, PYTHONPATH: folder },
  })
  const lines = stdout.trim().split('\n')
  return lines.map(line => JSON.parse(line) as { ok?: unknown; error?: string })
}

const host = (name: string, given: object = {}) => ({
  op: 'hello',
  package: name,
  arguments: given,
})

/** Why the bridge does not host a package. */
function hello(name: string, modules: Readonly<Record<string, string>> = {}): string {
  return answers(modules, [host(name)])[0]!.error!
}

/** Opens a world of a task and takes turns in it, each of them the calls' actions or a text. */
function play(task: object, turns: readonly (readonly unknown[] | string)[]): object[] {
  const steps = turns.map(turn => {
    const actions = typeof turn === 'string' ? [] : turn
    const calls = actions.map((action, at) => ({
      id: `c${at}`,
      arguments: JSON.stringify({ action }),
    }))
    const action = { text: typeof turn === 'string' ? turn : '', calls }
    return { op: 'step', world: 'w', action }
  })
  return [{ op: 'open', world: 'w', task, seed: 1 }, ...steps]
}

describe.skipIf(!hasPython)('a package that cannot be hosted', () => {
  it('is named where it is not installed, with what it was tried as', () => {
    expect(hello('nothere')).toMatch(
      /^ModuleNotFoundError: nothere was tried as an environment of verifiers, but \S*python\S* has no module nothere and no module verifiers$/,
    )
    expect(hello('not-here')).toContain('has no module not_here and no module verifiers')
    expect(hello('nothere:Game')).toMatch(
      /nothere:Game was tried as a game .* has no module nothere$/,
    )
    expect(hello('gymnasium')).toMatch(/as a game with reset and step, but .*no module gymnasium$/)
    expect(hello('reasoning_gym')).toMatch(/reasoning_gym was tried as .*no module reasoning_gym$/)
  })

  it('is not called missing where it is installed and something else is not', () => {
    expect(hello('games', { games: '' })).toMatch(
      /has no module verifiers; a game is named MODULE:CLASS$/,
    )
    const broken = hello('games:Game', { games: 'import deeper.still' })
    expect(broken).toMatch(/games:Game was tried as a game .* has no module deeper$/)
    const inner = hello('games:Game', { games: 'import json.nothing' })
    expect(inner).toMatch(/games:Game was tried as .*: No module named 'json.nothing'$/)
  })
})

// Draws its questions as reasoning_gym does: question i of seed s from s + i.
const reasoningGym = {
  reasoning_gym: `
import sys, types
sys.modules["reasoning_gym.utils"] = types.SimpleNamespace(extract_answer=lambda text: text)
class Numbers:
    def __init__(self, seed, size):
        self.seed = seed
    def __getitem__(self, at):
        return {"question": str(self.seed + at), "answer": str(self.seed + at)}
    def score_answer(self, answer, entry):
        return float(int(answer) == int(entry["answer"]))
class Broken(Numbers):
    def score_answer(self, answer, entry):
        raise KeyError("score")
def create_dataset(name, **arguments):
    return {"numbers": Numbers, "broken": Broken}[name](**arguments)
`,
}

describe.skipIf(!hasPython)('a dataset of reasoning_gym', () => {
  const numbers = host('reasoning_gym', { dataset: 'numbers', size: 50 })

  it('holds out questions that are not among those to train on', () => {
    const at = (split: string) =>
      Array.from({ length: 50 }, (_, index) => ({
        ...{ op: 'open', world: `${split}-${index}`, seed: 1 },
        task: { split, index },
      }))
    const opened = answers(reasoningGym, [numbers, ...at('train'), ...at('held-out')]).slice(1)
    expect(opened).toHaveLength(100)
    expect(new Set(opened.map(({ ok }) => JSON.stringify(ok))).size).toBe(100)
  })

  it('gives 0 for words that its scorer throws at, and fails where that scores nothing', () => {
    const task = { split: 'train', index: 0 }
    const said = (dataset: string) =>
      answers(reasoningGym, [
        host('reasoning_gym', { dataset }),
        ...play(task, ['I am sorry', '1']),
      ]).slice(2)
    expect(said('numbers')).toMatchObject([
      {
        ok: {
          reward: 0,
          done: true,
          observed: [{ content: expect.stringMatching(/cannot be read: ValueError/) }],
        },
      },
      { ok: { reward: 1, done: true } },
    ])
    expect(said('broken')[0]!.error).toBe("KeyError: 'score'")
  })
})

// A game that refuses to be drawn in a way it does not list, as soon as it is reset and not before.
const gymnasium = {
  gymnasium: `
class Integers:
    def __init__(self, n):
        self.n, self.shape = n, ()
class Pairs:
    shape, dtype = (2,), type("dtype", (), {"kind": "f"})
    def __str__(self):
        return "Pairs(-1, 1)"
    def contains(self, value):
        return all(-1 <= each <= 1 for each in value)
class Tuple:
    def contains(self, value):
        return True
    def __str__(self):
        return "Tuple(Pairs, Pairs)"
class Game:
    def __init__(self, modes, space, render_mode):
        self.metadata, self.action_space, self.render_mode = {"render_modes": modes}, space, render_mode
    def reset(self, seed=None):
        assert self.render_mode in (None, *self.metadata["render_modes"]), "unsupported render mode"
        self.sum = 0
        return 0, {}
    def render(self):
        return "drawn"
    def step(self, action):
        self.sum += sum(action) if hasattr(action, "__len__") else action
        return self.sum, 0.5, self.sum >= 3, False, {}
games = {
    "Drawn": (["ansi"], Integers(3)), "Undrawn": (["human"], Integers(3)),
    "Pairs": (["human"], Pairs()), "Tuples": (["human"], Tuple()),
}
def make(name, render_mode=None):
    return Game(*games[name], render_mode)
`,
  numpy: 'asarray = lambda value, dtype: value',
}

describe.skipIf(!hasPython)('a game of gymnasium', () => {
  const played = (id: string, turns: Parameters<typeof play>[1] = []) =>
    answers(gymnasium, [host('gymnasium', { id }), ...play({ seed: 1 }, turns)])
  const said = (...texts: string[]) =>
    texts.map((content, at) => ({ role: 'tool', tool_call_id: `c${at}`, content }))

  it('is drawn where it lists that it can draw itself as text', () => {
    expect(played('Drawn')[1]).toMatchObject({ ok: { opening: [{ content: 'drawn\n0' }] } })
    expect(played('Undrawn')[1]).toMatchObject({ ok: { opening: [{ content: '0' }] } })
  })

  it('takes the actions of one turn one after the other, and answers each', () => {
    expect(played('Undrawn', [[1, 2, 2]])[2]!.ok).toEqual({
      observed: said('1', '3', 'Error: the game is over; nothing was done.'),
      ...{ reward: 1, done: true },
    })
  })

  it('takes lists of numbers, and tells of those that are none of its actions', () => {
    const [, opened, step] = played('Pairs', [
      [
        [1, 0.5],
        [1, 2],
      ],
    ])
    const items = { type: 'array', items: { type: 'number' }, minItems: 2, maxItems: 2 }
    expect(opened).toMatchObject({
      ok: { tools: [{ parameters: { properties: { action: items } } }] },
    })
    expect(step!.ok).toEqual({
      observed: said('1.5', 'Error: [1, 2] is not in Pairs(-1, 1).'),
      ...{ reward: 0.5, done: false },
    })
  })

  it('is refused where its actions can neither be chosen as numbers nor said', () => {
    expect(played('Tuples')[0]!.error).toMatch(/its actions are Tuple\(Pairs, Pairs\)/)
  })
})

// Asked for tasks of evaluation, verifiers gives those of training where there are no others.
const verifiers = {
  verifiers: `
import sys, types
class Environment:
    pass
sys.modules["verifiers.types"] = types.SimpleNamespace()
sys.modules["verifiers.clients"] = types.SimpleNamespace(Client=object)
`,
  sums: `
class Rows(list):
    def select(self, places):
        return Rows(self[at] for at in places)
class Sums:
    def __init__(self, train, evaluation):
        self.dataset, self.eval_dataset = (None if size is None else Rows(range(size)) for size in (train, evaluation))
    def get_dataset(self):
        return self.dataset
    def get_eval_dataset(self):
        return self.dataset if self.eval_dataset is None else self.eval_dataset
def load_environment(train=None, evaluation=None):
    return Sums(train, evaluation)
`,
}

describe.skipIf(!hasPython)('an environment of verifiers', () => {
  it('holds out every fourth task where it has none for evaluation, and trains on none of those', () => {
    const splits = (given: object) => answers(verifiers, [host('sums', given)])[0]
    expect(splits({ train: 9 })).toMatchObject({ ok: { splits: { train: 7, 'held-out': 2 } } })
    const both = { train: 9, evaluation: 3 }
    expect(splits(both)).toMatchObject({ ok: { splits: { train: 9, 'held-out': 3 } } })
    expect(splits({ evaluation: 3 })).toMatchObject({ ok: { splits: { 'held-out': 3 } } })
  })
})
