import { textOf } from '@espalier/text'
import type { Environment, Task } from '../../base/core/environment.ts'
import { across, Failure } from '../../base/core/failure.ts'
import type { Scored, Unscored } from '../../base/core/group.ts'
import type { Guard } from '../../base/core/guard.ts'
import type { Lanes } from '../../base/core/lane.ts'
import { guardOf } from '../../base/core/outcome.ts'
import { inTime } from '../../base/core/process/deadline.ts'
import {
  type Reward,
  type RewardInput,
  type RewardPart,
  type RewardScore,
  toReward,
} from '../../base/core/reward.ts'
import { type Gradable, isGradable, type Trajectory } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import { defaultRewardSeconds } from './attempt.ts'
import { outcomeOf } from './end-walk.ts'

/** What scoring needs: the parts of the reward and where they may run. */
export interface ScoreContext {
  readonly reward: Environment['reward']
  readonly lanes: Pick<Lanes, 'reward'>
  readonly signal: AbortSignal
  /** Guards that may have stopped attempts: some set the reward of those. */
  readonly guards?: readonly Guard[] | undefined
  /** Seconds that each part may take before it fails. @default 600 */
  readonly rewardSeconds?: number | undefined
}

/** Scores every trajectory of a tree that may be scored; the rest keep the reason why not. */
export function scoreTree(
  tree: Tree,
  task: Task,
  context: ScoreContext,
): Promise<readonly (Scored | Unscored)[]> {
  return Promise.all(tree.trajectories.map(trajectory => scoreOne(tree, task, trajectory, context)))
}

/** Whether a trajectory got a reward. */
export function isScored(member: Scored | Unscored): member is Scored {
  return 'reward' in member
}

async function scoreOne(
  tree: Tree,
  task: Task,
  trajectory: Trajectory,
  context: ScoreContext,
): Promise<Scored | Unscored> {
  if (!isGradable(trajectory)) {
    const { outcome } = trajectory
    if (outcome.kind === 'failed' || outcome.kind === 'aborted')
      return { tree, trajectory, outcome }
    throw new TypeError(`an outcome of kind ${outcome.kind} is gradable`)
  }
  try {
    const scoring = { ...context, seat: tree.seat }
    return { tree, trajectory, reward: await scoreTrajectory(trajectory, task, scoring) }
  } catch (error) {
    const outcome = outcomeOf(error, context.signal)
    if (outcome.kind !== 'failed' && outcome.kind !== 'aborted') throw error
    return { tree, trajectory, outcome }
  }
}

/** The reward of one trajectory: its parts, scored side by side. */
export async function scoreTrajectory(
  trajectory: Gradable,
  task: Task,
  context: ScoreContext & { readonly seat?: string | undefined },
): Promise<Reward> {
  const set = guardReward(trajectory, context)
  if (set) return set
  const input = rewardInputOf(trajectory, task, context.seat)
  const names = Object.keys(context.reward)
  if (names.length === 0) return stepReward(trajectory)
  const parts = await Promise.all(names.map(name => scorePart(name, input, context)))
  return toReward(parts)
}

/** The reward that a guard sets for what it stopped, if one does. */
function guardReward({ outcome }: Gradable, { guards = [] }: ScoreContext): Reward | undefined {
  const by = guardOf(outcome)
  const guard = guards.find(({ name }) => name === by)
  if (guard?.reward === undefined || outcome.kind !== 'truncated') return undefined
  return toReward([{ name: outcome.limit, score: guard.reward, weight: 1 }])
}

/** Without a reward function, the reward is the sum of the environment's step rewards. */
function stepReward(trajectory: Trajectory): Reward {
  const steps = trajectory.turns.filter(turn => turn.reward !== undefined)
  if (steps.length === 0) {
    const cause = new Error(
      'no reward: the environment gives neither parts nor step rewards; name one with --reward',
    )
    throw new Failure('reward', { cause })
  }
  return toReward([
    { name: 'steps', score: steps.reduce((sum, turn) => sum + turn.reward!, 0), weight: 1 },
  ])
}

async function scorePart(
  name: string,
  input: RewardInput,
  context: ScoreContext,
): Promise<RewardScore> {
  const { signal, rewardSeconds: seconds = defaultRewardSeconds } = context
  const part = `reward part "${name}"`
  return await across('reward', context, async () => {
    const { score, weight } = toWeighted(part, context.reward[name]!)
    const result: unknown = await context.lanes.reward.run(context, () =>
      inTime(part, { seconds, signal }, stopping => score(input, { signal: stopping() })),
    )
    if (isNumber(result)) return { name, score: result, weight }
    throw new TypeError(`${part} gave ${shown(result)}, not a finite number`)
  })
}

/** Parts that did not come from `environment` have not been checked before. */
function toWeighted(
  what: string,
  part: RewardPart,
): Exclude<RewardPart, (...input: never) => unknown> {
  if (typeof part === 'function') return { weight: 1, score: part }
  if (typeof part?.score !== 'function') throw new TypeError(`${what} has no function "score"`)
  if (isNumber(part.weight)) return part
  throw new TypeError(`${what} has weight ${shown(part.weight)}, not a finite number`)
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** A wrong value in an error: a text is quoted, so that it does not pass for a number. */
function shown(value: unknown): string {
  if (typeof value === 'string') return `the text ${JSON.stringify(value.slice(0, 80))}`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

/** What a reward function is given of a trajectory. */
export function rewardInputOf(trajectory: Gradable, task: Task, seat = ''): RewardInput {
  const last = trajectory.messages.findLast(message => message.role === 'assistant')
  return {
    task,
    messages: trajectory.messages,
    answer: trajectory.answer ?? (last ? textOf(last.content).trim() : ''),
    calls: trajectory.calls,
    report: trajectory.report,
    outcome: trajectory.outcome,
    trajectory,
    seat,
  }
}
