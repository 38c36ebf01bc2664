// Simulates large clusters from measured costs: `npx tsx scripts/simulate-cluster.ts FIGURES [--workers N] [--concurrency N] [--cores N] [--json]`, where
// FIGURES is what `npm run -s bench -- cluster --json` printed.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { type Costs, type Outcome, simulate } from '../bench/cluster/simulate.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    workers: { type: 'string', default: '1000' },
    concurrency: { type: 'string', default: '16' },
    cores: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
})

const cost = z.number().positive()
const figures = z.object({
  tables: z.object({ cpu: cost, presence: z.object({ beat: cost, look: cost }) }),
  clustered: z.array(z.object({ workers: z.int(), coordinator: cost })).min(1),
})

function readCosts(path: string | undefined): Costs {
  if (path === undefined) {
    console.error('Name the file that `npm run -s bench -- cluster --json` was printed into.')
    process.exit(2)
  }
  const read = figures.safeParse(JSON.parse(readFileSync(path, 'utf8')))
  if (!read.success) {
    console.error(`${path} holds no figures of the cluster: ${z.prettifyError(read.error)}`)
    process.exit(2)
  }
  const { tables, clustered } = read.data
  const { coordinator } = clustered.at(-1)!
  return {
    attempt: tables.cpu,
    beat: tables.presence.beat,
    look: tables.presence.look,
    coordinator,
  }
}

const costs = readCosts(positionals[0])
const [workers, concurrency, cores] = [values.workers, values.concurrency, values.cores].map(
  Number,
) as [number, number, number]
if (![workers, concurrency, cores].every(number => Number.isInteger(number) && number > 0)) {
  console.error('--workers, --concurrency and --cores are whole numbers above 0.')
  process.exit(2)
}
const rows = [10, 20, 30, 60, 180, 600].map(seconds => ({
  seconds,
  ...simulate(costs, { workers, concurrency, seconds, cores, lease: 30 }),
}))
const percent = (share: number): string => `${(100 * share).toFixed(0)} %`
const time = (seconds: number): string =>
  seconds < 1 ? `${(1000 * seconds).toFixed(1)} ms` : `${seconds.toFixed(1)} s`
const line = ({ seconds, ...out }: Outcome & { seconds: number }): string =>
  `| ${seconds} s | ${out.perSecond.toFixed(0)} | ${percent(out.working)} | ${percent(out.database)} | ${percent(out.coordinator)} | ${time(out.wait.median)}, ${time(out.wait.p99)} |`

if (values.json) console.log(JSON.stringify({ costs, workers, concurrency, cores, rows }))
else {
  const shown = Object.entries(costs).map(([name, value]) => `${name} ${value.toFixed(2)}`)
  console.log(
    `milliseconds of a core: ${shown.join(', ')}; ${workers} workers of ${concurrency}, ${cores} for the database`,
  )
  console.log(
    '| an attempt takes | rollouts/s | places at work | database busy | coordinator busy | a place waits: usual, 99th of 100 |',
  )
  console.log('|---|---|---|---|---|---|')
  for (const row of rows) console.log(line(row))
}
