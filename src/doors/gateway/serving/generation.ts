import { randomUUID } from 'node:crypto'
import type { Tokenizer } from '@espalier/text/tokenizers'
import type { Sampling } from '../../../base/core/policy.ts'
import { seedOf } from '../../../base/math/random.ts'
import { type Drawn, draw, tokenizerOf } from '../../../learn/model/draw.ts'
import type { EmbeddedModel } from '../../../learn/model/model.ts'
import type { TokenNews } from '../../../learn/model/protocol.ts'

/** What a server serves, and what it counts. */
export interface Served {
  readonly model: EmbeddedModel
  readonly tokenizer: Tokenizer
  /** The folder it came from. */
  readonly folder: string
  readonly name: string
  /** Folders that new weights may be taken from. */
  readonly weightFolders: readonly string[]
  /** Ids that end a turn. */
  readonly stopIds: readonly number[]
  /** The name of the weights: their version unless an update named them otherwise. */
  weights(): string
  renameWeights(name: string | undefined): void
  /** A seed for a request that brings none. */
  nextSeed(): number
  /** Samples under way, by request id. */
  readonly running: Map<string, AbortController>
}

/** What a server is opened with. */
export interface ServedOptions {
  readonly folder: string
  readonly name?: string
  readonly weightFolders: readonly string[]
  readonly stopIds: readonly number[]
  /** Seeds requests that bring none. @default 0 */
  readonly seed?: number
}

/** Makes a model something to be served. */
export function toServed(model: EmbeddedModel, options: ServedOptions): Served {
  const { folder, stopIds, seed = 0 } = options
  let named: { readonly version: number; readonly name: string } | undefined
  let count = 0
  return {
    model,
    tokenizer: tokenizerOf(model),
    folder,
    name: options.name ?? folder,
    weightFolders: options.weightFolders,
    stopIds,
    weights: () => {
      const version = model.version()
      return named?.version === version ? named.name : String(version)
    },
    renameWeights(name) {
      named = name === undefined ? undefined : { version: model.version(), name }
    },
    nextSeed: () => seedOf(seed, 'request', count++).low >>> 1,
    running: new Map(),
  }
}

/** One sample that a client asked for, in whichever dialect. */
export interface Generation {
  readonly rid?: string
  readonly prompt: Int32Array
  readonly maxTokens: number
  readonly sampling: Sampling
  readonly stopIds: readonly number[]
  readonly stopStrings: readonly string[]
  readonly seed?: number
  readonly topLogprobs: number
  readonly onToken?: (token: TokenNews) => void
}

/** A sample as a server answers it. */
export interface Generated extends Drawn {
  readonly rid: string
  readonly seconds: number
}

/** Samples for one request; it can be aborted by its id, and by its client going away. */
export async function generate(
  served: Served,
  generation: Generation,
  gone: AbortSignal,
): Promise<Generated> {
  const { rid = randomUUID(), seed = served.nextSeed(), ...rest } = generation
  const own = new AbortController()
  const key = served.running.has(rid) ? `${rid} ${randomUUID()}` : rid
  served.running.set(key, own)
  const started = performance.now()
  try {
    const signal = AbortSignal.any([own.signal, gone])
    const drawn = await draw(served.model, { ...rest, seed }, { signal }).catch(cause => {
      if (!signal.aborted) throw cause
      return nothing(served.model.version())
    })
    return { ...drawn, rid, seconds: (performance.now() - started) / 1000 }
  } finally {
    served.running.delete(key)
  }
}

/** The empty sample, for requests aborted before their first token. */
function nothing(version: number): Drawn {
  return {
    ids: new Int32Array(0),
    logprobs: new Float32Array(0),
    entropies: new Float32Array(0),
    finish: { kind: 'abort' },
    version,
    cachedTokens: 0,
  }
}

/** Aborts what was asked for under this id; SGLang matches by prefix. */
export function abortRunning({ running }: Served, rid: string): void {
  for (const [id, controller] of running) {
    if (id.startsWith(rid)) controller.abort()
  }
}

/** The text of sampled ids, without the token that ended them unless it is wanted. */
export function textOfIds(
  { tokenizer, stopIds }: Served,
  ids: Int32Array,
  options: { readonly keepsStop: boolean; readonly skipSpecial: boolean },
): string {
  const ends = !options.keepsStop && stopIds.includes(ids.at(-1) ?? -1)
  return tokenizer.decode(ends ? ids.subarray(0, -1) : ids, { skipSpecial: options.skipSpecial })
}
