import type { Tau2Domain } from './domain.ts'
import type { Tau2Task } from './task.ts'

/** In domains without splits, every third task is kept for tests. */
const TEST_EVERY = 3

/**
 * The tasks of each split, in the order of their file: `test` and `train` first, which share no
 * task, then those that the checkout has beside them, `base` and `full` among them, which hold both.
 */
export function splitTasks(domain: Tau2Domain): ReadonlyMap<string, readonly Tau2Task[]> {
  const { tasks, splits: named } = domain
  const splits = Object.keys(named).length === 0 ? ownSplits(tasks) : named
  requireApart(domain.name, splits)
  const order = [
    'test',
    'train',
    ...Object.keys(splits).filter(name => name !== 'test' && name !== 'train'),
  ]
  return new Map(
    order.filter(name => splits[name]).map(name => [name, pick(tasks, splits[name] ?? [])]),
  )
}

function pick(tasks: readonly Tau2Task[], ids: readonly string[]): readonly Tau2Task[] {
  const wanted = new Set(ids)
  return tasks.filter(({ id }) => wanted.has(id))
}

function ownSplits(tasks: readonly Tau2Task[]): Readonly<Record<string, readonly string[]>> {
  const ids = tasks.map(({ id }) => id)
  const isTest = (index: number): boolean => index % TEST_EVERY === TEST_EVERY - 1
  return {
    test: ids.filter((_, index) => isTest(index)),
    train: ids.filter((_, index) => !isTest(index)),
    base: ids,
  }
}

/** Throws if training and test tasks overlap. */
function requireApart(
  domain: string,
  { train = [], test = [] }: Readonly<Record<string, readonly string[]>>,
): void {
  const tests = new Set(test)
  const shared = train.find(id => tests.has(id))
  if (shared !== undefined) {
    throw new Error(`The splits train and test of tau2-bench ${domain} share the task ${shared}.`)
  }
}
