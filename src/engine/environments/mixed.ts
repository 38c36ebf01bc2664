import type { Call } from '../../base/core/call.ts'
import type { Environment, MixedIn, OpenCall, Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { RewardInput, RewardPart } from '../../base/core/reward.ts'

/** One of several environments, what it is called among them, and its share of the tasks. */
export interface Ingredient extends MixedIn {
  readonly environment: Environment
}

/** A task of one of them. In a file of tasks, its line names the environment beside its data. */
interface MixedData {
  readonly environment: string
  readonly data: unknown
}

/** Several environments in one: every task belongs to one of them, which opens its worlds and scores them. */
export function mixEnvironments(ingredients: readonly Ingredient[]): Environment<MixedData> {
  for (const { name, environment } of ingredients) refuseOdd(name, environment)
  const find = ({ data: { environment } }: Task<MixedData>): Environment =>
    ingredients.find(({ name }) => name === environment)!.environment
  const isolated = ingredients.find(({ environment }) => environment.isolation)
  const splits = commonSplits(ingredients)
  const madeOf = Object.assign({}, ...ingredients.map(({ environment }) => environment.madeOf))
  return {
    name: ingredients.map(({ name }) => name).join(' + '),
    mixed: ingredients.map(({ name, weight }) => ({ name, weight })),
    readTask: data => readMixed(ingredients, data),
    open: (task: Task<MixedData>, call: OpenCall) => find(task).open(own(task), call),
    reward: mixRewards(ingredients),
    taskKey: task => `${task.data.environment}/${find(task).taskKey?.(own(task)) ?? keyOf(task)}`,
    ...(isolated?.environment.isolation && { isolation: isolated.environment.isolation }),
    madeOf,
    ...(splits.length > 0 && { splits: splits as [string, ...string[]] }),
    ...(ingredients.every(({ environment }) => environment.makeTasks) && {
      makeTasks: options => makeMixed(ingredients, options),
    }),
    async [Symbol.asyncDispose]() {
      for (const { environment } of ingredients) await environment[Symbol.asyncDispose]?.()
    },
  }
}

/** Agents ask by themselves, and seats have groups of their own: neither stands beside others. */
function refuseOdd(name: string, { drivesItself, seats }: Environment): void {
  const what = drivesItself ? 'an agent' : seats ? 'an environment with several seats' : undefined
  if (what === undefined) return
  throw new SettingError(`--environment ${name}: ${what} cannot be one of several environments`)
}

function own({ id, data: { data } }: Task<MixedData>): Task {
  return { id, data }
}

function keyOf({ data: { data } }: Task<MixedData>): string {
  return JSON.stringify(data)
}

function readMixed(ingredients: readonly Ingredient[], entry: unknown): MixedData {
  const { environment: name, ...rest } = Object(entry) as { environment?: unknown; data?: unknown }
  const found = ingredients.find(each => each.name === name)
  if (!found) {
    const known = ingredients.map(each => each.name).join(', ')
    throw new TypeError(
      `a task of several environments names its own as "environment": ${known}; this one says ${JSON.stringify(name) ?? 'nothing'}`,
    )
  }
  const isWhole = Object.keys(rest).every(key => key === 'data' || key === 'id') && 'data' in rest
  const data = isWhole ? rest.data : rest
  return { environment: found.name, data: found.environment.readTask(data) }
}

/** Splits that all of them have, in the order of the first. */
function commonSplits(ingredients: readonly Ingredient[]): readonly string[] {
  const [first, ...others] = ingredients.map(({ environment }) => environment.splits ?? [])
  return (first ?? []).filter(split => others.every(each => each.includes(split)))
}

/** As many tasks of each as its weight says, whoever is short of a whole one first. */
function makeMixed(
  ingredients: readonly Ingredient[],
  { count, ...options }: Parameters<NonNullable<Environment['makeTasks']>>[0],
): readonly Task<MixedData>[] {
  return sharesOf(count, ingredients).flatMap((own, index) => {
    const { name, environment } = ingredients[index]!
    const made = own === 0 ? [] : environment.makeTasks!({ ...options, count: own })
    return made.map(({ id, data }) => ({
      id: (id.startsWith(`${name}/`) ? id : `${name}/${id}`) as TaskId,
      data: { environment: name, data },
    }))
  })
}

/** Whole numbers that add up to a count and are nearest to the weights. */
export function sharesOf(
  count: number,
  weighted: readonly Pick<MixedIn, 'weight'>[],
): readonly number[] {
  const total = weighted.reduce((sum, { weight }) => sum + weight, 0)
  let weights = 0
  let given = 0
  return weighted.map(({ weight }) => {
    weights += weight
    const share = Math.round((count * weights) / total) - given
    given += share
    return share
  })
}

/** The parts of all, each under its own name; those that a task's environment does not have give 0. */
function mixRewards(ingredients: readonly Ingredient[]): Environment<MixedData>['reward'] {
  const names = new Set(ingredients.flatMap(({ environment }) => Object.keys(partsOf(environment))))
  return Object.fromEntries([...names].map(name => [name, mixPart(ingredients, name)]))
}

function mixPart(ingredients: readonly Ingredient[], part: string): RewardPart<MixedData> {
  const own = new Map(
    ingredients.flatMap(({ name, environment }) => {
      const found = partsOf(environment)[part]
      return found
        ? [[name, typeof found === 'function' ? { weight: 1, score: found } : found]]
        : []
    }) as [string, Exclude<RewardPart, (...given: never) => unknown>][],
  )
  const weights = new Set([...own.values()].map(({ weight }) => weight))
  // One weight if they agree, so that reports show the scores as they are.
  const [weight] = weights.size === 1 ? weights : [1]
  return {
    weight: weight!,
    async score({ task, ...input }: RewardInput<MixedData>, call: Call) {
      const found = own.get(task.data.environment)
      if (!found) return 0
      const score = await found.score(
        { ...input, task: { id: task.id, data: task.data.data } },
        call,
      )
      return weights.size === 1 ? score : score * found.weight
    },
  }
}

/** The parts of an environment; one that has none is scored by its steps. */
function partsOf({ reward }: Environment): Environment['reward'] {
  return Object.keys(reward).length > 0 ? reward : { steps: sumOfSteps }
}

function sumOfSteps({ trajectory }: RewardInput): number {
  return trajectory.turns.reduce((sum, { reward = 0 }) => sum + reward, 0)
}
