import { randomUUID } from 'node:crypto'
import type { Environment } from '../../base/core/environment.ts'
import { type Lanes, makeLanes } from '../../base/core/lane.ts'
import { HostedWorld } from './hosted-world.ts'
import { IdleWatch } from './idle-watch.ts'
import { PlayedWorld } from './played-world.ts'
import { TaskChoice, type TaskList, type Wanted } from './task-list.ts'

/** What is served, and to how many at one time. */
export interface HostOptions {
  readonly environment: Environment
  /** @default the environment's own */
  readonly reward?: Environment['reward']
  readonly tasks: TaskList
  /** Sessions at one time. @default 64 */
  readonly sessions?: number
  /** Seconds after which a session that nobody uses is closed. @default 900 */
  readonly idleSeconds?: number
}

/** There is no room for another session. */
export class FullError extends Error {
  override name = 'FullError'
  readonly active: number
  readonly most: number

  constructor(active: number, most: number) {
    super(`Server at capacity: ${active}/${most} sessions active`)
    this.active = active
    this.most = most
  }
}

/** One client's session: a world at a time, which a reset replaces. */
export interface HostSession extends AsyncDisposable {
  readonly id: string
  /** The current world; opens one for the next task if there was no reset yet. */
  world(): Promise<HostedWorld>
  reset(wanted: Wanted): Promise<HostedWorld>
  /** Whether a socket uses it; it has one at a time. */
  isAttached: boolean
}

/** Opens worlds of an environment for clients, within bounds. */
export class Host implements AsyncDisposable {
  readonly environment: Environment
  readonly tasks: TaskList
  readonly #options: Required<Pick<HostOptions, 'sessions' | 'idleSeconds' | 'reward'>>
  readonly #choice: TaskChoice
  readonly #lanes: Lanes = makeLanes({ policy: 1, tools: 256, environment: 256, reward: 64 })
  readonly #stop = new AbortController()
  readonly #sessions = new Map<string, { session: HostSession; idle: IdleWatch }>()

  constructor(options: HostOptions) {
    const { environment, tasks, sessions = 64, idleSeconds = 900 } = options
    this.environment = environment
    this.tasks = tasks
    this.#options = { sessions, idleSeconds, reward: options.reward ?? environment.reward }
    this.#choice = new TaskChoice(environment, tasks)
  }

  /** Begins a session; throws `FullError` if there is no room. */
  begin(wanted: Wanted = {}): HostSession {
    const { sessions: most, idleSeconds } = this.#options
    if (this.#sessions.size >= most) throw new FullError(this.#sessions.size, most)
    const id = randomUUID()
    let current: Promise<HostedWorld> | undefined
    const idle = new IdleWatch(idleSeconds, () => void session[Symbol.asyncDispose]())
    const touch = (): void => {
      if (!this.#sessions.has(id)) throw new Error('this session was closed; open another one')
      idle.touch()
    }
    const close = async (): Promise<void> => {
      const closing = current
      current = undefined
      await (await closing?.catch(() => undefined))?.[Symbol.asyncDispose]()
    }
    const session: HostSession = {
      id,
      isAttached: false,
      world: async () => {
        touch()
        current ??= this.#open(wanted, idle)
        return await current
      },
      reset: async next => {
        touch()
        // Set at once: whoever asks for the world meanwhile waits for this one.
        current = close().then(() => this.#open(next, idle))
        return await current
      },
      [Symbol.asyncDispose]: async () => {
        idle.stop()
        this.#sessions.delete(id)
        await close()
      },
    }
    this.#sessions.set(id, { session, idle })
    return session
  }

  /** A session that was begun before. */
  find(id: string): HostSession | undefined {
    const known = this.#sessions.get(id)
    known?.idle.touch()
    return known?.session
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the server was stopped'))
    for (const { session } of [...this.#sessions.values()]) await session[Symbol.asyncDispose]()
  }

  async #open(wanted: Wanted, idle: IdleWatch): Promise<HostedWorld> {
    const task = this.#choice.choose(wanted)
    const { signal } = this.#stop
    const { environment } = this
    const { reward } = this.#options
    const seed = wanted.seed ?? 0
    const options = { environment, reward, lanes: this.#lanes, seed, signal }
    const played = await idle.during(() => PlayedWorld.open(task, options))
    return new HostedWorld(played, idle)
  }
}
