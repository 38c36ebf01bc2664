import { hash, randomBytes, randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { Task } from '../../base/core/environment.ts'
import type { Group, Scored, Unscored } from '../../base/core/group.ts'
import type { GroupId } from '../../base/core/ids.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import { pause } from '../../base/core/process/timer.ts'
import type { Tree } from '../../base/core/tree.ts'
import { openCapture } from '../../engine/capture/capture.ts'
import type {
  Capture,
  CaptureEnding,
  ChatAnswer,
  ChatCall,
  ChatRequest,
} from '../../engine/capture/contract.ts'
import { ResponseMemory } from '../../engine/capture/dialects/openai/response-memory.ts'
import { RequestProblem } from '../../engine/capture/dialects/problem.ts'
import { isScored, scoreTree } from '../../engine/rollout/score.ts'
import { gather } from '../../engine/weigh/gather.ts'
import { groupOf } from '../../run/store/store.ts'
import type { AttemptsOptions } from './attempts-options.ts'
import { type Ended, endedAs, refuseOther, unasked } from './endings.ts'
import { Groups, type OpenGroup } from './groups.ts'
import { RetryKeys } from './retry-keys.ts'
import { keepTrace, type Trace } from './traces.ts'

/** What an attempt is opened with. */
export interface Opening {
  readonly task: Task
  /** @default one of its own */
  readonly id?: string
  /** @default minted here */
  readonly token?: string
  /** Whether its answers are kept for trainers that read them over HTTP. @default false */
  readonly keepsTraces?: boolean
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** How far an attempt is. */
export type AttemptState = 'open' | 'closing' | 'closed'

/** What an attempt has while it can be asked. */
export interface LiveAttempt {
  readonly capture: Capture
  readonly memory: ResponseMemory
  readonly retries: RetryKeys
}

/** One attempt of an agent, from its opening to its reward. */
export interface GatewayAttempt {
  readonly id: string
  /** Whether a client chose its id, so that it may come again; ids made here never do. */
  readonly isNamed: boolean
  /** Good for this attempt only, and only until it is closed. */
  readonly token: string
  readonly task: Task
  readonly group: OpenGroup
  readonly member: number
  /** What answers it; let go of when it is closed. */
  live: LiveAttempt | undefined
  traces: Trace[] | undefined
  readonly metadata: Readonly<Record<string, unknown>>
  /** Seconds since 1970. */
  readonly opened: number
  state: AttemptState
  requests: number
  running: number
  /** On the clock of the context. */
  lastUsed: number
  posted: number | undefined
  /** How it ended, once it has. */
  ended: Ended | undefined
  /** Its reward, once it was scored. */
  reward: number | undefined
  ending: Promise<Ended> | undefined
}

/** How many closed attempts are remembered, for requests about their end. */
const remembered = 10_000

/** Closed attempts whose traces are kept until they are taken. */
const rememberedTraces = 256

/** A token for one attempt; clients send it where their API key would be. */
export function mintToken(): string {
  return `esp-${randomBytes(24).toString('base64url')}`
}

const digestOf = (token: string): string => hash('sha256', token, 'base64')

/** The attempts of a gateway: opened, answered, rewarded, closed, gathered in groups and written. */
export class Attempts implements AsyncDisposable {
  readonly #options: AttemptsOptions
  readonly #attempts = new Map<string, GatewayAttempt>()
  readonly #tokens = new Map<string, GatewayAttempt>()
  readonly #traced = new Set<GatewayAttempt>()
  readonly #answering = new Set<Promise<unknown>>()
  readonly #reaper: NodeJS.Timeout
  readonly groups: Groups
  #open = 0
  #isClosed = false

  constructor(options: AttemptsOptions) {
    this.#options = options
    // Every open attempt listens to this signal, which is not a leak.
    setMaxListeners(0, options.signal)
    this.groups = new Groups(options.group, group => this.#complete(group), options.finished)
    const { idleSeconds = 600 } = options
    const every = Math.min(30, Math.max(1, idleSeconds / 4)) * 1000
    this.#reaper = setInterval(() => this.closeIdle(), every)
    this.#reaper.unref()
  }

  /** Takes over attempts that had ended, but whose group had not, when an earlier gateway stopped. */
  async adopt(known: Iterable<Tree>, taskOf: (tree: Tree) => Task): Promise<void> {
    const groups = new Map<GroupId, Tree[]>()
    for (const tree of known) {
      const id = groupOf(tree.id)
      groups.set(id, [...(groups.get(id) ?? []), tree])
    }
    for (const [id, trees] of groups) {
      const ended = trees.map(async tree => ({
        member: tree.member,
        scored: await this.#score({ task: taskOf(tree) }, tree, isPosted(tree)),
      }))
      await this.groups.adopt(id, taskOf(trees[0]!), await Promise.all(ended))
    }
  }

  /** Throws if nothing can be taken on now. */
  check(): void {
    if (this.#isClosed) throw new RequestProblem('unavailable', 'the gateway is shutting down')
    this.#options.disk?.check()
  }

  /** Opens an attempt, or throws if there are too many or its id is taken. */
  open(opening: Opening): GatewayAttempt {
    const { task, id = randomUUID(), token = mintToken(), keepsTraces = false } = opening
    const { most = 4096, context, seed, signal, listen, record } = this.#options
    this.check()
    if (this.#attempts.has(id) || record?.has(id)) {
      throw new RequestProblem('conflict', `there is an attempt called "${id}" already`)
    }
    if (this.byToken(token)) {
      throw new RequestProblem('conflict', 'there is an attempt with this key already')
    }
    if (this.#open >= most) {
      throw new RequestProblem('too-many', `${most} attempts are open, which is the most`)
    }
    const { group, member } = this.groups.join(task)
    const which = { task, group: group.id, member, seed, signal }
    const capturing = { context: this.#options.contextFor?.(which) ?? context, attempt: which }
    const attempt: GatewayAttempt = {
      id,
      isNamed: opening.id !== undefined,
      token,
      task,
      group,
      member,
      live: {
        capture: openCapture(capturing),
        memory: new ResponseMemory(),
        retries: new RetryKeys(),
      },
      traces: keepsTraces ? [] : undefined,
      metadata: opening.metadata ?? {},
      opened: Date.now() / 1000,
      state: 'open',
      requests: 0,
      running: 0,
      lastUsed: context.clock(),
      posted: undefined,
      ended: undefined,
      reward: undefined,
      ending: undefined,
    }
    this.#open++
    this.#attempts.set(id, attempt)
    this.#tokens.set(digestOf(token), attempt)
    listen?.({ kind: 'attempt-start', task: task.id, member })
    return attempt
  }

  /** How many are open. */
  get openCount(): number {
    return this.#open
  }

  get(id: string): GatewayAttempt | undefined {
    return this.#attempts.get(id)
  }

  /** The attempt that this token is good for. */
  byToken(token: string): GatewayAttempt | undefined {
    return this.#tokens.get(digestOf(token))
  }

  list(): readonly GatewayAttempt[] {
    return [...this.#attempts.values()]
  }

  /** Answers a request of an attempt. */
  async respond(
    attempt: GatewayAttempt,
    request: ChatRequest,
    call: ChatCall & { readonly model: string; readonly id: string },
  ): Promise<readonly ChatAnswer[]> {
    const { clock } = this.#options.context
    this.check()
    const { capture } = liveOf(attempt)
    attempt.requests++
    attempt.running++
    const started = clock()
    const answering = capture.respond(request, call)
    this.#answering.add(answering)
    try {
      const answers = await answering
      const milliseconds = (clock() - started) * 1000
      for (const answer of answers) {
        keepTrace(attempt.traces, { request, answer, call, milliseconds })
      }
      return answers
    } finally {
      this.#answering.delete(answering)
      attempt.running--
      attempt.lastUsed = clock()
    }
  }

  /** Sets the reward of an attempt; the last one before it is closed counts. */
  postReward(attempt: GatewayAttempt, reward: number): void {
    if (attempt.state !== 'open') {
      throw new RequestProblem('over', `attempt "${attempt.id}" is ${attempt.state}`)
    }
    attempt.posted = reward
  }

  /**
   * Closes an attempt: what runs is cut, then it is scored, and its group written if it was the last.
   * An attempt ends once: throws if it ended otherwise than this says, so that nothing is dropped in silence.
   */
  async close(attempt: GatewayAttempt, said: CaptureEnding = {}): Promise<void> {
    const ending = this.#end(attempt, said)
    // Its end is written when there is room; asked again then, it is acknowledged.
    refuseOther(attempt, said, await (this.#options.disk?.unlessFull(ending) ?? ending))
  }

  /** Closes an attempt if it is open, and forgets it, so that its name is free. */
  async remove(attempt: GatewayAttempt): Promise<void> {
    await this.close(attempt)
    this.#forget(attempt)
    await this.#options.record?.free(attempt.id)
  }

  /** Closes attempts that have not been heard of for too long. */
  closeIdle(): void {
    const { idleSeconds = 600, context, disk } = this.#options
    // Whoever is refused now is not silent.
    if (disk?.isFull) for (const each of this.#attempts.values()) each.lastUsed = context.clock()
    const since = context.clock() - idleSeconds
    for (const attempt of this.#attempts.values()) {
      const isIdle = attempt.state === 'open' && attempt.running === 0 && attempt.lastUsed < since
      // The error is not lost: callers that wait for the end, and the shutdown, get it.
      if (isIdle) this.#end(attempt).catch(() => undefined)
    }
  }

  /** Accepts nothing more, and waits up to this many seconds for the answers under way. */
  async drain(seconds: number): Promise<void> {
    this.#isClosed = true
    const running = Promise.allSettled(this.#answering)
    const late = new AbortController()
    await Promise.race([running, pause(seconds * 1000, late.signal)])
    late.abort()
  }

  /** Ends everything: attempts with a posted reward count as ended, others as cut by the shutdown. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#reaper)
    const cut: Outcome = { kind: 'aborted', by: 'shutdown' }
    await Promise.all(
      [...this.#attempts.values()].map(attempt =>
        this.#end(attempt, attempt.posted === undefined ? { outcome: cut } : {}),
      ),
    )
    await this.groups.closeAll()
  }

  #end(attempt: GatewayAttempt, ending: CaptureEnding = {}): Promise<Ended> {
    attempt.ending ??= this.#close(attempt, ending)
    return attempt.ending
  }

  async #close(attempt: GatewayAttempt, ending: CaptureEnding): Promise<Ended> {
    const { writer, listen, record } = this.#options
    attempt.state = 'closing'
    const reward = ending.reward ?? attempt.posted
    const { capture } = liveOf(attempt)
    const [tree] = await capture.end({
      ...ending,
      ...(reward !== undefined && { reward }),
      unasked: unasked(reward, capture.failure),
    })
    attempt.live = undefined
    const ended = endedAs(tree)
    attempt.ended = ended
    await record?.keep(attempt, tree.id)
    await writer?.writeTree(tree)
    listen?.({ kind: 'tree-end', tree })
    const members = await this.#score(attempt, tree, reward !== undefined)
    const first = members[0]
    attempt.reward = first && isScored(first) ? first.reward.total : undefined
    attempt.state = 'closed'
    this.#open--
    await this.groups.leave(attempt.group, members)
    this.#forgetOldest()
    if (attempt.traces) this.#dropTraces(attempt)
    return ended
  }

  #forget(attempt: GatewayAttempt): void {
    this.#attempts.delete(attempt.id)
    this.#tokens.delete(digestOf(attempt.token))
    this.#traced.delete(attempt)
  }

  #dropTraces(newest: GatewayAttempt): void {
    this.#traced.add(newest)
    for (const attempt of this.#traced) {
      if (this.#traced.size <= rememberedTraces) return
      attempt.traces = undefined
      this.#traced.delete(attempt)
    }
  }

  /** A posted reward stands in the tree and is taken as it is; else the reward functions are asked. */
  async #score(
    { task }: Pick<GatewayAttempt, 'task'>,
    tree: Tree,
    isPosted: boolean,
  ): Promise<readonly (Scored | Unscored)[]> {
    const { context, signal, listen } = this.#options
    const { clock } = context
    const reward = isPosted ? {} : this.#options.reward
    const started = clock()
    const scored = await scoreTree(tree, task, { ...context, reward, signal })
    listen?.({ kind: 'score-end', tree: tree.id, seconds: clock() - started })
    return scored
  }

  async #complete({ id, task, order, ended }: OpenGroup): Promise<Group> {
    const { writer, listen, onGroup } = this.#options
    const group = gather({ id, task }, ended, this.#options)
    await writer?.writeGroup(group, task, order)
    listen?.({ kind: 'group-end', group })
    onGroup?.(group)
    return group
  }

  #forgetOldest(): void {
    let over = this.#attempts.size - this.#open - remembered
    for (const attempt of this.#attempts.values()) {
      if (over <= 0) return
      if (attempt.state !== 'closed') continue
      this.#forget(attempt)
      over--
    }
  }
}

/** Whether an agent posted the reward of a finished attempt. */
function isPosted({ trajectories }: Tree): boolean {
  return trajectories[0]?.turns.at(-1)?.reward !== undefined
}

/** What answers an attempt, or a refusal if it is over. */
export function liveOf({ live, id, state }: GatewayAttempt): LiveAttempt {
  if (live) return live
  throw new RequestProblem('over', `attempt "${id}" is ${state}`)
}
