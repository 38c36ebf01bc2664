import type { AssistantMessage, Message, Reply } from '@espalier/text'
import { steadySeconds } from '../../base/core/call.ts'
import type { Environment, Task, World } from '../../base/core/environment.ts'
import type { TrajectoryId } from '../../base/core/ids.ts'
import type { Lanes } from '../../base/core/lane.ts'
import type { Reward } from '../../base/core/reward.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import { plainTrajectory } from '../../base/core/trajectory.ts'
import { seedOf } from '../../base/math/random.ts'
import { scoreTrajectory } from '../../engine/rollout/score.ts'
import { disposeOf } from '../../engine/rollout/world/dispose.ts'

/** What a world for outside policies is opened with. */
export interface PlayedWorldOptions {
  readonly environment: Environment
  readonly reward: Environment['reward']
  /** Seconds that each part of it may take before it fails. @default 600 */
  readonly rewardSeconds?: number | undefined
  readonly lanes: Lanes
  readonly seed: number
  readonly signal: AbortSignal
}

/** The result of an action. */
export interface Acted {
  readonly observed: readonly Message[]
  readonly calls: readonly CallRecord[]
  /** What the step alone was worth, if the world says so. */
  readonly reward: number | undefined
}

/** Thrown when an action is taken in a world that has ended. */
export class WorldOverError extends Error {
  override name = 'WorldOverError'
}

/** A world that somebody else's policy plays: stepped one action at a time, scored at its end. */
export class PlayedWorld implements AsyncDisposable {
  readonly task: Task
  readonly world: World
  readonly #options: PlayedWorldOptions
  readonly #messages: Message[]
  readonly #calls: CallRecord[] = []
  readonly #rewards: number[] = []
  #turn = 0
  #isOver = false
  /** One action at a time: a world has one state. */
  #last: Promise<unknown> = Promise.resolve()

  private constructor(world: World, task: Task, options: PlayedWorldOptions) {
    this.world = world
    this.task = task
    this.#options = options
    this.#messages = [...world.opening]
  }

  static async open(task: Task, options: PlayedWorldOptions): Promise<PlayedWorld> {
    const { environment, lanes, signal } = options
    if (environment.seats && environment.seats.length > 1) {
      const seats = environment.seats.join(', ')
      throw new Error(`${environment.name} has the seats ${seats}, which one player cannot play`)
    }
    const world = await environment.open(task, {
      seed: seedOf('world', options.seed, task.id).low >>> 1,
      lanes,
      signal,
      clock: steadySeconds,
    })
    return new PlayedWorld(world, task, options)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Actions taken so far. */
  get turns(): number {
    return this.#turn
  }

  /** Calls a tool, in a turn of its own. */
  call(name: string, input: Readonly<Record<string, unknown>>): Promise<Acted> {
    return this.inTurn(() => {
      const call = { id: `call_${this.#turn}`, name, arguments: JSON.stringify(input) }
      const message: AssistantMessage = {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: call.id, type: 'function', function: { name, arguments: call.arguments } },
        ],
      }
      return this.#step({ message, calls: [{ kind: 'parsed', ...call }] })
    })
  }

  /** Says something, in a turn of its own. */
  say(text: string): Promise<Acted> {
    return this.inTurn(() =>
      this.#step({ message: { role: 'assistant', content: text }, calls: [] }),
    )
  }

  /** Runs `work` when everything before it is done. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work, work)
    this.#last = mine.catch(() => undefined)
    return mine
  }

  /** Scores what happened; there are no tokens, which only the client has. */
  async score(): Promise<Reward> {
    const report = await this.world.report?.()
    const trajectory = plainTrajectory({
      id: 'world' as TrajectoryId,
      outcome: { kind: 'completed' },
      turns: this.#rewards.map(reward => ({
        from: 0,
        end: { node: 0, offset: 0 },
        finish: { kind: 'stop' },
        messages: 0,
        reward,
      })),
      messages: this.#messages,
      calls: this.#calls,
      ...(report !== undefined && { report }),
      fidelity: { kind: 're-encoded', forks: [] },
    })
    const { environment, ...scoring } = this.#options
    const seat = environment.seats?.[0]
    return await scoreTrajectory(trajectory, this.task, { ...scoring, seat })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await disposeOf(this.world)
  }

  async #step(reply: Reply): Promise<Acted> {
    if (this.#isOver) throw new WorldOverError('this world has ended')
    this.#messages.push(reply.message)
    const { signal } = this.#options
    const messages = [...this.#messages]
    const transition = await this.world.step(reply, { messages, turn: this.#turn++, signal })
    const { observed = [], calls = [], reward } = transition
    this.#isOver = transition.kind === 'end'
    if (reward !== undefined) this.#rewards.push(reward)
    this.#calls.push(...calls)
    this.#messages.push(...observed)
    return { observed, calls, reward }
  }
}
