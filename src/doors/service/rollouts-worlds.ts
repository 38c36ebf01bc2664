import { randomUUID } from 'node:crypto'
import { type Message, type ToolDefinition, textOf } from '@espalier/text'
import type { Environment, Task } from '../../base/core/environment.ts'
import { describeCause } from '../../base/core/failure.ts'
import { type LaneLimits, type Lanes, makeLanes } from '../../base/core/lane.ts'
import type { Reward } from '../../base/core/reward.ts'
import { RefusedRequest } from '../door/refused-request.ts'
import { IdleWatch } from '../hosting/idle-watch.ts'
import { PlayedWorld, WorldOverError } from '../hosting/played-world.ts'
import { NamedAnswers, type NamedRequest } from './named-answers.ts'

/** What worlds are opened with. */
export interface WorldsOptions {
  readonly environment: Environment
  readonly reward: Environment['reward']
  /** Seconds that each part of it may take before it fails. @default 600 */
  readonly rewardSeconds?: number | undefined
  /** Worlds at one time. @default 1024 */
  readonly most?: number
  /** Seconds after which a world that nobody uses is closed, and the reward of a closed one is forgotten. @default 900 */
  readonly idleSeconds?: number
}

/** How a world begins, and the tools it offers. */
export interface Opened {
  readonly id: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
}

/** A call of a tool. */
export interface ToolCall {
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** The result of a call. */
export interface Stepped {
  /** What the caller is shown. */
  readonly content: string
  readonly isOver: boolean
}

interface OpenWorld {
  readonly played: PlayedWorld
  /** The answers to its last calls. */
  readonly steps: NamedAnswers<Stepped>
  /** The name of the request that opened it. */
  readonly openedBy: string | undefined
  /** Closes it if nobody calls it. */
  readonly idle: IdleWatch
}

/** Answers that are kept of one world's calls: a client sends the one again whose answer it missed. */
const callsKept = 32
/** Rewards of closed worlds that are kept. */
const closesKept = 10_000

const noLimits: LaneLimits = { policy: 1, tools: 256, environment: 256, reward: 64 }

/**
 * Worlds for trainers that roll by themselves and only need tools and a reward: opened for a task,
 * called, and scored when they are closed.
 */
export class Worlds implements AsyncDisposable {
  readonly #options: WorldsOptions & Required<Pick<WorldsOptions, 'most' | 'idleSeconds'>>
  readonly #open = new Map<string, OpenWorld>()
  readonly #openings: NamedAnswers<Opened>
  readonly #closings: NamedAnswers<Reward>
  readonly #lanes: Lanes = makeLanes(noLimits)
  readonly #stop = new AbortController()
  #beingOpened = 0

  constructor(options: WorldsOptions) {
    this.#options = { most: 1024, idleSeconds: 900, ...options }
    const { most, idleSeconds } = this.#options
    this.#openings = new NamedAnswers({ most })
    this.#closings = new NamedAnswers({ most: closesKept, seconds: idleSeconds })
  }

  /** Opens a world; a named request opens one, however often it is sent. */
  open(
    task: Task,
    { seed = 0, request }: { readonly seed?: number; readonly request?: NamedRequest } = {},
  ): Promise<Opened> {
    return this.#openings.give(request, () => this.#openWorld(task, seed, request?.key))
  }

  /** Calls a tool of a world, as a policy would in a turn of its own; a named call is made once. */
  async call(id: string, call: ToolCall, request?: NamedRequest): Promise<Stepped> {
    const { played, steps, idle } = this.#find(id)
    return await idle.during(() => steps.give(request, () => callTool(played, call)))
  }

  /** Closes a world with the last words of the policy, and scores what happened in it. */
  close(id: string, answer: string | undefined, request?: NamedRequest): Promise<Reward> {
    const named = request && { ...request, key: `${id} ${request.key}` }
    return this.#closings.give(named, () => this.#closeWorld(id, answer))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the service was stopped'))
    await Promise.all([...this.#open.keys()].map(id => this.#drop(id)))
  }

  async #openWorld(task: Task, seed: number, openedBy: string | undefined): Promise<Opened> {
    const { environment, reward, rewardSeconds, most, idleSeconds } = this.#options
    // Worlds being opened count too, so that many requests at once cannot exceed the limit.
    if (this.#open.size + this.#beingOpened >= most) {
      throw new RefusedRequest(429, `${most} worlds are open already`)
    }
    const id = randomUUID()
    this.#beingOpened++
    const { signal } = this.#stop
    const options = { environment, reward, rewardSeconds, lanes: this.#lanes, seed, signal }
    const played = await PlayedWorld.open(task, options)
      .catch(tellCaller)
      .finally(() => this.#beingOpened--)
    const steps = new NamedAnswers<Stepped>({ most: callsKept })
    const idle = new IdleWatch(idleSeconds, () => void this.#drop(id))
    this.#open.set(id, { played, steps, openedBy, idle })
    const { opening, tools } = played.world
    return { id, messages: opening, tools }
  }

  async #closeWorld(id: string, answer: string | undefined): Promise<Reward> {
    const { played } = this.#find(id)
    this.#remove(id)
    try {
      // A call that is still being made may end the world.
      await played.inTurn(async () => undefined)
      if (answer !== undefined && !played.isOver) await played.say(answer).catch(tellCaller)
      return await played.inTurn(() => played.score())
    } finally {
      await leave(played)
    }
  }

  #find(id: string): OpenWorld {
    const open = this.#open.get(id)
    if (!open) throw new RefusedRequest(404, `no open world "${id}"`)
    return open
  }

  async #drop(id: string): Promise<void> {
    const open = this.#remove(id)
    if (open) await leave(open.played)
  }

  #remove(id: string): OpenWorld | undefined {
    const open = this.#open.get(id)
    this.#open.delete(id)
    open?.idle.stop()
    if (open?.openedBy !== undefined) this.#openings.forget(open.openedBy)
    return open
  }
}

async function callTool(played: PlayedWorld, call: ToolCall): Promise<Stepped> {
  const { observed } = await played.call(call.name, call.arguments).catch(tellCaller)
  const content = observed.map(each => textOf(each.content)).join('\n')
  return { content, isOver: played.isOver }
}

/** Disposes of a world; one that cannot be disposed of is worth what it was. */
async function leave(played: PlayedWorld): Promise<void> {
  await played[Symbol.asyncDispose]().catch(() => undefined)
}

/** Passes a world's error on to the caller. */
function tellCaller(cause: unknown): never {
  if (cause instanceof WorldOverError) {
    throw new RefusedRequest(409, 'this world has ended; close it for its reward')
  }
  throw new RefusedRequest(400, `the world failed: ${describeCause(cause)}`)
}
