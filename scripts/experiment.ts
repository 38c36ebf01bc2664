// Runs a controlled experiment: `npm run experiment -- strategies|distillation|self-play [--seeds N] [--tokens N] [--steps N] [--model DIR] [--only NAMES] [--jobs N]`.
// What has been measured is kept in runs/experiments/, so that an interrupted experiment goes on.
import '../src/offers.ts'
import { parseArgs } from 'node:util'
import { distillation } from './experiments/distillation.ts'
import { selfPlay } from './experiments/self-play.ts'
import { strategies } from './experiments/strategies.ts'

const known = { strategies, distillation, 'self-play': selfPlay } as const
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string' },
    tokens: { type: 'string' },
    model: { type: 'string' },
    only: { type: 'string' },
    steps: { type: 'string' },
    jobs: { type: 'string' },
    single: { type: 'string' },
  },
})
const [name = ''] = positionals
if (!Object.hasOwn(known, name)) {
  console.error(`No experiment called "${name}". Known: ${Object.keys(known).join(', ')}.`)
  process.exit(2)
}
await known[name as keyof typeof known]({
  ...(values.seeds !== undefined && { seeds: Number(values.seeds) }),
  ...(values.tokens !== undefined && { tokens: Number(values.tokens) }),
  ...(values.model !== undefined && { model: values.model }),
  ...(values.steps !== undefined && { steps: Number(values.steps) }),
  ...(values.jobs !== undefined && { jobs: Number(values.jobs) }),
  ...(values.single !== undefined && { single: values.single }),
  ...(values.only !== undefined && { only: values.only.split(',') }),
})
