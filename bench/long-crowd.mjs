// Rolls a crowd of rollouts at once into a run folder and prints what that took, as JSON. A program of its own, without
// a loader for TypeScript and without what other measurements leave behind, so that its memory is that of the crowd.
// node long-crowd.mjs SERVER_URL ROLLOUTS FOLDER MODEL
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { z } from 'zod'
import { environment, openPolicy, roll, tool } from '../dist/index.js'
import { openRenderer } from '../dist/tokens.js'

const [url, count, out, model] = process.argv.slice(2)
const rollouts = Number(count)

/** A world whose tool answers with a few sentences. */
const pages = environment({
  name: 'pages',
  task: z.object({}),
  open: () => ({
    opening: [{ role: 'user', content: 'Read all pages and tell me what they say.' }],
    tools: {
      read: tool({
        inputSchema: z.object({ page: z.int() }),
        execute: ({ page }) =>
          `Page ${page}. ${'The orchard sold pears in week seventeen. '.repeat(4)}`,
      }),
    },
  }),
  reward: { done: () => 1 },
})

const renderer = await openRenderer(model)
const policy = await openPolicy(`sglang:${url}`, { connections: rollouts })
const delay = monitorEventLoopDelay({ resolution: 5 })
const started = performance.now()
let most = 0
const watch = setInterval(() => {
  most = Math.max(most, process.memoryUsage.rss())
}, 100)
delay.enable()
const groups = roll(
  pages,
  Array.from({ length: rollouts }, (_, id) => ({ id })),
  {
    policy,
    model: renderer,
    group: 1,
    concurrency: rollouts,
    limits: { turns: 8 },
    out,
  },
)
for await (const { unscored } of groups) {
  if (unscored[0]) throw new Error(JSON.stringify(unscored[0].outcome))
}
clearInterval(watch)
delay.disable()
const seconds = (performance.now() - started) / 1000
await policy[Symbol.asyncDispose]()
console.log(
  JSON.stringify({
    rollouts,
    megabytes: most / 1e6,
    lagP99: delay.percentile(99) / 1e6,
    seconds,
  }),
)
