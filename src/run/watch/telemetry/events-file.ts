import { appenderTo } from '../../../base/core/files/appender.ts'
import type { Listen, RunEvent, Together } from '../events.ts'
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

/** Characters that may wait for a slow disk before lines are dropped. */
const mostWaiting = 16 * 1024 * 1024

/** How long a line waits for others, so short that readers of the file do not notice. */
const momentMilliseconds = 50

/** Appends events to a file of JSON lines. A disk that refuses some does not stop the run, nor those after them. */
export function openEventsFile(path: string): { readonly listen: Listen } & AsyncDisposable {
  const file = appenderTo(path)
  let waiting = 0
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
  const flush = (): void => {
    const { length } = lines
    if (length === 0) return
    const over = (): void => {
      waiting -= length
    }
    file.append(lines).then(over, over)
    waiting += length
    lines = ''
  }
  const write = (toLines: () => string): void => {
    if (waiting > mostWaiting) return
    // Each write wakes a thread, so events of one moment are written together.
    if (lines === '') setTimeout(flush, momentMilliseconds).unref()
    lines += toLines()
  }
  const listen = (event: RunEvent): void => {
    if (isOver || !isWritten(event) || isTooSoon(event)) return
    write(() => toEventLine(event, new Date().toISOString()))
  }
  const together = (events: Together): void => {
    if (!isOver && events.kind === 'trees-end') write(() => events.lines)
  }
  return {
    listen: Object.assign(listen, { together }),
    async [Symbol.asyncDispose]() {
      isOver = true
      flush()
      await file.settled()
    },
  }
}
