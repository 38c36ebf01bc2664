import { wrong } from './reading.ts'

/** One event may not be larger than this. */
const largestEvent = 64 * 2 ** 20

const lineFeed = 0x0a

/**
 * Reads server-sent events from pieces of a body: calls `take` with the data of each, in order,
 * except for the closing `[DONE]`. Every byte is looked at once, however the body is cut and however
 * large its events are: a server must not be able to hold up everybody else.
 */
export function readEvents(where: string, take: (data: string) => void): (chunk: Buffer) => void {
  /** The pieces of the line that has not ended yet. */
  let pieces: Buffer[] = []
  let data: string[] = []
  let size = 0
  const endLine = (last: Buffer): void => {
    const bytes = pieces.length === 0 ? last : Buffer.concat([...pieces, last])
    pieces = []
    const line = bytes.toString('utf8').replace(/\r$/, '')
    if (line.startsWith('data:')) data.push(line.slice(5).trim())
    if (line !== '') return
    const whole = data.join('\n')
    const isData = data.length > 0 && whole !== '[DONE]'
    data = []
    size = 0
    if (isData) take(whole)
  }
  return chunk => {
    let start = 0
    for (;;) {
      const end = chunk.indexOf(lineFeed, start)
      const last = end < 0 ? chunk.length : end
      size += last - start
      if (size > largestEvent) {
        throw wrong(where, `one event of the stream is larger than ${largestEvent} bytes`)
      }
      if (end < 0) break
      endLine(chunk.subarray(start, end))
      start = end + 1
    }
    if (start < chunk.length) pieces.push(chunk.subarray(start))
  }
}
