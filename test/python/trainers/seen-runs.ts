// Rolls worlds that show images with a toy that transformers scores, and exports them: seen-runs.ts FOLDER MODEL PYTHON.
import { join } from 'node:path'
import { openScorer } from '../../../scripts/servers/try-images.ts'
import { type Policy, plainCapabilities } from '../../../src/base/core/policy.ts'
import { sampled } from '../../../src/base/core/segment.ts'
import { random, seedOf } from '../../../src/base/math/random.ts'
import { exportRun } from '../../../src/run/exchange/export.ts'
import { roll } from '../../../src/run/run/roll.ts'
import { openRenderer } from '../../../src/run/settings/model-source.ts'
import { chart } from '../../../src/worlds/pictures/chart.ts'
import { maze } from '../../../src/worlds/pictures/maze.ts'

const [folder = '', model = '', python = ''] = process.argv.slice(2)
const renderer = await openRenderer(model)
await using scorer = openScorer(python, model)
let last: Promise<unknown> = Promise.resolve()

/** Says letters by its seed; their log-probabilities are those of the toy, one request after the other. */
function dice(out: string): Policy {
  const score = async (ids: readonly number[], from: number, files: readonly string[]) => {
    const scoring = last.then(() => scorer.score(ids, from, files))
    last = scoring.catch(() => {})
    return await scoring
  }
  return {
    name: 'dice',
    capabilities: { ...plainCapabilities, images: true },
    async sample({ prompt, seed }) {
      const draw = random(seedOf('dice', seed))
      const said = Array.from({ length: 4 }, () => 'abcdefgh'[Math.floor(draw() * 8)]).join('')
      const ids = renderer.encodeReply({ role: 'assistant', content: said }, [])
      const files = (prompt.images?.places ?? []).map(({ digest, kind }) =>
        join(out, 'images', `${digest}.${kind}`),
      )
      const scored = await score([...prompt.ids, ...ids], prompt.ids.length, files)
      const segment = sampled({
        ids,
        logprobs: Float32Array.from(scored),
        version: { from: 0, to: 0 },
      })
      const usage = { prompt: prompt.ids.length, sampled: ids.length, seconds: 0 }
      return { kind: 'tokens', segment, finish: { kind: 'stop' }, usage }
    },
    [Symbol.asyncDispose]: async () => {},
  }
}

const worlds = { maze: maze(), chart: chart() }
for (const [name, world] of Object.entries(worlds)) {
  const out = join(folder, name)
  const options = {
    policy: dice(out),
    model: renderer,
    group: 2,
    out,
    limits: { turns: 3 },
    seed: 3,
  }
  for await (const _ of roll(world as typeof worlds.maze, 2, options));
}
for (const to of ['verl', 'slime', 'skyrl'])
  await exportRun(join(folder, 'maze'), { to, out: join(folder, `${to}.jsonl`) })
await exportRun(join(folder, 'chart'), { to: 'trl', out: join(folder, 'trl.jsonl') })
