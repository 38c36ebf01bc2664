import { setMaxListeners } from 'node:events'
import { type Call, onAbort } from '../../../base/core/call.ts'
import type { Group, Scored, Unscored } from '../../../base/core/group.ts'
import { treeId } from '../../../base/core/ids.ts'
import { makeLanes } from '../../../base/core/lane.ts'
import type { Policy } from '../../../base/core/policy.ts'
import { absences } from '../../../base/core/process/absences.ts'
import { type GatherHeader, gather } from '../../../engine/weigh/gather.ts'
import { openPolicy } from '../../settings/open-policy.ts'
import { defaults } from '../../settings/settings.ts'
import { type KeepingTurns, type KeptTurns, keepTurns } from '../../store/segments/kept-turns.ts'
import { openStorage } from '../../store/segments/storage.ts'
import type { RunEvent, ServerBack, Warned } from '../../watch/events.ts'
import { RunStoppedError } from '../../watch/stopped.ts'
import { watchSamples } from '../../watch/telemetry/watch-samples.ts'
import { type Budget, openBudget } from '../budget.ts'
import type { Returned, Work } from '../elsewhere.ts'
import { rollAttempt, scoreAttempt } from '../member.ts'
import { openRollParts } from '../open-parts.ts'
import type { OnUpdate } from '../pause.ts'
import { gatherOptions, laneLimits, memberOptions, type RollParts } from '../roll-groups.ts'
import type { RollOptions } from '../roll-options.ts'
import { printOpened } from './opened-print.ts'
import { makeServedWeights, type ServedWeights } from './served-weights.ts'

/** The result of an attempt, wherever it was made. */
export type Served = Exclude<Returned, { readonly kind: 'poisoned' }>

/** A run that a worker has opened: it makes attempts as the coordinator itself would. */
export interface ServedRun extends AsyncDisposable, Pick<ServedWeights, 'pause' | 'resume'> {
  /**
   * Makes one attempt and scores it. `making` names this try: the same attempt may come again, and must
   * then be made as if for the first time.
   */
  make(work: Work, call: ServedCall): Promise<Served>
  /** What it was opened from, as everybody who serves the run must have it. */
  readonly print: Readonly<Record<string, string>>
  /** Weighs the members of a group as the run is asked to. */
  weigh(header: GatherHeader, members: readonly (Scored | Unscored)[]): Group
}

/** How an attempt is asked for. */
export interface ServedCall extends Call {
  readonly making: string
  /** Pays for it together with others. @default one of its own, of its allowance */
  readonly budget?: Budget
}

/** Attempts at one time in one place, and the limit of each lane. */
export type Width = NonNullable<RollParts['concurrency']>

/** How a run is served. */
export interface ServingOptions {
  readonly concurrency: Width
  readonly onUpdate: OnUpdate
  readonly tell: (line: string) => void
  /** Whether an event is sent for every sample. @default true */
  readonly tellsSamples?: boolean
  /** Where the images of the run are kept. @default in memory */
  readonly imageFolder?: string | undefined
  /** Where turns of unfinished attempts are kept. @default nowhere */
  readonly turns?: TurnsKept | undefined
  /** Hears at once of servers that are away and back. @default with the next attempt */
  readonly onSignal?: (event: Warned | ServerBack) => void
  /** Called when a server was away for too long, or contradicts what rows say. @default it is waited for without end */
  readonly onHalted?: (error: RunStoppedError) => void
}

/** The address of the storage that keeps turns, and what hears where they lie. */
export interface TurnsKept extends Pick<KeepingTurns, 'name' | 'onKept'> {
  readonly address: string
}

/** Opens a run by the names of its parts. */
export async function openServedRun(
  environment: string,
  named: RollOptions,
  serving: ServingOptions,
): Promise<ServedRun> {
  const { concurrency, onUpdate, tell, tellsSamples = true, onHalted } = serving
  const closing = new AbortController()
  setMaxListeners(0, closing.signal)
  const options = {
    ...named,
    tell,
    imageFolder: serving.imageFolder,
    signal: closing.signal,
    threads: 1,
    ...(!onHalted && { outage: Number.POSITIVE_INFINITY }),
  }
  const opened = await openRollParts(environment, undefined, options)
  const parts: RollParts = { ...opened.parts, concurrency }
  const weights = makeServedWeights(parts.policy, onUpdate)
  const member = memberOptions(parts, makeLanes(laneLimits(parts)))
  const retries: RunEvent[] = []
  const stop = hearServers(parts, serving, retries)
  const endpoints = openEndpoints(named, parts.policy)
  const weighing = gatherOptions(parts)
  const turns = await openTurns(parts.policy, serving)
  return {
    print: printOpened(parts),
    async make(work, call) {
      const events = retries.splice(0)
      const listen = (event: RunEvent): void => void events.push(event)
      const { signal, making } = call
      if (absences.some) await absences.whenThere(call)
      using own = work.allowance && !call.budget ? openBudget(work.allowance) : undefined
      const budget = call.budget ?? own
      const { sampling, limits, examples, group, task, seed } = work
      const policy = await endpoints.find(work.endpoint)
      const before = work.begun?.get(treeId(group, work.member))
      const watching = tellsSamples ? [watchSamples(listen)] : []
      const made = {
        ...member,
        context: {
          ...{ ...member.context, sampling, limits, policy },
          ...(examples && { examples: { now: examples } }),
        },
        listen,
        ...(turns && { unfinished: turns.after(before) }),
        instruments: [...weights.instruments, ...(budget ? [budget.instrument] : []), ...watching],
      }
      const both = budget ? AbortSignal.any([signal, budget.signal]) : signal
      const attempt = { task, group, member: work.member, seed, signal: both, making }
      const trees = await rollAttempt(made, attempt).catch((error: unknown) => {
        if (!budget?.signal.aborted) throw error
      })
      signal.throwIfAborted()
      if (!trees || budget?.signal.aborted) return { kind: 'spent', of: spentOf(budget) }
      const members = await scoreAttempt(trees, task, { ...made, signal })
      signal.throwIfAborted()
      return { kind: 'made', trees, members, events }
    },
    weigh: (header, members) => gather(header, members, weighing),
    pause: weights.pause,
    resume: weights.resume,
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('the worker left the run'))
      stop?.()
      await turns?.[Symbol.asyncDispose]()
      await endpoints[Symbol.asyncDispose]()
      await opened[Symbol.asyncDispose]()
    },
  }
}

/** Hears of servers that are away and back, and of their retries; gives what ends that. */
function hearServers(
  { signals, signal }: RollParts,
  { onSignal, onHalted }: ServingOptions,
  retries: RunEvent[],
) {
  const halted = signal!
  onAbort(halted, () => {
    if (halted.reason instanceof RunStoppedError) onHalted?.(halted.reason)
  })
  return signals?.on(event => {
    const isOfServer = event.kind === 'warning' || event.kind === 'server-back'
    if (onSignal && isOfServer) onSignal(event)
    else retries.push(event)
  })
}

/** Only turns of servers are kept: other policies give the same answer again at once. */
async function openTurns(
  policy: Policy,
  { turns, tell }: ServingOptions,
): Promise<KeptTurns | undefined> {
  if (!turns || !policy.describe) return undefined
  return keepTurns({ ...turns, storage: await openStorage(turns.address), tell })
}

function spentOf(budget: Budget | undefined) {
  const reason: unknown = budget?.signal.reason
  const kind = reason instanceof RunStoppedError ? reason.kind : 'tokens'
  return kind === 'money' ? 'money' : 'tokens'
}

/** Endpoints that submissions name, each opened once. */
function openEndpoints(named: RollOptions, own: Policy) {
  const { keyVariable, deadline, retries } = { ...defaults, ...named }
  const opened = new Map<string, Promise<Policy>>()
  const key = process.env[keyVariable]
  const open = (uri: string): Promise<Policy> =>
    openPolicy(uri, {
      ...(key !== undefined && { key }),
      deadlineSeconds: deadline,
      absences,
      retries: retries === 0 ? false : { attempts: retries + 1 },
    })
  return {
    async find(uri: string | undefined): Promise<Policy> {
      if (uri === undefined) return own
      const known = opened.get(uri) ?? open(uri)
      opened.set(uri, known)
      return await known.catch((error: unknown) => {
        opened.delete(uri)
        throw error
      })
    },
    async [Symbol.asyncDispose]() {
      for (const each of await Promise.allSettled(opened.values())) {
        if (each.status === 'fulfilled') await each.value[Symbol.asyncDispose]()
      }
    },
  }
}
