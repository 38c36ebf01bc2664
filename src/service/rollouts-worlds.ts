import { randomUUID } from 'node:crypto'
import type { Environment, Task, World } from '../core/environment.ts'
import { describeCause } from '../core/failure.ts'
import type { Json, TrajectoryId } from '../core/ids.ts'
import { type LaneLimits, type Lanes, openLanes } from '../core/lane.ts'
import type { AssistantMessage, Message, Reply } from '../core/message.ts'
import { textOf } from '../core/message.ts'
import type { Reward } from '../core/reward.ts'
import type { CallRecord } from '../core/tool.ts'
import { type Gradable, plainTrajectory } from '../core/trajectory.ts'
import { seedOf } from '../math/random.ts'
import { scoreTrajectory } from '../rollout/score.ts'
import { RolloutsError } from './rollouts-error.ts'

/** What worlds are opened with. */
export interface WorldsOptions {
  readonly environment: Environment
  readonly reward: Environment['reward']
  /** Worlds at one time. @default 1024 */
  readonly most?: number
  /** Seconds after which a world that nobody uses is closed. @default 900 */
  readonly idleSeconds?: number
}

/** What a call came to. */
export interface Stepped {
  /** What the caller is shown. */
  readonly content: string
  readonly isOver: boolean
}

interface OpenWorld {
  readonly task: Task
  readonly world: World
  readonly messages: Message[]
  readonly calls: CallRecord[]
  readonly rewards: number[]
  turn: number
  isOver: boolean
  timer: NodeJS.Timeout
  /** One call at a time: a world has one state. */
  last: Promise<unknown>
}

const noLimits: LaneLimits = { policy: 1, tools: 256, environment: 256, reward: 64 }

/**
 * Worlds for trainers that roll by themselves and only need tools and a reward: opened for a task,
 * called, and scored when they are closed.
 */
export class Worlds implements AsyncDisposable {
  readonly #options: Required<WorldsOptions>
  readonly #open = new Map<string, OpenWorld>()
  readonly #lanes: Lanes = openLanes(noLimits)
  readonly #stop = new AbortController()
  #beingOpened = 0

  constructor(options: WorldsOptions) {
    this.#options = { most: 1024, idleSeconds: 900, ...options }
  }

  /** Opens a world; gives how it begins and the tools it offers. */
  async open(task: Task, seed = 0) {
    const { environment, most } = this.#options
    // Those that are being opened count too, so that many at once are no more than may be.
    if (this.#open.size + this.#beingOpened >= most) {
      throw new RolloutsError(429, `${most} worlds are open already`)
    }
    const id = randomUUID()
    this.#beingOpened++
    const world = await environment
      .open(task, {
        seed: seedOf('world', seed, task.id).low >>> 1,
        lanes: this.#lanes,
        signal: this.#stop.signal,
        clock: () => performance.now() / 1000,
      })
      .finally(() => this.#beingOpened--)
    this.#open.set(id, {
      task,
      world,
      messages: [...world.opening],
      calls: [],
      rewards: [],
      turn: 0,
      isOver: false,
      timer: this.#watch(id),
      last: Promise.resolve(),
    })
    return { id, messages: world.opening, tools: world.tools }
  }

  /** Calls a tool of a world, as a policy would in a turn of its own. */
  async call(id: string, name: string, input: Readonly<Record<string, unknown>>): Promise<Stepped> {
    const open = this.#find(id)
    return await this.#inTurn(open, async () => {
      const call = { id: `call_${open.turn}`, name, arguments: JSON.stringify(input) }
      const message: AssistantMessage = {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: call.id, type: 'function', function: { name, arguments: call.arguments } },
        ],
      }
      const observed = await this.#step(open, {
        message,
        calls: [{ kind: 'parsed', ...call }],
      })
      return { content: observed.map(each => textOf(each.content)).join('\n'), isOver: open.isOver }
    })
  }

  /** Closes a world with the last words of the policy, and scores what happened in it. */
  async close(id: string, answer: string | undefined): Promise<Reward> {
    const open = this.#find(id)
    this.#open.delete(id)
    clearTimeout(open.timer)
    return await this.#inTurn(open, async () => {
      try {
        if (answer !== undefined && !open.isOver) {
          await this.#step(open, { message: { role: 'assistant', content: answer }, calls: [] })
        }
        return await this.#score(open)
      } finally {
        await open.world[Symbol.asyncDispose]()
      }
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the service was stopped'))
    for (const id of [...this.#open.keys()]) await this.#drop(id)
  }

  #find(id: string): OpenWorld {
    const open = this.#open.get(id)
    if (!open) throw new RolloutsError(404, `no open world "${id}"`)
    clearTimeout(open.timer)
    open.timer = this.#watch(id)
    return open
  }

  #watch(id: string): NodeJS.Timeout {
    return setTimeout(() => void this.#drop(id), this.#options.idleSeconds * 1000).unref()
  }

  async #drop(id: string): Promise<void> {
    const open = this.#open.get(id)
    this.#open.delete(id)
    clearTimeout(open?.timer)
    await open?.world[Symbol.asyncDispose]()
  }

  async #inTurn<T>(open: OpenWorld, work: () => Promise<T>): Promise<T> {
    const mine = open.last.then(work, work)
    open.last = mine.catch(() => undefined)
    return await mine
  }

  async #step(open: OpenWorld, reply: Reply): Promise<readonly Message[]> {
    if (open.isOver) throw new RolloutsError(409, 'this world has ended; close it for its reward')
    open.messages.push(reply.message)
    const { signal } = this.#stop
    const messages = [...open.messages]
    const transition = await open.world
      .step(reply, { messages, turn: open.turn++, signal })
      .catch((cause: unknown) => {
        throw new RolloutsError(400, `the world failed: ${describeCause(cause)}`)
      })
    open.isOver = transition.kind === 'end'
    if (transition.reward !== undefined) open.rewards.push(transition.reward)
    open.calls.push(...(transition.calls ?? []))
    const observed = transition.observed ?? []
    open.messages.push(...observed)
    return observed
  }

  async #score(open: OpenWorld): Promise<Reward> {
    const report = await open.world.report?.()
    const trajectory = trajectoryOf(open, report)
    const { reward } = this.#options
    const context = { reward, lanes: this.#lanes, signal: this.#stop.signal }
    return await scoreTrajectory(trajectory, open.task, context)
  }
}

/** What rewards are given: the conversation without its tokens, which only the trainer has. */
function trajectoryOf({ messages, calls, rewards }: OpenWorld, report: Json | undefined): Gradable {
  return plainTrajectory({
    id: 'world' as TrajectoryId,
    outcome: { kind: 'completed' },
    turns: rewards.map(reward => ({
      from: 0,
      end: { node: 0, offset: 0 },
      finish: { kind: 'stop' },
      messages: 0,
      reward,
    })),
    messages,
    calls,
    ...(report !== undefined && { report }),
    fidelity: { kind: 're-encoded', forks: [] },
  })
}
