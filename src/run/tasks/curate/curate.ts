import type { Task } from '../../../base/core/environment.ts'
import { random, seedOf, shuffle } from '../../../base/math/random.ts'
import { type Likeness, LikenessIndex, type LikenessOptions } from './likeness.ts'

/** A task that was left out, and the other task it is like. */
export interface LeftOut extends Likeness {
  readonly id: string
  /** Whether it is like one that is held out, or like one before it. */
  readonly because: 'held-out' | 'repeated'
}

/** Leaves out what is like a held-out task or like one that came before. */
export function dedupeTasks<Data>(
  tasks: readonly Task<Data>[],
  heldOut: readonly Task[],
  options: LikenessOptions = {},
): { readonly kept: readonly Task<Data>[]; readonly leftOut: readonly LeftOut[] } {
  const all = [...tasks, ...heldOut]
  const guarded = new LikenessIndex(options, all)
  for (const task of heldOut) guarded.add(task)
  const seen = new LikenessIndex(options, all)
  const kept: Task<Data>[] = []
  const leftOut: LeftOut[] = []
  for (const task of tasks) {
    const held = guarded.find(task)
    const before = held ? undefined : seen.find(task)
    if (held) leftOut.push({ id: task.id, because: 'held-out', ...held })
    else if (before) leftOut.push({ id: task.id, because: 'repeated', ...before })
    else {
      seen.add(task)
      kept.push(task)
    }
  }
  return { kept, leftOut }
}

/** Shares of a set, by the names of its parts. */
export type Shares = Readonly<Record<string, number>>

/**
 * Splits a set by shares, in an order drawn by the seed. Similar tasks stay together, so that no part
 * leaks into another.
 */
export function partTasks<Data>(
  tasks: readonly Task<Data>[],
  shares: Shares,
  { seed, ...options }: LikenessOptions & { readonly seed: number },
): Readonly<Record<string, readonly Task<Data>[]>> {
  const families = familiesOf(tasks, options)
  const parts = Object.fromEntries(Object.keys(shares).map(name => [name, [] as Task<Data>[]]))
  const total = Object.values(shares).reduce((sum, share) => sum + share, 0)
  for (const family of shuffle(families, random(seedOf('part', seed)))) {
    // Each family of similar tasks goes to the part that is furthest from its share.
    const missing = Object.entries(shares).map(
      ([name, share]) => [name, (share / total) * tasks.length - parts[name]!.length] as const,
    )
    const [name] = missing.reduce((most, each) => (each[1] > most[1] ? each : most))
    parts[name]!.push(...family)
  }
  return parts
}

/** Tasks that are alike, and those that are like the same one, are one family. */
function familiesOf<Data>(
  tasks: readonly Task<Data>[],
  options: LikenessOptions,
): readonly (readonly Task<Data>[])[] {
  const index = new LikenessIndex(options, tasks)
  const families = new Map<string, Task<Data>[]>()
  for (const task of tasks) {
    const alike = new Set(index.findAll(task).map(({ of }) => families.get(of)!))
    // The largest takes in the others, so that a task seldom changes its family.
    const [family = [], ...others] = [...alike].sort((one, other) => other.length - one.length)
    for (const member of [...others.flat(), task]) {
      family.push(member)
      families.set(member.id, family)
    }
    index.add(task)
  }
  return [...new Set(families.values())]
}

/** How hard tasks are for a policy, by the results of its attempts. */
export const bands = ['never', 'seldom', 'sometimes', 'often', 'always'] as const

/** How often a policy succeeds at a task. */
export type Band = (typeof bands)[number]

/** The band of a share of successes. */
export function bandOf(share: number): Band {
  if (share <= 0) return 'never'
  if (share >= 1) return 'always'
  if (share < 1 / 3) return 'seldom'
  return share < 2 / 3 ? 'sometimes' : 'often'
}
