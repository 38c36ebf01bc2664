import { type ByteScanner, closing, comma, opening } from './byte-scanner.ts'
import { isId, isLogprob } from './reading.ts'

/** Tokens that were read from an answer's text. */
export interface Tokens {
  readonly ids: Int32Array
  readonly logprobs: Float32Array
}

/**
 * Reads a list `[[log-probability, id, null], …]` up to the bracket that closes it. Undefined if it does not have
 * exactly this form: the answer is then read as ordinary JSON, with the same result.
 */
export function readPairs(scanner: ByteScanner): Tokens | undefined {
  const count = keepPairs(scanner)
  return count === undefined ? undefined : copyPairs(count)
}

/** Buffers for pairs until their number is known: ids, and their log-probabilities. */
let keptIds = new Int32Array(1024)
let keptLogprobs = new Float32Array(1024)

function keepPair(index: number, id: number, logprob: number): void {
  if (index === keptIds.length) {
    const [shortIds, shortLogprobs] = [keptIds, keptLogprobs]
    keptIds = new Int32Array(index * 2)
    keptLogprobs = new Float32Array(index * 2)
    keptIds.set(shortIds)
    keptLogprobs.set(shortLogprobs)
  }
  keptIds[index] = id
  keptLogprobs[index] = logprob
}

/** The pairs that were kept, in one piece of memory of their own. */
function copyPairs(count: number): Tokens {
  const memory = new ArrayBuffer(count * 8)
  const ids = new Int32Array(memory, 0, count)
  const logprobs = new Float32Array(memory, count * 4)
  ids.set(keptIds.subarray(0, count))
  logprobs.set(keptLogprobs.subarray(0, count))
  return { ids, logprobs }
}

/** What follows the id of a pair. */
const pairEnd = Buffer.from(',null]')

/** Keeps pairs up to the bracket that closes their list; gives their count. */
function keepPairs(scanner: ByteScanner): number | undefined {
  if (scanner.byte === closing) return 0
  for (let count = 0; scanner.next() === opening; ) {
    const logprob = scanner.readNumber()
    if (!isLogprob(logprob) || scanner.next() !== comma) return undefined
    const id = scanner.readId()
    if (!isId(id) || !scanner.passes(pairEnd)) return undefined
    keepPair(count++, id, logprob)
    if (scanner.byte === closing) return count
    if (scanner.next() !== comma) return undefined
  }
  return undefined
}
