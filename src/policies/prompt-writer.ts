import { idWidth, widestId, writeIds } from './id-digits.ts'

/** What stands before and after the ids in a body. */
export interface Frame {
  readonly head: string
  readonly tail: string
}

/** Writes ids into JSON bodies. */
export interface PromptWriter {
  /** `head`, the ids joined by commas, `tail`. What the session's last prompt shares is reused. */
  write(session: string, ids: Int32Array, frame: Frame): Buffer
}

/** A prompt as ids and as text, in buffers with room to grow. */
interface Written {
  ids: Int32Array<ArrayBuffer>
  count: number
  text: Buffer
  length: number
}

/** Shorter prompts are written faster than they are looked up. */
const shortestKept = 512

/**
 * Opens a writer that keeps each session's last prompt, up to `budget` bytes in all; the session
 * that was not used for longest is forgotten first. @default 64 MiB
 */
export function openPromptWriter(budget = 64 * 2 ** 20): PromptWriter {
  const sessions = new Map<string, Written>()
  const scratch = nothingWritten()
  let size = 0

  function take(session: string): Written {
    const written = sessions.get(session)
    if (!written) return nothingWritten()
    sessions.delete(session)
    size -= sizeOf(written)
    return written
  }

  function keep(session: string, written: Written): void {
    if (sizeOf(written) > budget) return
    sessions.set(session, written)
    size += sizeOf(written)
    for (const [oldest] of sessions) {
      if (size <= budget) return
      take(oldest)
    }
  }

  return {
    write(session, ids, frame) {
      if (ids.length < shortestKept) return framed(rewrite(scratch, ids), frame)
      const written = rewrite(take(session), ids)
      keep(session, written)
      return framed(written, frame)
    },
  }
}

function nothingWritten(): Written {
  return { ids: new Int32Array(0), count: 0, text: Buffer.alloc(0), length: 0 }
}

function sizeOf({ ids, text }: Written): number {
  return ids.byteLength + text.length
}

function framed({ text, length }: Written, { head, tail }: Frame): Buffer {
  const start = Buffer.byteLength(head)
  const body = Buffer.allocUnsafe(start + length + Buffer.byteLength(tail))
  body.write(head, 0)
  text.copy(body, start, 0, length)
  body.write(tail, start + length)
  return body
}

/** Turns what was written into `ids`, keeping the text of what both begin with. */
function rewrite(written: Written, ids: Int32Array): Written {
  cutToShared(written, ids)
  const from = written.count
  reserve(written, ids.length)
  written.length = writeIds(ids, from, written)
  written.ids.set(from === 0 ? ids : ids.subarray(from), from)
  written.count = ids.length
  return written
}

function cutToShared(written: Written, ids: Int32Array): void {
  const most = Math.min(written.count, ids.length)
  let shared = most
  if (!bytesOf(written.ids, most).equals(bytesOf(ids, most))) {
    shared = 0
    while (written.ids[shared] === ids[shared]) shared++
  }
  if (shared === written.count) return
  let length = Math.max(0, shared - 1)
  for (let index = 0; index < shared; index++) length += idWidth(ids[index]!)
  written.count = shared
  written.length = length
}

function bytesOf(ids: Int32Array, count: number): Buffer {
  return Buffer.from(ids.buffer as ArrayBuffer, ids.byteOffset, count * 4)
}

function reserve(written: Written, count: number): void {
  const room = written.length + (count - written.count) * widestId
  if (written.ids.length < count) {
    const ids = new Int32Array(Math.ceil(count * 1.25))
    ids.set(written.ids.subarray(0, written.count))
    written.ids = ids
  }
  if (written.text.length < room) {
    const text = Buffer.allocUnsafeSlow(room)
    written.text.copy(text, 0, 0, written.length)
    written.text = text
  }
}
