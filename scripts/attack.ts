// Attacks the program with hostile input: `npm run attack -- [--cases N] [--seed N] [--only NAME] [--json]`.
import '../src/offers.ts'
import { parseArgs } from 'node:util'
import { type Held, runAttack } from '../test/attack/attack.ts'
import { attacks } from '../test/attack/attacks.ts'

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
const chosen = attacks.filter(
  ({ name }) => values.only === undefined || name.startsWith(values.only),
)
const seed = Number(values.seed)
const perThousand = Number(values.cases) / chosen.reduce((sum, { share }) => sum + share, 0)
if (chosen.length === 0 || !Number.isInteger(seed) || !(perThousand > 0)) {
  const names = attacks.map(({ name }) => name).join(', ')
  console.error(`attack: --cases and --seed are whole numbers, --only begins one of: ${names}`)
  process.exit(2)
}

const started = performance.now()
const all: Held[] = []
if (!values.json) console.log('attack            promise     cases   held   slowest')
for (const attack of chosen) {
  const held = await runAttack(attack, { seed, cases: Math.round(attack.share * perThousand) })
  all.push(held)
  if (values.json) console.log(JSON.stringify(held))
  else console.log(rowOf(held))
}
const cases = all.reduce((sum, held) => sum + held.cases, 0)
const broken = all.flatMap(held => held.broken)
if (!values.json) {
  console.log(
    `${cases} cases in ${Math.round((performance.now() - started) / 1000)} s, seed ${seed}`,
  )
}
// Services that were attacked are still listening.
process.exit(broken.length > 0 ? 1 : 0)

function rowOf({ name, promise, cases: count, broken: told, slowest }: Held): string {
  const held = told.length === 0 ? 'all' : 'NO'
  const row = `${name.padEnd(18)}${promise.padEnd(8)}${String(count).padStart(9)}   ${held.padEnd(6)} ${slowest.toFixed(0).padStart(5)} ms`
  return [row, ...told.map(each => `  ${each}`)].join('\n')
}
