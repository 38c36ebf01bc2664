import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

/** Most characters of one line of a program that is talked to. */
export const mostLine = 64 * 2 ** 20

/** Calls back with every whole line of a stream, until one is longer than any should be or cannot be taken. */
export function onLines(
  stream: Readable,
  { line, broken }: { line(text: string): void; broken(error: Error): void },
): void {
  const decoder = new StringDecoder('utf8')
  let parts: string[] = []
  let length = 0
  let isBroken = false
  const take = (chunk: Buffer): void => {
    const [first = '', ...others] = decoder.write(chunk).split('\n')
    parts.push(first)
    length += first.length
    for (const next of others) {
      line(parts.join(''))
      parts = [next]
      length = next.length
    }
    if (length > mostLine) throw new Error('it wrote a line without an end')
  }
  stream.on('data', (chunk: Buffer) => {
    if (isBroken) return
    try {
      take(chunk)
    } catch (cause) {
      isBroken = true
      parts = []
      broken(cause as Error)
    }
  })
}
