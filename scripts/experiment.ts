// Runs a controlled experiment: `npm run experiment -- strategies|distillation [--seeds N] [--tokens N] [--model DIR] [--only NAMES]`.
// What has been measured is kept in runs/experiments/, so that an interrupted experiment goes on.
import { parseArgs } from 'node:util'
import { distillation } from './experiments/distillation.ts'
import { strategies } from './experiments/strategies.ts'

const known = { strategies, distillation } as const
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string' },
    tokens: { type: 'string' },
    model: { type: 'string' },
    only: { type: 'string' },
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
  ...(values.only !== undefined && { only: values.only.split(',') }),
})
