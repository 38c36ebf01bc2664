import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

/** Most characters of one line of a program that is talked to. */
export const mostLine = 64 * 2 ** 20

/** Calls back with every whole line of a stream; a line that is longer than any should be is told once. */
export function onLines(
  stream: Readable,
  { line, tooLong }: { line(text: string): void; tooLong(): void },
): void {
  const decoder = new StringDecoder('utf8')
  let parts: string[] = []
  let length = 0
  stream.on('data', (chunk: Buffer) => {
    if (length > mostLine) return
    const [first = '', ...others] = decoder.write(chunk).split('\n')
    parts.push(first)
    length += first.length
    for (const next of others) {
      line(parts.join(''))
      parts = [next]
      length = next.length
    }
    if (length <= mostLine) return
    parts = []
    tooLong()
  })
}
