// Rolls attempts that are all in flight at one time and see three images each, none of which another one sees, and
// prints what they hold, as JSON. A program of its own, so that its memory is that of the crowd.
// node --expose-gc --import tsx bench/images/crowd.ts ATTEMPTS BYTES_OF_AN_IMAGE FOLDER
import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { ImagePart } from '@espalier/text'
import { z } from 'zod'
import type { Policy } from '../../src/base/core/policy.ts'
import { environment, roll } from '../../src/index.ts'
import { plainCapabilities, sampled } from '../../src/policies.ts'
import { Canvas } from '../../src/worlds/pictures/canvas.ts'
import { openSeeingRenderer } from '../../test/rolling.ts'

const [attempts, bytes, out] = process.argv.slice(2)
const count = Number(attempts)
const images = 3
const renderer = await openSeeingRenderer()
const head = new Canvas(448, 448, [9, 9, 9]).toPng()

/** Bytes that nobody has seen, behind the header of a PNG: only that is read here. */
function picture(): ImagePart {
  const data = Buffer.concat([head, randomBytes(Number(bytes))]).toString('base64')
  return { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }
}

const pictures = environment({
  name: 'pictures',
  task: z.object({ name: z.string() }),
  open: () => ({
    opening: [{ role: 'user', content: [picture()] }],
    respond: (_, { turn }) => (turn < images - 1 ? [picture()] : undefined),
  }),
  reward: { one: () => 1 },
})

interface Held {
  readonly heap: number
  readonly resident: number
}

/** What this process holds once nothing is left to collect. */
async function measure(): Promise<Held> {
  for (let round = 0; round < 4; round++) {
    await setImmediate()
    globalThis.gc?.()
  }
  const { heapUsed, external, rss } = process.memoryUsage()
  return { heap: (heapUsed + external) / 1e6, resident: rss / 1e6 }
}

const held: Held[] = []
const ids = renderer.tokenizer.encode('next<|im_end|>')
let waiting: (() => void)[] = []

/** Lets no attempt go on before all wait for a sample. */
async function waitForAll(): Promise<void> {
  const all = new Promise<void>(resolve => waiting.push(resolve))
  if (waiting.length === count) {
    held.push(await measure())
    const free = waiting
    waiting = []
    // Answers of a server come one after another.
    for (const go of free) {
      go()
      await setImmediate()
    }
  }
  await all
}

const policy: Policy = {
  name: 'waiting',
  capabilities: { ...plainCapabilities, images: true },
  async sample({ prompt }) {
    await waitForAll()
    const logprobs = Float32Array.from(ids, () => -0.5)
    return {
      kind: 'tokens',
      segment: sampled({ ids: ids.slice(), logprobs, version: { from: 0, to: 0 } }),
      finish: { kind: 'stop' },
      usage: { prompt: prompt.ids.length, sampled: ids.length, seconds: 0 },
    }
  },
  describe: () => Promise.resolve({ model: 'waiting', version: 0 }),
  async [Symbol.asyncDispose]() {},
}

const before = await measure()
const tasks = Array.from({ length: count }, (_, id) => ({ id, name: `${id}` }))
const options = { policy, model: renderer, group: 1, concurrency: count, out: out! }
for await (const { unscored } of roll(pictures, tasks, options)) {
  if (unscored[0]) throw new Error(JSON.stringify(unscored[0].outcome))
}
const peak = process.resourceUsage().maxRSS / 1000
console.log(JSON.stringify({ before, held, peak }))
