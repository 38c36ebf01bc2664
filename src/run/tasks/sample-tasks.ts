import type { Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { findPart, type PartShape } from '../../base/core/names/part-options.ts'
import { betaDraw } from '../../base/math/beta.ts'
import { pick, type Random, random, seedOf } from '../../base/math/random.ts'
import { makeTaskStream, type TaskStream } from './task-stream.ts'

/** How the attempts at one task went. */
export interface TaskOutcome {
  readonly task: TaskId
  readonly attempts: number
  /** The share of them that succeeded. */
  readonly success: number
}

/** What is remembered of a task that was tried: the newest counts most. */
interface TaskRecord {
  readonly draws: number
  /** Recent success: a moving average in which the newest result counts half. */
  readonly fast: number
  /** Success over a longer time: a moving average in which the newest result counts a tenth. */
  readonly slow: number
  /** Successes and failures, the older ones faded. */
  readonly wins: number
  readonly losses: number
}

/** What a sampler remembers, as it is kept with a checkpoint. */
export type TaskMemory = Readonly<Record<string, TaskRecord>>

/** Which tasks were drawn, for the report. */
export interface TaskSamplingReport {
  readonly method: string
  readonly tasks: number
  /** How many of them were tried at all. */
  readonly tried: number
  readonly draws: number
  /** Of the tried tasks, how many recently succeeded never, sometimes and always. */
  readonly success: { readonly never: number; readonly sometimes: number; readonly always: number }
}

/** Draws the tasks of a training run; some methods use earlier results. */
export interface TaskSampler<Data = unknown> extends TaskStream<Data> {
  find(id: TaskId): Task<Data> | undefined
  /** Records how tasks went. Draws depend on it, so call it with whole steps, in their order. */
  learn(outcomes: readonly TaskOutcome[]): void
  memory(): TaskMemory
  /** Goes on from what was remembered. */
  restore(memory: TaskMemory): void
  report(): TaskSamplingReport
}

/** What a method chooses from. */
interface Choice<Data> {
  readonly tasks: readonly Task<Data>[]
  recordOf(task: Task<Data>): TaskRecord | undefined
  readonly draw: Random
}

type Choose = <Data>(choice: Choice<Data>) => Task<Data>

interface MethodFactory extends PartShape {
  readonly about: string
  /** `undefined`: every task once in each pass. */
  open(values: Readonly<Record<string, number>>): Choose | undefined
}

/** The ways to draw tasks that can be named. */
const taskSamplers: Readonly<Record<string, MethodFactory>> = {
  uniform: {
    about: 'Every task once in each pass, in an order of the seed.',
    options: {},
    open: () => undefined,
  },
  band: {
    about:
      'Tasks that succeed of late neither too seldom nor too often; a fifth of the draws go to those drawn least.',
    options: { low: 'share', high: 'share', explore: 'share' },
    open: ({ low = 0.2, high = 0.8, explore = 0.2 }) => inBand(low, high, explore),
  },
  thompson: {
    about:
      'Tasks whose chance of success, drawn from what is known of it, is nearest to a target; a fifth of the draws go to those drawn least.',
    options: { target: 'share', explore: 'share' },
    open: ({ target = 0.5, explore = 0.2 }) => nearest(target, explore),
  },
  progress: {
    about: 'Tasks whose success changes most.',
    options: { explore: 'share' },
    open: ({ explore = 0.25 }) => changing(explore),
  },
}

/** Older successes and failures fade by this much with each new result. */
const fading = 0.8

/** Opens the sampler that a name stands for: `uniform`, `band:low=0.1`, `thompson`, `progress`. */
export function makeTaskSampler<Data>(
  method: string,
  tasks: readonly Task<Data>[],
  seed: number,
): TaskSampler<Data> {
  const choose = makeMethod(method)
  const stream = makeTaskStream(tasks, seed)
  const records = new Map<string, TaskRecord>()
  return {
    at(place, taken) {
      if (!choose && place >= 0) return stream.at(place)
      const free = tasks.filter(({ id }) => !taken?.has(id))
      const among = free.length > 0 ? free : tasks
      const draw = random(seedOf(seed, 'task', place))
      if (!choose) return pick(among, draw)
      return choose({ tasks: among, recordOf: ({ id }) => records.get(id), draw })
    },
    find: id => tasks.find(task => task.id === id),
    learn(outcomes) {
      for (const outcome of outcomes) records.set(outcome.task, remember(records, outcome))
    },
    memory: () => Object.fromEntries(records),
    restore(memory) {
      records.clear()
      for (const [task, record] of Object.entries(memory)) records.set(task, record)
    },
    report: () => reportOf(method, tasks.length, [...records.values()]),
  }
}

/** The method of a name; a wrong one is answered with the known ones. */
function makeMethod(text: string): Choose | undefined {
  const { factory, values, name } = findPart('task sampler', text, taskSamplers)
  const { low, high } = values
  if (typeof low === 'number' && typeof high === 'number' && low > high) {
    throw new Error(`task sampler "${name}": low is ${low}, above high, ${high}`)
  }
  return factory.open(values as Readonly<Record<string, number>>)
}

/** Refuses a name that stands for no sampler. */
export function checkTaskSampler(method: string): void {
  makeMethod(method)
}

function remember(
  records: ReadonlyMap<string, TaskRecord>,
  { task, attempts, success }: TaskOutcome,
): TaskRecord {
  const known = records.get(task) ?? unknown
  const drawn = { ...known, draws: known.draws + 1 }
  // An attempt that failed outside the policy was drawn all the same: else its task would be drawn least for good.
  if (attempts === 0) return drawn
  const isNew = known.wins + known.losses === 0
  const moved = (value: number, share: number): number => value + share * (success - value)
  return {
    ...drawn,
    fast: isNew ? success : moved(known.fast, 0.5),
    slow: isNew ? success : moved(known.slow, 0.1),
    wins: fading * known.wins + success * attempts,
    losses: fading * known.losses + (1 - success) * attempts,
  }
}

const unknown: TaskRecord = { draws: 0, fast: 0, slow: 0, wins: 0, losses: 0 }

function inBand(low: number, high: number, explore: number): Choose {
  return ({ tasks, recordOf, draw }) => {
    if (draw() < explore) return leastDrawn({ tasks, recordOf, draw })
    const within = tasks.filter(task => {
      const success = recordOf(task)?.fast
      return success !== undefined && success >= low && success <= high
    })
    if (within.length > 0) return pick(within, draw)
    const untried = tasks.filter(task => !recordOf(task))
    return pick(untried.length > 0 ? untried : tasks, draw)
  }
}

/** One of the tasks that were drawn least often: so that none is left out for good. */
function leastDrawn<Data>({ tasks, recordOf, draw }: Choice<Data>): Task<Data> {
  const drawn = tasks.map(task => recordOf(task)?.draws ?? 0)
  const least = drawn.reduce((one, other) => Math.min(one, other))
  return pick(
    tasks.filter((_, index) => drawn[index] === least),
    draw,
  )
}

function nearest(target: number, explore: number): Choose {
  return <Data>({ tasks, recordOf, draw }: Choice<Data>) => {
    if (draw() < explore) return leastDrawn({ tasks, recordOf, draw })
    let best: { task: Task<Data>; distance: number } | undefined
    for (const task of tasks) {
      const { wins = 0, losses = 0 } = recordOf(task) ?? {}
      const distance = Math.abs(betaDraw(1 + wins, 1 + losses, draw) - target)
      if (!best || distance < best.distance) best = { task, distance }
    }
    return best!.task
  }
}

function changing(explore: number): Choose {
  return ({ tasks, recordOf, draw }) => {
    const weights = tasks.map(task => {
      const record = recordOf(task)
      return record ? Math.abs(record.fast - record.slow) : 0
    })
    const total = weights.reduce((sum, weight) => sum + weight, 0)
    if (total === 0 || draw() < explore) return leastDrawn({ tasks, recordOf, draw })
    let left = draw() * total
    const found = weights.findIndex(weight => {
      left -= weight
      return left < 0
    })
    return tasks[found < 0 ? tasks.length - 1 : found]!
  }
}

function reportOf(
  method: string,
  tasks: number,
  records: readonly TaskRecord[],
): TaskSamplingReport {
  const count = (is: (record: TaskRecord) => boolean): number => records.filter(is).length
  const never = count(({ fast }) => fast === 0)
  const always = count(({ fast }) => fast === 1)
  return {
    method,
    tasks,
    tried: records.length,
    draws: records.reduce((sum, { draws }) => sum + draws, 0),
    success: { never, sometimes: records.length - never - always, always },
  }
}
