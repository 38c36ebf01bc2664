import type { Prompt, SampleRequest } from '../../../base/core/policy.ts'
import { idWidth, widestId, writeIds } from './id-digits.ts'

/** The text before and after the ids in a body. */
export interface BodyFrame {
  /** In ASCII, at most 32 characters. */
  readonly head: string
  readonly tail: string
  /** What stands behind the tail, if it is the same in many bodies. */
  readonly rest?: Buffer
}

/** A body in memory that the path's next body will reuse. */
export interface Body {
  readonly bytes: Buffer
  /** Hands the memory back to its path: the server has answered, so it has read all of it. */
  keep(): void
}

/** Writes ids into JSON bodies. */
export interface PromptWriter {
  /**
   * `head`, the ids joined by commas, `tail`. What the path's last kept body shares is reused. Ids are
   * copied to know them again, unless they last: then they are never overwritten.
   */
  write(path: string, ids: Int32Array, frame: BodyFrame, lasts?: boolean): Body
}

/** Whether a prompt's ids are never overwritten: those of a path that knows their digest only grow. */
export function lastsAs({ digest }: Prompt): boolean {
  return digest !== undefined
}

/** The name of a request's path; paths of one tree differ by their branch. */
export function pathOf({ session, key }: SampleRequest): string {
  return key.branch === '' ? session : `${session}/${key.branch}`
}

/**
 * A prompt as ids and as text; the text has room to grow and for a head. Its memory can be shared with
 * the thread that sends it.
 */
interface Written {
  ids: Int32Array
  /** How many of the ids the text has. */
  count: number
  text: Buffer
  length: number
}

const longestHead = 32
/** Most buffers of forgotten prompts that are kept for new ones. */
const mostSpare = 256
/** A unit of UTF-16 takes at most three bytes of UTF-8. */
const widestUnit = 3

/** Bytes that are always kept. */
const leastKept = 8 * 2 ** 20

/**
 * Opens a writer that keeps the last prompts of paths: twice as much as was under way at one time,
 * at most `budget` bytes; the path that was not used for longest is forgotten first. Keeping more
 * would only make the memory that new prompts are written into cold. A body is never copied: while
 * it is under way its path has none, and a second request of the path at that time is written from
 * scratch. @default 64 MiB
 */
export function makePromptWriter(budget = 64 * 2 ** 20): PromptWriter {
  const paths = new Map<string, Written>()
  const spare: Buffer[] = []
  let size = 0
  let underWay = 0
  let mostUnderWay = 0

  function take(path: string): Written | undefined {
    const written = paths.get(path)
    if (!written) return undefined
    paths.delete(path)
    size -= sizeOf(written)
    return written
  }

  function keep(path: string, written: Written): void {
    underWay -= sizeOf(written)
    if (sizeOf(written) > budget) return
    take(path)
    paths.set(path, written)
    size += sizeOf(written)
    const most = Math.min(budget, Math.max(leastKept, 2 * mostUnderWay))
    for (const [oldest] of paths) {
      if (size <= most) return
      const forgotten = take(oldest)
      if (forgotten && spare.length < mostSpare) spare.push(forgotten.text)
    }
  }

  return {
    write(path, ids, frame, lasts = false) {
      const written = take(path) ?? emptied(spare.pop())
      rewrite(written, ids, frame.tail.length * widestUnit + (frame.rest?.length ?? 0))
      written.ids = lasts ? ids : ids.slice()
      underWay += sizeOf(written)
      mostUnderWay = Math.max(mostUnderWay, underWay)
      return { bytes: framed(written, frame), keep: () => keep(path, written) }
    },
  }
}

/** An empty prompt, in used memory if there is some. */
function emptied(text = noText): Written {
  return { ids: noIds, count: 0, text, length: longestHead }
}

const noIds = new Int32Array(0)
const noText: Buffer = Buffer.alloc(0)

function sizeOf({ ids, text }: Written): number {
  return ids.byteLength + text.length
}

/** Puts head and tail around the ids, where they already are; the next ids overwrite the tail. */
function framed({ text, length }: Written, { head, tail, rest }: BodyFrame): Buffer {
  const start = longestHead - head.length
  if (start < 0) throw new RangeError(`A head of ${head.length} characters is longer than 32.`)
  text.write(head, start, 'latin1')
  let end = length + text.write(tail, length, 'utf8')
  if (rest) {
    text.set(rest, end)
    end += rest.length
  }
  return text.subarray(start, end)
}

/** Rewrites a prompt as `ids`, keeping the text of the common beginning. */
function rewrite(written: Written, ids: Int32Array, tailRoom: number): void {
  cutToShared(written, ids)
  reserve(written, ids.length, tailRoom)
  written.length = writeIds(ids, written)
  written.count = ids.length
}

function cutToShared(written: Written, ids: Int32Array): void {
  const most = Math.min(written.count, ids.length)
  let shared = most
  if (most > 0 && !beginsAlike(written.ids, ids, most)) {
    shared = 0
    while (written.ids[shared] === ids[shared]) shared++
  }
  if (shared === written.count) return
  let length = longestHead + Math.max(0, shared - 1)
  for (let index = 0; index < shared; index++) length += idWidth(ids[index]!)
  written.count = shared
  written.length = length
}

function beginsAlike(some: Int32Array, others: Int32Array, count: number): boolean {
  if (some.buffer === others.buffer && some.byteOffset === others.byteOffset) return true
  const size = count * 4
  return bytesOf(some, size).equals(bytesOf(others, size))
}

function bytesOf({ buffer, byteOffset }: Int32Array, size: number): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, size)
}

/** How much larger new memory is than what is needed: what it replaces is left to the collector, here and in the thread. */
const growth = 1.6

function reserve(written: Written, count: number, tailRoom: number): void {
  const room = written.length + (count - written.count) * widestId + tailRoom
  if (written.text.length >= room) return
  const text = Buffer.from(new SharedArrayBuffer(Math.ceil(room * growth)))
  written.text.copy(text, 0, 0, written.length)
  written.text = text
}
