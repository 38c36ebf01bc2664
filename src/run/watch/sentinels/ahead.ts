import type { RolledAhead } from '../events.ts'
import type { Alarm, Sentinel } from './sentinel.ts'

/** Steps that are looked at together. */
const window = 8

/** Shares that are worth a word: of the groups, and of the time. */
const most = { stale: 0.05, held: 0.2 } as const

/** Warns if groups grew too old to be learned from: their tasks lose their share of what is learned. */
export function lostShares(): Sentinel {
  return watching('lost-shares', steps => {
    const stale = steps.flatMap(step => step.stale)
    const groups = sum(steps, step => step.groups)
    if (stale.length <= most.stale * groups) return undefined
    const tasks = [...new Set(stale)]
    const named = tasks.slice(0, 5).join(', ') + (tasks.length > 5 ? ', …' : '')
    const { maxStaleness } = steps.at(-1)!
    return {
      message: `${stale.length} of ${groups} groups of the last ${window} steps were older than --max-staleness ${maxStaleness} when they were complete and were not learned from; their tasks come again: ${named}`,
      likely:
        'the server still samples from older weights than those that were published: look at `versions` in the report; a larger --max-staleness learns from them all the same',
    }
  })
}

/** Warns if the trainer stands still for slow attempts, none of which it leaves out. */
export function heldBySlow(): Sentinel {
  return watching('held-by-slow', steps => {
    const share = sum(steps, step => step.held) / sum(steps, step => step.seconds)
    if (!(share > most.held)) return undefined
    const { maxStaleness, slowest } = steps.at(-1)!
    if (slowest <= maxStaleness) return undefined
    return {
      message: `the trainer waited ${Math.round(share * 100)} % of the last ${window} steps for the slowest attempts, which take as long as ${slowest.toFixed(1)} steps of learning, while others were complete`,
      likely: `it waits so that slow tasks keep their share: --max-staleness ${Math.ceil(slowest)} would let it learn meanwhile, and a limit on turns, tokens or seconds makes the slowest attempts shorter`,
    }
  })
}

function watching(
  name: string,
  judge: (steps: readonly RolledAhead[]) => Alarm | undefined,
): Sentinel {
  const steps: RolledAhead[] = []
  let isOver = false
  return {
    name,
    seeStep(_, ahead): Alarm | undefined {
      if (isOver || !ahead) return undefined
      steps.push(ahead)
      if (steps.length > window) steps.shift()
      if (steps.length < window) return undefined
      const alarm = judge(steps)
      isOver = alarm !== undefined
      return alarm
    },
  }
}

function sum(steps: readonly RolledAhead[], of: (step: RolledAhead) => number): number {
  return steps.reduce((total, step) => total + of(step), 0)
}
