import type { Environment, Task } from '../core/environment.ts'
import { across, Failure } from '../core/failure.ts'
import type { Scored, Unscored } from '../core/group.ts'
import type { Guard } from '../core/guard.ts'
import type { Lanes } from '../core/lane.ts'
import { textOf } from '../core/message.ts'
import {
  type Reward,
  type RewardInput,
  type RewardPart,
  type RewardScore,
  toReward,
} from '../core/reward.ts'
import { type Gradable, isGradable, type Trajectory } from '../core/trajectory.ts'
import type { Tree } from '../core/tree.ts'
import { outcomeOf } from './end-walk.ts'

/** What scoring needs: the parts of the reward and where they may run. */
export interface ScoreContext {
  readonly reward: Environment['reward']
  readonly lanes: Pick<Lanes, 'reward'>
  readonly signal: AbortSignal
  /** Guards that may have stopped attempts: some set the reward of those. */
  readonly guards?: readonly Guard[] | undefined
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
    const { reward: parts, lanes, signal, guards } = context
    const scoring = { reward: parts, lanes, signal, guards, seat: tree.seat }
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
  if (outcome.kind !== 'truncated') return undefined
  const guard = guards.find(({ name }) => outcome.limit === `guard:${name}`)
  if (guard?.reward === undefined) return undefined
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
  const { score, weight } = toWeighted(context.reward[name]!)
  const value = await across('reward', context, () =>
    context.lanes.reward.run(context, async () => {
      const result: unknown = await score(input, { signal: context.signal })
      if (typeof result === 'number' && Number.isFinite(result)) return result
      throw new TypeError(`reward part "${name}" gave ${String(result)}, not a finite number`)
    }),
  )
  return { name, score: value, weight }
}

function toWeighted(part: RewardPart): Exclude<RewardPart, (...input: never) => unknown> {
  return typeof part === 'function' ? { weight: 1, score: part } : part
}

/** What a reward function is given of a trajectory. */
export function rewardInputOf(trajectory: Gradable, task: Task, seat = ''): RewardInput {
  const last = trajectory.messages.findLast(message => message.role === 'assistant')
  return {
    task,
    messages: trajectory.messages,
    answer: last ? textOf(last.content).trim() : '',
    calls: trajectory.calls,
    report: trajectory.report,
    outcome: trajectory.outcome,
    trajectory,
    seat,
  }
}
