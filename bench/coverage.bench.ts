// How often the bounds of success hold the truth: `npm run bench -- coverage`.
import {
  type Cluster,
  clusteredChange,
  clusteredInterval,
} from '../src/base/math/bounds/clustered.ts'
import { random, seedOf } from '../src/base/math/random.ts'

type Draw = () => number

/** How likely tasks are to be solved, drawn anew for every task, with the mean over all tasks like these. */
interface Tasks {
  readonly mean: number
  rate(next: Draw): number
}

/** A rate of Beta(a, b) by Jöhnk's method (1964). */
function beta(next: Draw, a: number, b: number): number {
  for (;;) {
    const [x, y] = [next() ** (1 / a), next() ** (1 / b)]
    if (x + y <= 1) return x + y === 0 ? Number(next() < a / (a + b)) : x / (x + y)
  }
}

const kinds: Readonly<Record<string, Tasks>> = {
  easy: { mean: 0.9, rate: next => beta(next, 2.7, 0.3) },
  hard: { mean: 0.06, rate: next => beta(next, 0.3, 4.7) },
  middling: { mean: 0.5, rate: next => beta(next, 2, 2) },
  bimodal: { mean: 0.55, rate: next => (next() < 0.5 ? 0.95 : 0.15) },
}
const taskCounts = [1, 2, 3, 5, 8, 20, 64, 256]
const trialCounts = [1, 2, 4, 8, 16, 64]
const repeats = 1500

/** What a policy makes of a task after training, in tests of a change: a third of what it failed. */
const improved = (rate: number): number => rate + (1 - rate) / 3

function attempt(rate: number, trials: number, next: Draw): Cluster {
  let solved = 0
  for (let trial = 0; trial < trials; trial++) if (next() < rate) solved++
  return { share: solved / trials, trials }
}

interface Cell {
  readonly kind: string
  readonly tasks: number
  readonly trials: number
}

/** Of how many evaluations in a hundred the bounds hold the truth; of one task, that of its own. */
function coverage({ kind, tasks, trials }: Cell, what: 'rate' | 'same' | 'change'): number {
  const next = random(seedOf('coverage', kind, tasks, trials, what))
  const { mean, rate } = kinds[kind]!
  const later = what === 'change' ? improved : (each: number) => each
  let held = 0
  for (let repeat = 0; repeat < repeats; repeat++) {
    const rates = Array.from({ length: tasks }, () => rate(next))
    const before = rates.map(each => attempt(each, trials, next))
    const start = tasks === 1 ? rates[0]! : mean
    const isRate = what === 'rate'
    const { low, high } = isRate
      ? clusteredInterval(before)
      : clusteredChange(
          before.map((cluster, task) => [cluster, attempt(later(rates[task]!), trials, next)]),
        )
    const truth = isRate ? start : later(start) - start
    if (low <= truth + 1e-12 && truth <= high + 1e-12) held++
  }
  return (100 * held) / repeats
}

/** Prints a table per kind of tasks, and what share of all cells lies between 93 and 97 %. */
export function bench({ json }: { readonly json: boolean }): object {
  const cells: (Cell & { readonly what: string; readonly held: number })[] = []
  for (const what of ['rate', 'same', 'change'] as const) {
    for (const kind of Object.keys(kinds)) {
      if (!json)
        console.log(`\n${titles[what]}, ${kind} tasks; across: ${trialCounts.join(', ')} trials`)
      for (const tasks of taskCounts) {
        const row = trialCounts.map(trials => coverage({ kind, tasks, trials }, what))
        row.forEach((held, at) => {
          cells.push({ what, kind, tasks, trials: trialCounts[at]!, held })
        })
        if (!json) console.log(`${String(tasks).padStart(4)}  ${row.map(show).join('  ')}`)
      }
    }
  }
  const summary = Object.fromEntries(
    Object.entries(titles).map(([what, title]) => [
      title,
      summarise(cells.filter(cell => cell.what === what)),
    ]),
  )
  if (!json) console.table(summary)
  return { cells, summary }
}

const titles = {
  rate: 'success',
  same: 'change of the same policy',
  change: 'change by a third',
}

const show = (held: number): string => held.toFixed(1).padStart(5)

function summarise(cells: readonly { readonly tasks: number; readonly held: number }[]) {
  const share = (holds: (held: number) => boolean, from = cells): string =>
    `${((100 * from.filter(({ held }) => holds(held)).length) / from.length).toFixed(0)} %`
  const many = cells.filter(({ tasks }) => tasks >= 20)
  return {
    least: Math.min(...cells.map(({ held }) => held)).toFixed(1),
    'least, 5 tasks and more': Math.min(
      ...cells.filter(({ tasks }) => tasks >= 5).map(({ held }) => held),
    ).toFixed(1),
    'below 93': share(held => held < 93),
    '93 to 97': share(held => held >= 93 && held <= 97),
    'above 97': share(held => held > 97),
    '93 to 97, 20 tasks and more': share(held => held >= 93 && held <= 97, many),
  }
}
