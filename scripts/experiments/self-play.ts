import { fork } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type EvaluateOptions, evaluate, teach, train } from 'espalier'
import { openRunReader } from 'espalier/store'
import {
  fixedBuyer,
  fixedSeller,
  haggle,
  market,
  show,
  type Trade,
} from '../../examples/seats/haggle.ts'
import { cell } from './table.ts'

const folder = 'runs/experiments'

type SeatChoices = NonNullable<EvaluateOptions['seats']>

/** Who the policy meets while it learns. */
interface Arm {
  readonly name: string
  readonly about: string
  /** Who plays the shop and the customer; without it the two seats that learn meet each other. */
  readonly others?: SeatChoices
  readonly entropy?: number
}

const arms: readonly Arm[] = [
  { name: 'self-play', about: 'its two seats meet each other' },
  { name: 'entropy', about: 'the same, with five times the entropy bonus', entropy: 0.05 },
  {
    name: 'newest',
    about: 'each seat meets the newest checkpoint',
    others: { shop: 'past:last=1', customer: 'past:last=1' },
  },
  {
    name: 'past',
    about: 'each seat meets checkpoints of the past',
    others: { shop: 'past', customer: 'past' },
  },
  {
    name: 'fixed',
    about: 'each seat meets a fixed opponent',
    others: { shop: fixedSeller, customer: fixedBuyer },
  },
]

/** How the games of one part of training went, over the seats that learn. */
interface Stretch {
  readonly step: number
  /** The first price over what the thing cost. */
  readonly markup: number
  readonly deals: number
  /** Of the first prices that would have left the buyer something, how many were taken at once. */
  readonly taken: number
  /** Groups whose attempts differ in reward. */
  readonly unequal: number
}

/** The result of one run. */
interface Run {
  readonly arm: string
  readonly seed: number
  /** Mean gain on held-out deals against the fixed opponents. */
  readonly buyer: number
  readonly seller: number
  readonly stretches: readonly Stretch[]
  readonly seconds: number
}

export interface SelfPlayOptions {
  readonly seeds?: number
  readonly steps?: number
  readonly jobs?: number
  readonly only?: readonly string[]
  /** One run, by its arm and seed; its result is kept in the file. */
  readonly single?: string
}

/** Compares two seats that learn from each other with seats that learn from other opponents. */
export async function selfPlay(options: SelfPlayOptions): Promise<void> {
  const { seeds = 3, steps = 30, jobs = 1, only, single } = options
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `self-play-${steps}.jsonl`)
  if (single !== undefined) return await runSingle(single, { steps, file })
  const chosen = ['taught', ...arms.map(({ name }) => name)].filter(
    name => !only || only.includes(name),
  )
  const wanted = Array.from({ length: seeds }, (_, index) => index + 1).flatMap(seed =>
    chosen.map(name => `${name}/${seed}`),
  )
  const known = new Set(readRuns(file).map(({ arm, seed }) => `${arm}/${seed}`))
  const left = wanted.filter(name => !known.has(name))
  const work = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      const words = ['self-play', '--single', name, '--steps', String(steps)]
      const [code] = (await once(fork('scripts/experiment.ts', words), 'exit')) as [number]
      if (code !== 0) throw new Error(`${name} ended with ${code}`)
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  console.log(tableOf(readRuns(file).filter(({ arm, seed }) => wanted.includes(`${arm}/${seed}`))))
}

function readRuns(file: string): readonly Run[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.filter(line => line !== '').map(line => JSON.parse(line) as Run)
}

async function runSingle(
  name: string,
  { steps, file }: { readonly steps: number; readonly file: string },
): Promise<void> {
  const began = performance.now()
  const [arm = '', seed = '1'] = name.split('/')
  const out = join(folder, `self-play-${arm}-${seed}`)
  rmSync(out, { recursive: true, force: true })
  const model = join(out, 'taught')
  // The same words for every arm of a seed.
  const taught = await teach(haggle, 200, {
    show,
    seed: Number(seed),
    epochs: 12,
    threads: 1,
    out: model,
  })
  await taught[Symbol.asyncDispose]()
  const known = arms.find(each => each.name === arm)
  const run = join(out, 'run')
  if (known) await learn(known, { run, model, seed: Number(seed), steps })
  const last = known ? join(run, 'checkpoints', String(steps).padStart(6, '0')) : model
  const measured: Run = {
    arm,
    seed: Number(seed),
    ...(await measure(last)),
    stretches: known ? await stretchesOf(run, steps) : [],
    seconds: Math.round((performance.now() - began) / 1000),
  }
  appendFileSync(file, `${JSON.stringify(measured)}\n`)
  console.error(JSON.stringify(measured))
}

const limits = { turns: 4, newTokens: 8 } as const

async function learn(
  { others, entropy = 0.01 }: Arm,
  given: {
    readonly run: string
    readonly model: string
    readonly seed: number
    readonly steps: number
  },
): Promise<void> {
  const { run, model, seed, steps } = given
  const options = {
    policy: `embedded:${model}`,
    seed,
    steps,
    entropy,
    tasksPerStep: 12,
    group: 12,
    heldOut: 4,
    learningRate: 1e-3,
    evaluateEvery: steps,
    checkpointEvery: 4,
    limits,
    out: run,
    ...(others && { seats: others }),
  }
  if (others) await train(market, 200, options)
  else await train(haggle, 200, options)
}

/** What each seat gains on held-out deals against a fixed opponent. */
async function measure(model: string): Promise<Pick<Run, 'buyer' | 'seller'>> {
  const meanOf = async (seats: SeatChoices): Promise<number> => {
    const options = { policy: `embedded:${model}`, seats, seed: 1, split: 'held-out', limits }
    return (await evaluate(haggle, 200, options)).meanReward.value
  }
  return {
    buyer: await meanOf({ seller: fixedSeller }),
    seller: await meanOf({ buyer: fixedBuyer }),
  }
}

type Reported = Trade | { readonly bought: Trade; readonly sold: Trade }

/** Into how many stretches a run is cut to be looked at. */
const stretches = 5

/** How the games went, part by part, read from the run folder. */
async function stretchesOf(run: string, steps: number): Promise<readonly Stretch[]> {
  const found = Array.from({ length: stretches }, () => openTally())
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) {
    const { seat, step, members } = group
    if (step === undefined || (seat !== 'buyer' && seat !== 'seller')) continue
    const tally = found[Math.min(stretches - 1, Math.floor((step * stretches) / steps))]!
    tally.add(members.map(({ reward }) => reward.total))
    for (const { trajectory } of members) {
      const report = trajectory.report as unknown as Reported | undefined
      // A game cut by a limit has no report.
      if (report === undefined) continue
      tally.played('asked' in report ? report : seat === 'buyer' ? report.bought : report.sold)
    }
  }
  return found.map((tally, index) => ({
    step: Math.round(((index + 1) * steps) / stretches),
    ...tally.result(),
  }))
}

/** Adds up games and groups. */
function openTally() {
  const counts = { games: 0, markup: 0, deals: 0, fair: 0, taken: 0, groups: 0, unequal: 0 }
  return {
    add(rewards: readonly number[]): void {
      counts.groups++
      if (new Set(rewards).size > 1) counts.unequal++
    },
    played({ cost, worth, asked, price }: Trade): void {
      counts.games++
      if (price !== null) counts.deals++
      const [first] = asked
      if (first === undefined) return
      counts.markup += first - cost
      if (first >= worth) return
      counts.fair++
      if (price !== null && asked.length === 1) counts.taken++
    },
    result: () => ({
      markup: counts.markup / counts.games,
      deals: counts.deals / counts.games,
      taken: counts.fair === 0 ? 0 : counts.taken / counts.fair,
      unequal: counts.unequal / counts.groups,
    }),
  }
}

/** Two seeds make no interval: they are shown one by one. */
function shown(values: readonly number[], digits = 3): string {
  if (values.length > 2) return cell(values, digits)
  return values.map(value => value.toFixed(digits)).join(' / ')
}

function tableOf(runs: readonly Run[]): string {
  const names = [...new Set(runs.map(({ arm }) => arm))]
  const rows = names.map(name => {
    const own = runs.filter(({ arm }) => arm === name)
    const about = arms.find(arm => arm.name === name)?.about ?? 'shown the words, not trained'
    const all = (part: keyof Stretch): string => {
      const last = own.flatMap(({ stretches }) => stretches.at(-1)?.[part] ?? [])
      return last.length === 0 ? '' : shown(last, 2)
    }
    const gains = [shown(own.map(({ buyer }) => buyer)), shown(own.map(({ seller }) => seller))]
    const games = [all('deals'), all('taken'), all('markup'), all('unequal')]
    return `| ${[`${name}: ${about}`, ...gains, ...games].join(' | ')} |`
  })
  const head =
    '| learned against | buyer, against the fixed seller | seller, against the fixed buyer | deals | good first prices taken | first price over cost | groups that differ |'
  return [head, '|---|---|---|---|---|---|---|', ...rows].join('\n')
}
