import { availableParallelism } from 'node:os'
import { isMainThread } from 'node:worker_threads'
import type { Lane } from '../../base/core/lane.ts'
import { didYouMean } from '../../base/core/names/nearest.ts'
import type { Policy } from '../../base/core/policy.ts'
import { readAddress } from './policy-uri.ts'
import type { VllmOptions } from './servers/vllm.ts'
import { byLoad } from './transport/by-load.ts'
import { openServerThread, type ServerThread } from './transport/thread/thread.ts'
import { openVersions, type Versions } from './versions.ts'
import { withBalance } from './with-balance.ts'
import { withLimit } from './with-limit.ts'
import { withRecord } from './with-record.ts'
import { type RetryOptions, withRetries } from './with-retries.ts'

/** How to open a policy by its URI. */
export interface PolicyOptions {
  /** Sent as a bearer token; never part of a message. */
  readonly key?: string
  /** The name under which a server serves the model, where it serves several. */
  readonly servedModel?: string
  /** Seconds one request may take. @default 600 */
  readonly deadlineSeconds?: number
  /** Connections to each server at one time. @default 4096 */
  readonly connections?: number
  /** Whether servers are talked to in a thread of their own. @default true where there are several cores, and outside threads that roll */
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
  /** The version of the weights, for servers that do not report it. @default 0 */
  readonly version?: () => number
  /** `false`: nothing is retried. @default the defaults of `withRetries` */
  readonly retries?: RetryOptions | false
  /** Requests at one time. @default as many as are asked */
  readonly limit?: number | Lane
  /** A cassette to record into. */
  readonly record?: string
  /** Turns texts of a script into ids. */
  readonly encode?: (text: string) => Int32Array
  /** Schemes besides the known ones, by their name without the colon. */
  readonly schemes?: Readonly<Record<string, OpenScheme>>
}

/** Opens the policy of a scheme; `rest` is what follows the colon. */
export type OpenScheme = (rest: string, options: PolicyOptions) => Promise<Policy> | Policy

type Opening = PolicyOptions & {
  readonly versions: Versions
  /** Shared by all servers of the policy. */
  readonly serverThread: ServerThread | undefined
}

/**
 * Opens a policy: `sglang:URL`, `vllm:URL`, `llama-cpp:URL`, `openai:URL`, `scripted:FILE`,
 * `replay:FILE`. Several share the load. Servers are retried when they are busy or broken. A
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
  const opening: Opening = { ...options, versions: openVersions(), serverThread }
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
  const { retries = {}, limit, record } = options
  const balanced = opened.length === 1 ? opened[0]! : withBalance(opened)
  // Weights inside are never busy or cut off.
  const isRetried = retries !== false && balanced.inside === undefined
  const retried = isRetried ? withRetries(balanced, retries) : balanced
  const limited = limit === undefined ? retried : withLimit(retried, limit)
  return record === undefined ? limited : withRecord(limited, record)
}

/** The known schemes; each is loaded when a URI names it. */
const schemes: Readonly<Record<string, (rest: string, options: Opening) => Promise<Policy>>> = {
  async sglang(url, options) {
    return (await import('./servers/sglang.ts')).openSglang(url, serverOptions(options))
  },
  async vllm(url, options) {
    return (await import('./servers/vllm.ts')).openVllm(url, serverOptions(options))
  },
  async 'llama-cpp'(url, options) {
    return (await import('./servers/llama-cpp.ts')).openLlamaCpp(url, serverOptions(options))
  },
  async openai(url, options) {
    return (await import('./servers/openai-chat.ts')).openOpenAiChat(url, serverOptions(options))
  },
  async scripted(file, { encode }) {
    const { openScript } = await import('./script-file.ts')
    return await openScript(file, { keepsRequests: false, ...(encode ? { encode } : {}) })
  },
  async replay(file) {
    return await (await import('./replayed.ts')).openReplay(file)
  },
}

function serverOptions({ thread: _, serverThread, ...options }: Opening) {
  return { ...options, ...(serverThread && { thread: serverThread }) }
}

function openOne(uri: string, options: Opening): Promise<Policy> | Policy {
  const colon = uri.indexOf(':')
  const scheme = colon < 0 ? uri : uri.slice(0, colon)
  const rest = colon < 0 ? '' : uri.slice(colon + 1)
  const known = { ...schemes, ...options.schemes }
  const open = Object.hasOwn(known, scheme) ? known[scheme] : undefined
  if (!open) {
    const names = Object.keys(known).map(name => `${name}:`)
    const isUrl = scheme === 'http' || scheme === 'https'
    const hint = isUrl
      ? ` Say what answers there, as in sglang:${uri}`
      : didYouMean(`${scheme}:`, names)
    throw new Error(`No policy scheme "${scheme}:" in "${uri}". Known: ${names.join(', ')}.${hint}`)
  }
  if (rest === '' && Object.hasOwn(schemes, scheme)) {
    throw new Error(`The policy "${uri}" names no server or file: write it behind "${scheme}:".`)
  }
  const { address, parameters } = readAddress(scheme, rest, uri)
  if (parameters.servedModel !== undefined && options.servedModel !== undefined) {
    throw new Error(`The policy "${uri}" names its model, and so does the served model: give one.`)
  }
  return open(address, { ...options, ...parameters })
}
