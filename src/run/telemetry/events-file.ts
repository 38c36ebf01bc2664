import { createWriteStream, type WriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import type { Listen, RunEvent } from '../events.ts'
import { toEventRecord } from './event-record.ts'

/** Told in memory only: there are many of them, and trees hold what they say. */
const unwritten: ReadonlySet<RunEvent['kind']> = new Set([
  'attempt-start',
  'sample-end',
  'score-end',
])

/** Bytes that may wait for a slow disk before lines are dropped. */
const mostWaiting = 16 * 1024 * 1024

/** Appends events to a file of JSON lines. A disk that refuses them does not stop the run. */
export function openEventsFile(path: string): { readonly listen: Listen } & AsyncDisposable {
  let stream: WriteStream | undefined
  let isOver = false
  const over = (): void => {
    isOver = true
  }
  return {
    listen(event) {
      if (isOver || unwritten.has(event.kind)) return
      // Opened with the first event: before that the run folder may not be there.
      stream ??= createWriteStream(path, { flags: 'a' }).on('error', over)
      if (stream.writableLength > mostWaiting) return
      stream.write(`${JSON.stringify(toEventRecord(event, new Date().toISOString()))}\n`)
    },
    async [Symbol.asyncDispose]() {
      if (!stream || isOver) return
      over()
      stream.end()
      await finished(stream).catch(over)
    },
  }
}
