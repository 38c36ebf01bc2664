// From demonstrations to a better policy, in an environment of your own: a small model is taught by
// a player that knows the tools and is right seven times in ten, and learns the rest from its own
// attempts. It is evaluated on pairs of numbers that it was never shown and never tried.
//   npx tsx examples/301-train.ts [STEPS]
import { environment, teach, tool, train } from 'espalier'
import { random, seedOf } from 'espalier/math'
import { z } from 'zod'

const shop = environment({
  name: 'shop',
  task: z.object({ stock: z.int(), wanted: z.int() }),
  open({ data }) {
    let left = data.stock
    const count = tool({ inputSchema: z.object({}), execute: () => left })
    const sell = tool({
      inputSchema: z.object({ pears: z.int() }),
      execute: ({ pears }) => (left -= pears),
    })
    const content = `sell ${data.wanted} pears, or say no if there are too few`
    const opening = [{ role: 'user', content }] as const
    return { opening, tools: { count, sell }, report: () => ({ left }) }
  },
  reward: {
    right: ({ task: { data }, report, answer }) =>
      Number(data.wanted > data.stock ? answer === 'no' : report.left === data.stock - data.wanted),
    looked: { weight: 0.1, score: ({ calls }) => Number(calls[0]?.tool === 'count') },
  },
})

// All pairs of numbers from 1 to 12, shuffled; a quarter of them is held out.
const pairs = Array.from({ length: 144 }, (_, index) => ({
  stock: 1 + (index % 12),
  wanted: 1 + Math.floor(index / 12),
  place: random(seedOf('shop', index))(),
}))
  .sort((one, other) => one.place - other.place)
  .map(({ stock, wanted }) => ({ stock, wanted }))
const heldOut = pairs.slice(0, 36)
const tasks = pairs.slice(36)

const started = performance.now()
const seconds = (): string => `${((performance.now() - started) / 1000).toFixed(0)} s`

// Every pair is shown many times, and six decisions in ten are guesses: the result is a policy that
// knows how to answer, but not reliably which answer is right.
const shown = Array.from({ length: 2000 }, (_, index) => tasks[index % tasks.length]!)
const small = await teach(shop, shown, {
  seed: 1,
  epochs: 4,
  batch: 16,
  shape: { width: 32, layers: 2, heads: 2, hidden: 64, context: 256 },
  show({ task: { id, data }, turn }) {
    if (turn === 0) return { tool: 'count' }
    if (turn === 2) return 'done'
    const draw = random(seedOf('guess', id))
    const isEnough = draw() < 0.4 ? data.wanted <= data.stock : draw() < 0.5
    return isEnough ? { tool: 'sell', input: { pears: data.wanted } } : 'no'
  },
})
console.log(`taught by ${shown.length} demonstrations, ${seconds()}`)

const steps = Number(process.argv[2] ?? 24)
const trained = await train(shop, tasks, {
  policy: small,
  group: 8,
  steps,
  seed: 1,
  tasksPerStep: 24,
  limits: { turns: 4, newTokens: 24 },
  learningRate: { kind: 'linear', from: 2e-3, to: 4e-4, steps },
  // Four attempts at each: one says little about a policy that samples.
  heldOut: heldOut.flatMap(task => Array.from({ length: 4 }, () => task)),
  onStep: ({ step, success }) => {
    if (step % 10 === 0) console.log(`step ${step}  success ${success.toFixed(2)}  ${seconds()}`)
  },
})
const share = (success: number, { low, high }: { low: number; high: number }): string =>
  `${success.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`
console.log(
  `success with pairs it never saw: ${share(trained.successBefore, trained.intervalBefore)} before, ` +
    `${share(trained.successAfter, trained.intervalAfter)} after ${trained.sampledTokens} sampled tokens`,
)
await small[Symbol.asyncDispose]()
