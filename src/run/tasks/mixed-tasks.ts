import type { Environment, MixedIn, Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeTaskSampler, type TaskSampler, type TaskSamplingReport } from './sample-tasks.ts'

/** Whose task each is, if there are several environments. */
export type EnvironmentOf = (task: TaskId) => string | undefined

/** Says whose tasks these are; undefined if there is one environment. */
export function environmentsOf(
  { mixed }: Pick<Environment, 'mixed'>,
  tasks: readonly Task[],
): EnvironmentOf | undefined {
  if (!mixed) return undefined
  const names = new Map(tasks.map(task => [task.id, nameIn(task)]))
  return task => names.get(task)
}

function nameIn({ data }: Task): string {
  return (data as { readonly environment: string }).environment
}

/** The tasks of several environments, one of each by turns for as long as there are some. */
export function byTurns<Data>(tasks: readonly Task<Data>[]): readonly Task<Data>[] {
  const counts = new Map<string, number>()
  const ranks = new Map<Task<Data>, number>()
  for (const task of tasks) {
    const name = nameIn(task)
    ranks.set(task, counts.get(name) ?? 0)
    counts.set(name, ranks.get(task)! + 1)
  }
  return tasks.toSorted((one, other) => ranks.get(one)! - ranks.get(other)!)
}

/**
 * Opens the sampler of a run. Where it has several environments, each has a sampler of its own, and they come by
 * turns as their weights say, however many tasks each of them has.
 */
export function makeSampler<Data>(
  method: string,
  { tasks, mixed }: { readonly tasks: readonly Task<Data>[]; readonly mixed?: readonly MixedIn[] },
  seed: number,
): TaskSampler<Data> {
  if (!mixed) return makeTaskSampler(method, tasks, seed)
  const turns = mixed.map(each => {
    const own = tasks.filter(task => nameIn(task) === each.name)
    if (own.length === 0) throw new RangeError(`there are no tasks of ${each.name} to train on`)
    return { ...each, ids: new Set<string>(own.map(({ id }) => id)), tasks: own }
  })
  const samplers = turns.map(({ tasks: own }) => makeTaskSampler(method, own, seed))
  const [passed, besides] = [makeTurns(mixed), makeTurns(mixed)]
  return {
    at(place, taken) {
      const { index, before } = place >= 0 ? passed(place) : besides(-1 - place)
      return samplers[index]!.at(place >= 0 ? before : -1 - before, taken)
    },
    find: id => tasks.find(task => task.id === id),
    learn(outcomes) {
      turns.forEach(({ ids }, index) => {
        samplers[index]!.learn(outcomes.filter(({ task }) => ids.has(task)))
      })
    },
    memory: () => Object.assign({}, ...samplers.map(sampler => sampler.memory())),
    restore(memory) {
      turns.forEach(({ ids }, index) => {
        const known = Object.entries(memory).filter(([task]) => ids.has(task))
        samplers[index]!.restore(Object.fromEntries(known))
      })
    },
    report: () => sumReports(samplers.map(sampler => sampler.report())),
  }
}

interface Turn {
  /** Whose turn it is, and how many it had before. */
  readonly index: number
  readonly before: number
}

/** Gives turns by weight, spread as evenly as can be: each has what it is owed, and the one that is owed most is next. */
function makeTurns(weighted: readonly MixedIn[]): (place: number) => Turn {
  const total = weighted.reduce((sum, { weight }) => sum + weight, 0)
  const owed = weighted.map(() => 0)
  const had = weighted.map(() => 0)
  const turns: Turn[] = []
  return place => {
    while (turns.length <= place) {
      weighted.forEach(({ weight }, index) => {
        owed[index]! += weight
      })
      const index = owed.indexOf(Math.max(...owed))
      owed[index]! -= total
      turns.push({ index, before: had[index]!++ })
    }
    return turns[place]!
  }
}

function sumReports(reports: readonly TaskSamplingReport[]): TaskSamplingReport {
  const sum = (of: (report: TaskSamplingReport) => number): number =>
    reports.reduce((total, report) => total + of(report), 0)
  return {
    method: reports[0]!.method,
    tasks: sum(({ tasks }) => tasks),
    tried: sum(({ tried }) => tried),
    draws: sum(({ draws }) => draws),
    success: {
      never: sum(({ success }) => success.never),
      sometimes: sum(({ success }) => success.sometimes),
      always: sum(({ success }) => success.always),
    },
  }
}
