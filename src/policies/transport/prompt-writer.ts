import type { SampleRequest } from '../../core/policy.ts'
import { idWidth, widestId, writeIds } from './id-digits.ts'

/** The text before and after the ids in a body. */
export interface BodyFrame {
  /** In ASCII, at most 32 characters. */
  readonly head: string
  readonly tail: string
}

/** A body in memory that the path's next body will reuse. */
export interface Body {
  readonly bytes: Buffer
  /** Hands the memory back to its path: the server has answered, so it has read all of it. */
  keep(): void
}

/** Writes ids into JSON bodies. */
export interface PromptWriter {
  /** `head`, the ids joined by commas, `tail`. What the path's last kept body shares is reused. */
  write(path: string, ids: Int32Array, frame: BodyFrame): Body
}

/** The name of a request's path; paths of one tree differ by their branch. */
export function pathOf({ session, key }: SampleRequest): string {
  return key.branch === '' ? session : `${session}/${key.branch}`
}

/**
 * A prompt as ids and as text, in buffers with room to grow; the text leaves room for a head. Its
 * memory can be shared with the thread that sends it.
 */
interface Written {
  ids: Int32Array<ArrayBuffer>
  /** The memory of the ids. */
  bytes: Buffer
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
export function openPromptWriter(budget = 64 * 2 ** 20): PromptWriter {
  const paths = new Map<string, Written>()
  const spare: Written[] = []
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
      if (forgotten && spare.length < mostSpare) spare.push(forgotten)
    }
  }

  return {
    write(path, ids, frame) {
      const written = take(path) ?? emptied(spare.pop())
      rewrite(written, ids, frame.tail.length * widestUnit)
      underWay += sizeOf(written)
      mostUnderWay = Math.max(mostUnderWay, underWay)
      return { bytes: framed(written, frame), keep: () => keep(path, written) }
    },
  }
}

/** An empty prompt, in used memory if there is some. */
function emptied(spare: Written | undefined): Written {
  const { ids, bytes, text } = spare ?? nothing
  return { ids, bytes, count: 0, text, length: longestHead }
}

const nothing = { ids: new Int32Array(0), bytes: Buffer.alloc(0), text: Buffer.alloc(0) }

function sizeOf({ ids, text }: Written): number {
  return ids.byteLength + text.length
}

/** Puts head and tail around the ids, where they already are; the next ids overwrite the tail. */
function framed({ text, length }: Written, { head, tail }: BodyFrame): Buffer {
  const start = longestHead - head.length
  if (start < 0) throw new RangeError(`A head of ${head.length} characters is longer than 32.`)
  text.write(head, start, 'latin1')
  const end = length + text.write(tail, length, 'utf8')
  return text.subarray(start, end)
}

/** Rewrites a prompt as `ids`, keeping the text of the common beginning. */
function rewrite(written: Written, ids: Int32Array, tailRoom: number): void {
  cutToShared(written, ids)
  const from = written.count
  reserve(written, ids.length, tailRoom)
  written.length = writeIds(ids, written)
  written.ids.set(from === 0 ? ids : ids.subarray(from), from)
  written.count = ids.length
}

function cutToShared(written: Written, ids: Int32Array): void {
  const most = Math.min(written.count, ids.length)
  let shared = most
  if (most > 0 && !beginsAlike(written.bytes, ids, most)) {
    shared = 0
    while (written.ids[shared] === ids[shared]) shared++
  }
  if (shared === written.count) return
  let length = longestHead + Math.max(0, shared - 1)
  for (let index = 0; index < shared; index++) length += idWidth(ids[index]!)
  written.count = shared
  written.length = length
}

function beginsAlike(bytes: Buffer, ids: Int32Array, count: number): boolean {
  const size = count * 4
  const others = Buffer.from(ids.buffer as ArrayBuffer, ids.byteOffset, size)
  return bytes.compare(others, 0, size, 0, size) === 0
}

function reserve(written: Written, count: number, tailRoom: number): void {
  const room = written.length + (count - written.count) * widestId + tailRoom
  if (written.ids.length < count) {
    const ids = new Int32Array(Math.ceil(count * 1.25))
    ids.set(written.ids.subarray(0, written.count))
    written.ids = ids
    written.bytes = Buffer.from(ids.buffer)
  }
  if (written.text.length < room) {
    const text = Buffer.from(new SharedArrayBuffer(Math.ceil(room * 1.25)))
    written.text.copy(text, 0, 0, written.length)
    written.text = text
  }
}
