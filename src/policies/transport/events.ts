import { wrong } from './reading.ts'

/** One event may not be larger than this. */
const largestEvent = 64 * 2 ** 20

/**
 * Reads server-sent events from pieces of a body: calls `take` with the data of each, in order,
 * except for the closing `[DONE]`.
 */
export function readEvents(where: string, take: (data: string) => void): (chunk: Buffer) => void {
  let pending: Buffer = Buffer.alloc(0)
  return chunk => {
    // The end of an event may lie across two pieces, so the search goes back a little.
    let search = Math.max(0, pending.length - 3)
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    let start = 0
    for (;;) {
      const end = findEnd(pending, search)
      if (!end) break
      const data = dataOf(pending.toString('utf8', start, end.at))
      start = end.at + end.width
      search = start
      if (data !== undefined && data !== '[DONE]') take(data)
    }
    pending = pending.subarray(start)
    if (pending.length > largestEvent) {
      throw wrong(where, `one event of the stream is larger than ${largestEvent} bytes`)
    }
  }
}

/** Where the blank line that ends an event begins, and how wide it is. */
function findEnd(bytes: Buffer, from: number): { at: number; width: number } | undefined {
  const plain = bytes.indexOf('\n\n', from)
  const windows = bytes.indexOf('\r\n\r\n', from)
  if (windows >= 0 && (plain < 0 || windows < plain)) return { at: windows, width: 4 }
  return plain < 0 ? undefined : { at: plain, width: 2 }
}

function dataOf(event: string): string | undefined {
  if (event.startsWith('data:') && !event.includes('\n')) return event.slice(5).trim()
  const lines = event.split('\n').filter(line => line.startsWith('data:'))
  return lines.length === 0 ? undefined : lines.map(line => line.slice(5).trim()).join('\n')
}
