// Simulates large clusters from measured costs: `npx tsx scripts/simulate-cluster.ts FIGURES [--workers N] [--json]`, where
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
const [workers, concurrency] = [Number(values.workers), Number(values.concurrency)]
const rows = [10, 30, 60, 180, 600].flatMap(seconds =>
  [1, 8].map(cores => {
    const cluster = { workers, concurrency, seconds, cores, lease: 30 }
    return { seconds, cores, ...simulate(costs, cluster) }
  }),
)
const percent = (share: number): string => `${(100 * share).toFixed(0)} %`
const line = ({ seconds, cores, ...out }: Outcome & { seconds: number; cores: number }): string =>
  `| ${seconds} s | ${cores} | ${out.perSecond.toFixed(0)} | ${percent(out.working)} | ${percent(out.database)} | ${percent(out.coordinator)} | ${out.wait.median.toFixed(2)} s, ${out.wait.p99.toFixed(2)} s |`

if (values.json) console.log(JSON.stringify({ costs, workers, concurrency, rows }))
else {
  const shown = Object.entries(costs).map(([name, value]) => `${name} ${value.toFixed(2)}`)
  console.log(`milliseconds of a core: ${shown.join(', ')}; ${workers} workers of ${concurrency}`)
  console.log(
    '| an attempt takes | cores of the database | rollouts/s | places at work | database busy | coordinator busy | a place waits, usual and 99th |',
  )
  console.log('|---|---|---|---|---|---|---|')
  for (const row of rows) console.log(line(row))
}
