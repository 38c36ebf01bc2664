import { createWriteStream, type WriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import type { Listen, RunEvent } from '../events.ts'
import { toEventLine, type WrittenEvent } from './event-record.ts'

/** Events that are not written: too many, already in the trees, or only for live observers. */
const unwritten: ReadonlySet<RunEvent['kind']> = new Set([
  'lanes-open',
  'lanes-close',
  'attempt-start',
  'sample-end',
  'score-end',
])

const isWritten = (event: RunEvent): event is WrittenEvent => !unwritten.has(event.kind)

/** Bytes that may wait for a slow disk before lines are dropped. */
const mostWaiting = 16 * 1024 * 1024

/** How long a line waits for others, so short that readers of the file do not notice. */
const momentMilliseconds = 50

/** Appends events to a file of JSON lines. A disk that refuses them does not stop the run. */
export function openEventsFile(path: string): { readonly listen: Listen } & AsyncDisposable {
  let stream: WriteStream | undefined
  let isOver = false
  let lines = ''
  let workersTold = Number.NEGATIVE_INFINITY
  let workersKnown = ''
  /** Worker events come every second; only every tenth is written, or when the workers change. */
  const isTooSoon = (event: RunEvent): boolean => {
    if (event.kind !== 'workers') return false
    const known = event.workers.map(({ id }) => id).join(' ')
    if (known === workersKnown && performance.now() - workersTold < 10_000) return true
    workersKnown = known
    workersTold = performance.now()
    return false
  }
  const over = (): void => {
    isOver = true
  }
  const flush = (): void => {
    if (lines !== '') stream?.write(lines)
    lines = ''
  }
  return {
    listen(event) {
      if (isOver || !isWritten(event) || isTooSoon(event)) return
      // Opened with the first event: before that the run folder may not be there.
      stream ??= createWriteStream(path, { flags: 'a' }).on('error', over)
      if (stream.writableLength > mostWaiting) return
      const line = toEventLine(event, new Date().toISOString())
      // Each write wakes a thread, so events of one moment are written together.
      if (lines === '') setTimeout(flush, momentMilliseconds).unref()
      lines += `${line}\n`
    },
    async [Symbol.asyncDispose]() {
      if (!stream || isOver) return
      over()
      flush()
      stream.end()
      await finished(stream).catch(over)
    },
  }
}
