import { totalmem } from 'node:os'
import { addressable, type MemoryWanted, type ModelMemory, memoryOf } from '../engine/memory.ts'
import type { ModelShape } from '../shape.ts'

/** Bytes that are left for activations of learning and for everything else in this process. */
const spare = 512 * 2 ** 20

/** The shortest context that is tried. */
const shortest = 512

/** What a model that fits is opened with. */
export interface Fitting {
  readonly shape: ModelShape
  readonly memory: ModelMemory
}

/**
 * The longest context, up to that of the shape, whose memory this machine has; `isFixed` takes that of
 * the shape or none. Refuses what does not fit, and says what would.
 */
export function fitContext(
  wanted: MemoryWanted,
  {
    source,
    isFixed,
    available = availableMemory(),
  }: { readonly source: string; readonly isFixed: boolean; readonly available?: number },
): Fitting {
  const limit = Math.min(available, addressable) - spare
  const { context } = wanted.shape
  const tried: Fitting[] = []
  for (let tokens = context; ; tokens = Math.max(shortest, tokens >> 1)) {
    const shape = { ...wanted.shape, context: tokens }
    const memory = memoryOf({ ...wanted, shape })
    tried.push({ shape, memory })
    if (memory.total <= limit || tokens <= shortest) break
  }
  const last = tried.at(-1)!
  const fits = last.memory.total <= limit
  if (fits && (!isFixed || tried.length === 1)) return last
  const { weights, cache, work, total } = tried[0]!.memory
  const parts = `weights ${inWords(weights)}, keys and values ${inWords(cache)}, work of ${wanted.threads} threads ${inWords(work)}`
  const have = `${inWords(available)} are free, a model can have 4 GiB, and ${inWords(spare)} are left for the rest`
  const instead = fits
    ? `A context of ${last.shape.context} tokens would fit.`
    : wanted.threads > 1
      ? 'Fewer threads want less; otherwise take a smaller model.'
      : 'Take a smaller model.'
  throw new Error(
    `The model in ${source} wants ${inWords(total)} of memory (${parts}); ${have}. ${instead}`,
  )
}

/** Memory that this process may still take. */
function availableMemory(): number {
  // Node 20.13 and newer know what the system and its container leave.
  const { availableMemory: ask } = process as { availableMemory?: () => number }
  return ask ? ask.call(process) : totalmem()
}

/** Bytes as people read them. */
export function inWords(bytes: number): string {
  return bytes < 2 ** 30
    ? `${Math.ceil(bytes / 2 ** 20)} MiB`
    : `${(bytes / 2 ** 30).toFixed(1)} GiB`
}
