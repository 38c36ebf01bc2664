import { random, seedOf } from '../src/base/math/random.ts'
import { type Simulated, simulateTraining } from '../test/simulated-training.ts'
import { type Expectation, missedOf } from './expectation.ts'

/** One machine and one set of tasks, a quarter of which are slow. */
interface Setting {
  readonly name: string
  readonly about: string
  /** Seconds of a step of learning. */
  readonly learn: number
  /** Attempts at one time. */
  readonly concurrency: number
  readonly attempt: (task: string, seed: number) => number
  /** The allowance from which on rolling could keep up with learning. */
  readonly keepsUp?: number
}

const isSlow = (task: string): boolean => Number(task) % 4 === 0

/** Most attempts take a tenth of a second, some ten times as long; those at slow tasks three times. */
function longTail(task: string, seed: number): number {
  const draw = random(seedOf(seed, 'seconds', task))
  return 0.04 * (isSlow(task) ? 3 : 1) * Math.min(8, (1 - draw()) ** -0.6)
}

const settings: readonly Setting[] = [
  {
    name: 'trainer-bound',
    about: 'a step 100 ms, slow tasks wait 350 ms at a tool, others 5 ms',
    learn: 0.1,
    concurrency: 256,
    attempt: task => (isSlow(task) ? 0.35 : 0.005),
    keepsUp: 4,
  },
  {
    name: 'rollout-bound',
    about: 'a step 20 ms, slow tasks take 400 ms, others 100 ms, 32 at one time',
    learn: 0.02,
    concurrency: 32,
    attempt: task => (isSlow(task) ? 0.4 : 0.1),
  },
  {
    name: 'long-tailed',
    about: 'a step 100 ms, attempts from 40 ms to 1 s, slow tasks three times the others',
    learn: 0.1,
    concurrency: 256,
    attempt: longTail,
    keepsUp: 16,
  },
]

const allowances = [0, 1, 2, 4, 8, 16]
/** Sixty steps of eight groups of four, over 160 tasks. */
const size = { steps: 60, tasksPerStep: 8, tasks: 160 } as const

interface Row {
  readonly setting: string
  readonly maxStaleness: number
  /** Slow groups among those that were learned from; a quarter is drawn. */
  readonly share: number
  readonly seconds: number
  /** Against rolling and learning in turn. */
  readonly ofInTurn: number
  /** The share of the time that the trainer waited, once something is measured. */
  readonly waited: number
  readonly staleness: { readonly mean: number; readonly most: number }
  readonly refused: number
}

/**
 * What is learned from slow tasks where rolling is ahead of learning, and what that costs: the program's own
 * feed, pipeline and ledger, with made-up durations in simulated time, so that every machine gives the same figures.
 */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const rows: Row[] = []
  for (const setting of settings) {
    if (!json) console.log(`\n${setting.name}: ${setting.about}\n${heading}`)
    let inTurn: number | undefined
    for (const maxStaleness of allowances) {
      const { steps, tasksPerStep, tasks } = size
      const plan = { steps, tasksPerStep, maxStaleness }
      const simulated = await simulateTraining({ ...setting, tasks, plan })
      inTurn ??= simulated.seconds
      const row = rowOf(simulated, { setting: setting.name, maxStaleness, inTurn })
      rows.push(row)
      if (!json) show(row)
    }
  }
  return { rows, missed: missedOf(rows.flatMap(expectationsOf)) }
}

function rowOf(
  { learned, records, seconds }: Simulated,
  { setting, maxStaleness, inTurn }: Pick<Row, 'setting' | 'maxStaleness'> & { inTurn: number },
): Row {
  const groups = learned.flat()
  const later = records.slice(10)
  const sum = (of: (record: (typeof later)[number]) => number): number =>
    later.reduce((total, record) => total + of(record), 0)
  return {
    setting,
    maxStaleness,
    share: groups.filter(({ task }) => isSlow(task)).length / groups.length,
    seconds,
    ofInTurn: seconds / inTurn,
    waited: sum(each => each.seconds.roll) / sum(each => each.seconds.roll + each.seconds.learn),
    staleness: {
      mean: sum(({ staleness }) => staleness.mean) / later.length,
      most: Math.max(...records.map(({ staleness }) => staleness.most)),
    },
    refused: records.reduce((total, { stale }) => total + stale, 0),
  }
}

/** Shares within a tenth everywhere, clearly less time than in turn, and hardly any waiting where rolling can keep up. */
function expectationsOf(row: Row): readonly Expectation[] {
  const { setting, maxStaleness } = row
  const what = (of: string): string => `${of}, ${setting}, ${maxStaleness} steps old at most`
  const share = { what: what('share of slow tasks'), value: row.share }
  const { keepsUp = Number.POSITIVE_INFINITY } = settings.find(({ name }) => name === setting)!
  return [
    { ...share, atLeast: 0.225, atMost: 0.275 },
    { what: what('age'), value: row.staleness.most, atMost: maxStaleness },
    ...(maxStaleness > 0
      ? [{ what: what('time against in turn'), value: row.ofInTurn, atMost: 0.8 }]
      : []),
    ...(maxStaleness >= keepsUp
      ? [{ what: what('waiting'), value: row.waited, atMost: 0.05 }]
      : []),
  ]
}

const heading =
  'staleness  slow learned  seconds  of in turn  trainer waits  mean age  oldest  refused'

function show(row: Row): void {
  const { maxStaleness, share, seconds, ofInTurn, waited, staleness, refused } = row
  const cells = [
    String(maxStaleness).padStart(9),
    share.toFixed(3).padStart(12),
    seconds.toFixed(2).padStart(7),
    ofInTurn.toFixed(2).padStart(10),
    `${(100 * waited).toFixed(1)} %`.padStart(13),
    staleness.mean.toFixed(2).padStart(8),
    String(staleness.most).padStart(6),
    String(refused).padStart(7),
  ]
  console.log(cells.join('  '))
}
