import { type Message, type Reply, type ToolDefinition, textOf } from '@espalier/text'
import type { Environment, OpenCall, Task, Transition, World } from '../../base/core/environment.ts'
import type { Json, TrajectoryId } from '../../base/core/ids.ts'
import type { GradableOutcome } from '../../base/core/outcome.ts'
import {
  type Reward,
  type RewardInput,
  type RewardScore,
  toReward,
} from '../../base/core/reward.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import { plainTrajectory } from '../../base/core/trajectory.ts'

/** What a player sees before each turn. */
export interface Situation<Data = unknown> {
  readonly task: Task<Data>
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  readonly turn: number
  /** Whose turn it is, if an attempt has several seats. */
  readonly seat?: string
}

/** Gives the next reply, or undefined if it has nothing more to say. */
export type Player<Data = unknown> = (
  situation: Situation<Data>,
) => Reply | undefined | Promise<Reply | undefined>

/** What was played, without any tokens. */
export interface Play {
  readonly messages: readonly Message[]
  readonly calls: readonly CallRecord[]
  readonly transitions: readonly Transition[]
  readonly outcome: GradableOutcome
  readonly report?: Json
}

/** An agent that can be rolled and taught, but whose attempts are no conversation to be stepped. */
export class NotSteppable extends Error {
  override name = 'NotSteppable'

  constructor(what: string) {
    super(`this agent ${what}: it can be rolled, taught and trained, but not stepped turn by turn`)
  }
}

/** Plays a world, without a model, until it ends, the player has no more to say, or `turns` are over. */
export async function playWorld<Data>(
  world: World,
  task: Task<Data>,
  { player, turns, signal }: { player: Player<Data>; turns: number; signal: AbortSignal },
): Promise<Play> {
  const messages: Message[] = [...world.opening]
  const transitions: Transition[] = []
  let outcome: GradableOutcome = { kind: 'truncated', limit: 'turns' }
  for (let turn = 0; turn < turns; turn++) {
    const reply = await player({ task, messages, tools: world.tools, turn })
    if (!reply) break
    messages.push(reply.message)
    const transition = await world.step(reply, { signal, messages, turn })
    transitions.push(transition)
    messages.push(...(transition.observed ?? []))
    if (transition.kind === 'continue') continue
    const { limit } = transition
    outcome = limit ? { kind: 'truncated', limit } : { kind: 'completed' }
    break
  }
  const calls = transitions.flatMap(transition => transition.calls ?? [])
  const report = await world.report?.()
  return { messages, calls, transitions, outcome, ...(report !== undefined && { report }) }
}

/** How a task is played in a world that is opened for it. */
export type PlayCall<Data> = OpenCall & {
  readonly player: Player<Data>
  readonly turns: number
}

/** Opens a world, plays it, disposes of it and scores what was played. */
export async function scorePlay<Data>(
  environment: Environment<Data>,
  task: Task<Data>,
  call: PlayCall<Data>,
): Promise<Reward> {
  return (await playScored(environment, task, call)).reward
}

/** What was played in a world that is gone by then, its tools, and what it earned. */
export async function playScored<Data>(
  environment: Environment<Data>,
  task: Task<Data>,
  { player, turns, ...call }: PlayCall<Data>,
): Promise<{ readonly play: Play; readonly tools: World['tools']; readonly reward: Reward }> {
  await using world = await environment.open(task, call)
  const play = await playWorld(world, task, { player, turns, signal: call.signal })
  return { play, tools: world.tools, reward: await rewardOf(environment, task, play, call) }
}

async function rewardOf<Data>(
  environment: Environment<Data>,
  task: Task<Data>,
  play: Play,
  { signal }: Pick<OpenCall, 'signal'>,
): Promise<Reward> {
  const input = rewardInputOf(play, task, environment.seats?.[0])
  const parts: RewardScore[] = []
  for (const [name, part] of Object.entries(environment.reward)) {
    const { weight, score } = typeof part === 'function' ? { weight: 1, score: part } : part
    parts.push({ name, weight, score: await score(input, { signal }) })
  }
  const steps = play.transitions.flatMap(transition => transition.reward ?? [])
  if (parts.length > 0) return toReward(parts)
  return toReward([{ name: 'steps', weight: 1, score: steps.reduce((sum, step) => sum + step, 0) }])
}

/** What rewards are given: nothing was sampled, so there are no tokens in its trajectory. */
function rewardInputOf<Data>(play: Play, task: Task<Data>, seat = ''): RewardInput<Data> {
  const { messages, calls, outcome, report } = play
  const last = messages.findLast(message => message.role === 'assistant')
  const answer = last ? textOf(last.content).trim() : ''
  const trajectory = plainTrajectory({
    id: `${task.id}/played` as TrajectoryId,
    outcome,
    messages,
    calls,
    ...(report !== undefined && { report }),
  })
  return { task, messages, answer, calls, report, outcome, trajectory, seat }
}
