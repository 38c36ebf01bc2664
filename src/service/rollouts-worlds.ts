import { randomUUID } from 'node:crypto'
import type { Environment, Task } from '../core/environment.ts'
import { describeCause } from '../core/failure.ts'
import { type LaneLimits, type Lanes, openLanes } from '../core/lane.ts'
import { textOf } from '../core/message.ts'
import type { Reward } from '../core/reward.ts'
import { PlayedWorld, WorldOverError } from '../hosting/played-world.ts'
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

/** The result of a call. */
export interface Stepped {
  /** What the caller is shown. */
  readonly content: string
  readonly isOver: boolean
}

interface OpenWorld {
  readonly played: PlayedWorld
  timer: NodeJS.Timeout
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
    const { environment, reward, most } = this.#options
    // Worlds being opened count too, so that many requests at once cannot exceed the limit.
    if (this.#open.size + this.#beingOpened >= most) {
      throw new RolloutsError(429, `${most} worlds are open already`)
    }
    const id = randomUUID()
    this.#beingOpened++
    const { signal } = this.#stop
    const options = { environment, reward, lanes: this.#lanes, seed, signal }
    const played = await PlayedWorld.open(task, options).finally(() => this.#beingOpened--)
    this.#open.set(id, { played, timer: this.#watch(id) })
    const { opening, tools } = played.world
    return { id, messages: opening, tools }
  }

  /** Calls a tool of a world, as a policy would in a turn of its own. */
  async call(id: string, name: string, input: Readonly<Record<string, unknown>>): Promise<Stepped> {
    const { played } = this.#find(id)
    const { observed } = await played.call(name, input).catch(tellCaller)
    const content = observed.map(each => textOf(each.content)).join('\n')
    return { content, isOver: played.isOver }
  }

  /** Closes a world with the last words of the policy, and scores what happened in it. */
  async close(id: string, answer: string | undefined): Promise<Reward> {
    const { played, timer } = this.#find(id)
    this.#open.delete(id)
    clearTimeout(timer)
    try {
      if (answer !== undefined && !played.isOver) await played.say(answer).catch(tellCaller)
      return await played.inTurn(() => played.score())
    } finally {
      await played[Symbol.asyncDispose]()
    }
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
    await open?.played[Symbol.asyncDispose]()
  }
}

/** Passes a world's error on to the caller. */
function tellCaller(cause: unknown): never {
  if (cause instanceof WorldOverError) {
    throw new RolloutsError(409, 'this world has ended; close it for its reward')
  }
  throw new RolloutsError(400, `the world failed: ${describeCause(cause)}`)
}
