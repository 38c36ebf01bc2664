import { setMaxListeners } from 'node:events'
import type { Call } from '../core/call.ts'
import { openLanes } from '../core/lane.ts'
import type { Policy } from '../core/policy.ts'
import { openBudget } from '../run/budget.ts'
import type { Work } from '../run/elsewhere.ts'
import { rollAttempt, scoreAttempt } from '../run/member.ts'
import { openRollParts } from '../run/open-parts.ts'
import { laneLimits, memberOptions, type RollParts } from '../run/roll-groups.ts'
import { rollOptionsOf } from '../run/roll-options.ts'
import { needed } from '../settings/open-named.ts'
import { openPolicy } from '../settings/open-policy.ts'
import type { Settings } from '../settings/settings.ts'
import type { RunEvent } from '../watch/events.ts'
import { RunStoppedError } from '../watch/stopped.ts'
import { watchSamples } from '../watch/telemetry/watch-samples.ts'
import { packMade, packSpent } from './parcel.ts'
import { openServedWeights, type ServedWeights } from './served-weights.ts'

/** A run that a worker has opened: it makes attempts as the coordinator itself would. */
export interface ServedRun extends AsyncDisposable, Pick<ServedWeights, 'pause' | 'resume'> {
  /**
   * Makes one attempt and scores it; gives what is sent back. `making` is the name of this time: the same
   * attempt may come again, and must then be answered as if it had never been here.
   */
  make(
    work: Work,
    call: Call & { readonly making: string },
  ): Promise<{ readonly bytes: Buffer; readonly sampled: number }>
}

/** Opens a run by its settings. */
export async function openServedRun(
  values: Settings,
  { concurrency, tell }: { readonly concurrency: number; readonly tell: (line: string) => void },
): Promise<ServedRun> {
  const closing = new AbortController()
  setMaxListeners(0, closing.signal)
  const options = { ...rollOptionsOf(values), tell, signal: closing.signal }
  const opened = await openRollParts(needed(values, 'environment'), undefined, options)
  const parts: RollParts = { ...opened.parts, concurrency: widthOf(values, concurrency) }
  const weights = openServedWeights(parts.policy, values.onUpdate)
  const member = memberOptions(parts, openLanes(laneLimits(parts)))
  const retries: RunEvent[] = []
  const stop = parts.signals?.on(event => retries.push(event))
  const endpoints = openEndpoints(values, parts.policy)
  return {
    async make(work, { signal, making }) {
      const events = retries.splice(0)
      const listen = (event: RunEvent): void => void events.push(event)
      using budget = openBudget(work.allowance ?? {})
      const { sampling, limits, group, task, seed } = work
      const policy = await endpoints.find(work.endpoint)
      const made = {
        ...member,
        context: { ...member.context, sampling, limits, policy },
        listen,
        instruments: [...weights.instruments, budget.instrument, watchSamples(listen)],
      }
      const both = AbortSignal.any([signal, budget.signal])
      const attempt = { task, group, member: work.member, seed, signal: both, making }
      const trees = await rollAttempt(made, attempt).catch((error: unknown) => {
        if (!budget.signal.aborted) throw error
      })
      signal.throwIfAborted()
      const { reason } = budget.signal
      if (!trees || budget.signal.aborted) return { bytes: packSpent(spentOf(reason)), sampled: 0 }
      const members = await scoreAttempt(trees, task, { ...made, signal })
      signal.throwIfAborted()
      const sampled = trees
        .flatMap(tree => tree.trajectories)
        .reduce((sum, { usage }) => sum + usage.sampled, 0)
      return { bytes: packMade({ trees, members, events }), sampled }
    },
    pause: weights.pause,
    resume: weights.resume,
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('the worker left the run'))
      stop?.()
      await endpoints[Symbol.asyncDispose]()
      await opened[Symbol.asyncDispose]()
    },
  }
}

/** A worker's own width, and the lanes that the run narrows. */
function widthOf(
  { concurrency }: Settings,
  rollouts: number,
): NonNullable<RollParts['concurrency']> {
  if (typeof concurrency === 'number') return rollouts
  const { rollouts: _, ...lanes } = concurrency
  const given = Object.entries(lanes).filter(([, value]) => value !== undefined)
  return { policy: rollouts, ...Object.fromEntries(given), rollouts }
}

function spentOf(reason: unknown) {
  const kind = reason instanceof RunStoppedError ? reason.kind : 'tokens'
  return kind === 'money' ? 'money' : 'tokens'
}

/** Endpoints that submissions name, each opened once. */
function openEndpoints(values: Settings, own: Policy) {
  const opened = new Map<string, Promise<Policy>>()
  const key = process.env[values.keyVariable]
  const open = (uri: string): Promise<Policy> =>
    openPolicy(uri, {
      ...(key !== undefined && { key }),
      deadlineSeconds: values.deadline,
      retries: values.retries === 0 ? false : { attempts: values.retries + 1 },
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
