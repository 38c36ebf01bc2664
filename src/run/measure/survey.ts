import type { Environment } from '../../base/core/environment.ts'
import type { Group } from '../../base/core/group.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import { succeeds } from '../../base/math/attempts.ts'
import type { Interval } from '../../base/math/intervals.ts'
import { mean } from '../../base/math/statistics.ts'
import { openRollParts } from '../run/open-parts.ts'
import { type RollParts, rollGroups } from '../run/roll-groups.ts'
import type { RollOptions } from '../run/roll-options.ts'
import { defaults } from '../settings/settings.ts'
import type { TaskSource } from '../tasks/tasks.ts'
import { makeMeasure } from './measure.ts'
import { type Advice, advise } from './survey-advice.ts'

/** What a policy makes of an environment in one way of asking it. */
export interface SurveyArm {
  /** Examples that were shown before each task. */
  readonly shots: number
  /** Solved share at the temperature of the survey. */
  readonly success: number
  readonly interval: Interval
  /** Solved share if the likeliest token is taken each time. */
  readonly greedy: number
  readonly attempts: number
  /** Attempts that failed outside the policy. */
  readonly unscored: number
  /** Share of groups whose rewards differ: the others teach nothing. */
  readonly contrast: number
  /** Of each task the solved share, in their order. */
  readonly perTask: readonly number[]
  /** Means of an attempt. */
  readonly tokens: number
  readonly promptTokens: number
  readonly turns: number
  /** Shares of attempts that were not solved for their form, and for what they did. */
  readonly fails: { readonly format: number; readonly strategy: number }
  /** What was said last in an attempt of the larger of those two. */
  readonly example?: string
  readonly seconds: number
}

/** What a survey found. */
export interface Survey {
  readonly policy: string
  readonly environment: string
  readonly group: number
  readonly tasks: number
  readonly arms: readonly SurveyArm[]
  readonly advice: Advice
}

/** How a survey is made. */
export interface SurveyOptions extends RollOptions {
  /** Called when a way of asking is measured. */
  readonly onArm?: (arm: SurveyArm) => void
}

/**
 * What a policy makes of an environment before anything is trained: success with and without examples, contrast,
 * cost, what fails, and what training would probably need.
 */
export async function survey<Data>(
  environment: Environment<Data> | string,
  tasks: TaskSource<Data>,
  options: SurveyOptions,
): Promise<Survey> {
  const { onArm, group = 4, ...rolling } = options
  await using opened = await openRollParts(environment, tasks, { ...rolling, group })
  const { parts } = opened
  const { examples, ...plain } = parts
  const ways: readonly RollParts<Data>[] = examples ? [plain, parts] : [plain]
  const arms: SurveyArm[] = []
  for (const way of ways) {
    const arm = await measureArm(tasks, { ...way, group }, shownTurns(examples))
    arms.push(arm)
    onArm?.(arm)
  }
  return {
    policy: parts.policy.name,
    environment: parts.environment.name,
    group,
    tasks: arms[0]!.perTask.length,
    arms,
    advice: advise(arms),
  }
}

async function measureArm<Data>(
  tasks: TaskSource<Data>,
  parts: RollParts<Data>,
  shown: number,
): Promise<SurveyArm> {
  const started = performance.now()
  const drawn = await collect(tasks, parts)
  const seconds = (performance.now() - started) / 1000
  const greedy = await collect(tasks, {
    ...parts,
    group: 1,
    sampling: { ...parts.sampling, temperature: 0 },
  })
  const members = drawn.flatMap(each => each.members)
  const solved = members.filter(isSolved)
  const failed = members.filter(member => !isSolved(member))
  const fewest = Math.min(shown, ...solved.map(({ trajectory }) => trajectory.turns.length))
  const [format, strategy] = split(failed, ({ trajectory }) => hasFailedInForm(trajectory, fewest))
  const worse = format.length >= strategy.length ? format : strategy
  const example = worse[0] && lastWords(worse[0].trajectory)
  const share = (count: number): number => (members.length === 0 ? 0 : count / members.length)
  const measure = makeMeasure({ successAt: defaults.successAt })
  const perTask = drawn.flatMap(each => {
    const { chances } = measure.add(each)
    return chances.length === 0 ? [] : [mean(chances)]
  })
  const { success, unscored } = measure.result()
  const meanOf = (of: (trajectory: Trajectory) => number): number =>
    mean(members.map(({ trajectory }) => of(trajectory)))
  return {
    shots: parts.examples?.now.count ?? 0,
    success: success.value,
    interval: { low: success.low, high: success.high },
    greedy: mean(greedy.flatMap(each => each.members.map(member => Number(isSolved(member))))),
    attempts: members.length,
    unscored,
    contrast: mean(drawn.map(each => Number(hasContrast(each)))),
    perTask,
    tokens: meanOf(({ usage }) => usage.sampled),
    promptTokens: meanOf(({ usage }) => usage.prompt),
    turns: meanOf(({ turns }) => turns.length),
    fails: { format: share(format.length), strategy: share(strategy.length) },
    ...(example !== undefined && { example }),
    seconds,
  }
}

type Member = Group['members'][number]

const isSolved = ({ reward }: Member): boolean => succeeds(reward.total, defaults.successAt)

/** Whether a group's rewards differ. */
function hasContrast({ members }: Group): boolean {
  return new Set(members.map(({ reward }) => reward.total)).size > 1
}

async function collect<Data>(
  tasks: TaskSource<Data>,
  parts: RollParts<Data>,
): Promise<readonly Group[]> {
  const groups: Group[] = []
  for await (const group of rollGroups(tasks, parts)) groups.push(group)
  const attempted = groups.some(({ members }) => members.length > 0)
  const reason = groups.flatMap(({ unscored }) => unscored)[0]?.outcome
  if (!attempted && reason) {
    throw new Error(
      `no attempt could be scored: ${'message' in reason ? reason.message : reason.by}`,
    )
  }
  return groups
}

/** The fewest turns in which an example solves its task; infinitely many without examples. */
function shownTurns(examples: RollParts['examples']): number {
  const turns = (examples?.now.pool ?? []).map(
    ({ messages }) => messages.filter(({ role }) => role === 'assistant').length,
  )
  return Math.min(...turns)
}

/**
 * Whether an attempt failed in its form: it was cut, made calls that nobody could read, or ended sooner than any that
 * was solved. The others played on, and lost.
 */
function hasFailedInForm({ outcome, calls, turns }: Trajectory, fewest: number): boolean {
  if (outcome.kind === 'truncated' && outcome.limit !== 'turns') return true
  if (calls.length > 0 && calls.every(call => call.problem === 'malformed-call')) return true
  return Number.isFinite(fewest) && turns.length < fewest
}

function lastWords({ messages }: Trajectory): string | undefined {
  const said = messages.findLast(({ role }) => role === 'assistant')?.content
  if (typeof said !== 'string') return undefined
  const line = said.replace(/\s+/g, ' ').trim()
  return line.length > 80 ? `${line.slice(0, 79)}…` : line
}

function split<Item>(
  items: readonly Item[],
  isFirst: (item: Item) => boolean,
): readonly [readonly Item[], readonly Item[]] {
  return [items.filter(isFirst), items.filter(item => !isFirst(item))]
}
