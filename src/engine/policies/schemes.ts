import type { Policy } from '../../base/core/policy.ts'
import type { PolicyOptions } from './open-policy.ts'
import type { VllmOptions } from './servers/vllm.ts'
import { vllmPaths } from './servers/vllm-request.ts'
import { tinkerServers } from './tinker/server-kind.ts'
import type { ServerThread } from './transport/thread/thread.ts'
import type { Versions } from './versions.ts'

/** A kind of policy, named by the beginning of its URI. What anyone decides by a URI is asked of its scheme. */
export interface PolicyScheme {
  /** What its URIs lead to: servers whose every request stands alone, servers that keep a session, files, or weights inside. */
  readonly leadsTo: 'server' | 'session' | 'file' | 'weights inside'
  /** Opens the policy; `rest` is what follows the colon, without parameters. */
  open(rest: string, options: Opening): Promise<Policy> | Policy
  /** Whether something has to follow the colon. @default false */
  readonly needsRest?: boolean
  /** The parameters that an address may end with, and their values; none if they are free. @default none: `?` and `#` are ordinary characters */
  readonly parameters?: Readonly<Record<string, readonly string[]>>
  /** Whether it is sent messages and mostly gives no token ids. @default false */
  readonly onlyChats?: boolean
  /** In which order it cuts, if its numbers may be of what cuts leave. @default unknown */
  readonly cuts?: readonly Cut[]
  /** Whether what it answers is written as text, which has to be encoded. @default false */
  readonly writesText?: boolean
}

/** What takes tokens out of a distribution before one is drawn. */
export type Cut = 'top-k' | 'top-p' | 'min-p'

/** What a policy is opened with. */
export type Opening = PolicyOptions & {
  readonly versions: Versions
  /** Shared by all servers of the policy. */
  readonly serverThread: ServerThread | undefined
  /** Which program speaks Tinker's API. */
  readonly server?: string
}

const server = { leadsTo: 'server', needsRest: true } as const
const logprobs: readonly NonNullable<VllmOptions['logprobs']>[] = ['raw', 'processed']
const update = ['drain', 'abort']

/** The schemes of this floor; each is loaded when a URI names it. */
const ownSchemes: Readonly<Record<string, PolicyScheme>> = {
  sglang: {
    ...server,
    parameters: { logprobs, update, experts: [], session: [] },
    async open(url, options) {
      return (await import('./servers/sglang.ts')).openSglang(url, serverOptions(options))
    },
  },
  vllm: {
    ...server,
    parameters: { logprobs, endpoint: Object.keys(vllmPaths), experts: [], update, session: [] },
    cuts: ['min-p', 'top-k', 'top-p'],
    async open(url, options) {
      return (await import('./servers/vllm.ts')).openVllm(url, serverOptions(options))
    },
  },
  'llama-cpp': {
    ...server,
    parameters: { session: [] },
    cuts: ['top-k', 'top-p', 'min-p'],
    async open(url, options) {
      return (await import('./servers/llama-cpp.ts')).openLlamaCpp(url, serverOptions(options))
    },
  },
  openai: {
    ...server,
    parameters: { session: [] },
    onlyChats: true,
    async open(url, options) {
      return (await import('./servers/openai-chat.ts')).openOpenAiChat(url, serverOptions(options))
    },
  },
  scripted: {
    leadsTo: 'file',
    needsRest: true,
    writesText: true,
    async open(file, { encode }) {
      const { openScript } = await import('./script-file.ts')
      return await openScript(file, { keepsRequests: false, ...(encode ? { encode } : {}) })
    },
  },
  replay: {
    leadsTo: 'file',
    needsRest: true,
    async open(file) {
      return await (await import('./replayed.ts')).openReplay(file)
    },
  },
  tinker: {
    leadsTo: 'session',
    parameters: { server: Object.keys(tinkerServers) },
    async open(url, options) {
      return await (await import('./tinker/session.ts')).openTinkerPolicy(url, options)
    },
  },
}

function serverOptions({ thread: _, serverThread, ...options }: Opening) {
  return { ...options, ...(serverThread && { thread: serverThread }) }
}

/** A URI taken apart. */
export interface ReadUri {
  readonly name: string
  readonly rest: string
  /** Undefined if there is no scheme of that name. */
  readonly scheme: PolicyScheme | undefined
  /** The names of all schemes. */
  readonly known: readonly string[]
}

/** Takes a policy's URI apart; `more` are schemes of higher floors. */
export function readUri(uri: string, more: Readonly<Record<string, PolicyScheme>> = {}): ReadUri {
  const colon = uri.indexOf(':')
  const name = colon < 0 ? uri : uri.slice(0, colon)
  const all = { ...ownSchemes, ...more }
  return {
    name,
    rest: colon < 0 ? '' : uri.slice(colon + 1),
    scheme: Object.hasOwn(all, name) ? all[name] : undefined,
    known: Object.keys(all),
  }
}

/** In which order the policy of a run's settings cuts; undefined if that is not known, or differs among its servers. */
export function cutsOf(policy: unknown): readonly Cut[] | undefined {
  const uris = Array.isArray(policy) ? policy : [policy]
  const orders = uris.map(uri => (typeof uri === 'string' ? readUri(uri).scheme?.cuts : undefined))
  return orders.every(order => order === orders[0]) ? orders[0] : undefined
}
