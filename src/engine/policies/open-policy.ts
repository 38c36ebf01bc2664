import { availableParallelism } from 'node:os'
import { isMainThread } from 'node:worker_threads'
import type { Lane } from '../../base/core/lane.ts'
import { didYouMean } from '../../base/core/names/nearest.ts'
import type { Policy } from '../../base/core/policy.ts'
import type { Absences } from '../../base/core/process/absences.ts'
import { type Clock, systemClock } from '../../base/core/process/clock.ts'
import { readAddress } from './policy-uri.ts'
import { type Opening, type PolicyScheme, readUri } from './schemes.ts'
import type { VllmOptions } from './servers/vllm.ts'
import { byLoad } from './transport/by-load.ts'
import { openServerThread } from './transport/thread/thread.ts'
import { makeVersions } from './versions.ts'
import { withAbsences, withLastWeights } from './with-absences.ts'
import { type BalanceOptions, withBalance } from './with-balance.ts'
import { withLimit } from './with-limit.ts'
import { withRecord } from './with-record.ts'
import { type RetryOptions, withRetries } from './with-retries.ts'

/** Where weights are fetched from that are not on this machine. */
export interface WeightsSource {
  /** Fetch nothing. @default false */
  readonly offline?: boolean
  /** The address of the hub. */
  readonly hub?: string
  /** What computes for a model inside. @default 'cpu' */
  readonly device?: 'cpu' | 'gpu' | 'auto'
  /** Hears what is fetched, from where, under which licence. */
  readonly tell?: (line: string) => void
}

/** How to open a policy by its URI. */
export interface PolicyOptions {
  /** Sent as a bearer token; never part of a message. */
  readonly key?: string
  /** The name under which a server serves the model, if it serves several. */
  readonly servedModel?: string
  /** Seconds one request may take. @default 600 */
  readonly deadlineSeconds?: number
  /** Connections to each server at one time. @default 4096 */
  readonly connections?: number
  /** Whether servers are talked to in a thread of their own. @default true if there are several cores, and outside threads that roll */
  readonly thread?: boolean
  /** Streams every sample, so that vLLM and llama.cpp keep what an aborted one had. @default false */
  readonly stream?: boolean
  /**
   * Whether a server's log-probabilities are `raw`, or `processed` by the temperature.
   * @default what the server is found to give
   */
  readonly logprobs?: NonNullable<VllmOptions['logprobs']>
  /** How a vLLM server is given tokens. @default whichever is open */
  readonly endpoint?: NonNullable<VllmOptions['endpoint']>
  /** What tells routers a request's session: another header than `X-Session-ID`, or `body:` and a field. */
  readonly session?: string
  /** The version of the weights, for servers that do not report it. @default 0 */
  readonly version?: () => number
  /** `false`: nothing is retried. @default the defaults of `withRetries` */
  readonly retries?: RetryOptions | false
  /** Where to wait for a server that is away. @default nowhere: it is retried like one that is broken */
  readonly absences?: Absences
  /** Hears of a server that is away while others are there, and that it is back. */
  readonly onMoved?: BalanceOptions['onMoved']
  /** Requests at one time. @default as many as are asked */
  readonly limit?: number | Lane
  /** A cassette to record into. */
  readonly record?: string
  /** Turns texts of a script into ids. */
  readonly encode?: (text: string) => Int32Array
  /** Where weights that run inside are fetched from, and whether. @default the hub of Hugging Face, silently */
  readonly weights?: WeightsSource
  /** Schemes besides the known ones, by their name without the colon. */
  readonly schemes?: Readonly<Record<string, PolicyScheme>>
}

/**
 * Opens a policy: `sglang:URL`, `vllm:URL`, `llama-cpp:URL`, `openai:URL`, `tinker:URL`,
 * `scripted:FILE`, `replay:FILE`. Several share the load. Servers are retried when they are busy or broken. A
 * server's address may end with parameters and the served model: `vllm:URL?logprobs=processed#NAME`.
 */
export async function openPolicy(
  uri: string | readonly string[],
  options: PolicyOptions = {},
): Promise<Policy> {
  const uris = typeof uri === 'string' ? [uri] : uri
  if (uris.length === 0) throw new RangeError('No policy: give at least one URI.')
  // A thread that rolls has its own core.
  const { thread = availableParallelism() > 1 && isMainThread } = options
  const serverThread = thread ? byLoad(openServerThread()) : undefined
  const opening: Opening = { ...options, versions: makeVersions(), serverThread }
  const opened: Policy[] = []
  try {
    for (const each of uris) opened.push(await openOne(each, opening))
    return await wrap(opened, options)
  } catch (cause) {
    await Promise.allSettled(opened.map(policy => policy[Symbol.asyncDispose]()))
    throw cause
  }
}

async function wrap(opened: readonly Policy[], options: PolicyOptions): Promise<Policy> {
  const { retries = {}, limit, record, absences, onMoved } = options
  const each = absences ? opened.map(withLastWeights) : opened
  const balanced = each.length === 1 ? each[0]! : withBalance(each, { ...(onMoved && { onMoved }) })
  // Weights inside are never busy or cut off.
  const isAsked = balanced.inside === undefined
  const awaited = absences && isAsked ? withAbsences(balanced, absences) : balanced
  const isRetried = retries !== false && isAsked
  const retried = isRetried
    ? withRetries(awaited, { clock: patientClock(absences), ...retries })
    : awaited
  const limited = limit === undefined ? retried : withLimit(retried, limit)
  return record === undefined ? limited : withRecord(limited, record)
}

/** A clock on which the time stands still while a server is away. */
function patientClock(absences: Absences | undefined): Clock {
  if (!absences) return systemClock
  const { now, sleep } = systemClock
  return { now: () => now() - 1000 * absences.seconds(), sleep }
}

function openOne(uri: string, options: Opening): Promise<Policy> | Policy {
  const { name, rest, scheme, known } = readUri(uri, options.schemes)
  if (!scheme) {
    const names = known.map(each => `${each}:`)
    const isUrl = name === 'http' || name === 'https'
    const hint = isUrl
      ? ` Say what answers there, as in sglang:${uri}`
      : didYouMean(`${name}:`, names)
    throw new Error(`No policy scheme "${name}:" in "${uri}". Known: ${names.join(', ')}.${hint}`)
  }
  if (rest === '' && scheme.needsRest) {
    throw new Error(`The policy "${uri}" names no server or file: write it behind "${name}:".`)
  }
  const { address, parameters } = readAddress(uri, { name, rest, scheme })
  if (parameters.servedModel !== undefined && options.servedModel !== undefined) {
    throw new Error(`The policy "${uri}" names its model, and so does the served model: give one.`)
  }
  return scheme.open(address, { ...options, ...parameters })
}
