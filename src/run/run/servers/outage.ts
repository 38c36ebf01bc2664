import { type Absences, absences as ofThisProcess } from '../../../base/core/process/absences.ts'
import { startTimer } from '../../../base/core/process/timer.ts'
import type { Signals } from '../../watch/signals.ts'
import { RunStoppedError } from '../../watch/stopped.ts'

/** What a run does while a server is away. */
export interface OutageOptions {
  /** How long it waits for it. */
  readonly seconds: number
  readonly signals: Signals
  readonly tell?: ((line: string) => void) | undefined
  /** Stops the run, to be resumed. */
  readonly halt: (error: RunStoppedError) => void
  /** @default the servers that this process waits for */
  readonly absences?: Absences
}

/** Tells of servers that are away and of those that are back, and stops the run when one is away for too long. */
export function watchOutage(options: OutageOptions): () => void {
  const { seconds, signals, halt, absences = ofThisProcess } = options
  const timers = new Map<string, NodeJS.Timeout>()
  const tellMoved = makeMoves(options)
  const leave = absences.on({
    away({ server, why }) {
      tellMoved(server, why)
      const over = (): void =>
        halt(
          new RunStoppedError('outage', `${server} did not come back within ${seconds} s: ${why}`),
        )
      timers.set(server, startTimer(over, seconds * 1000))
    },
    back({ server }, away) {
      clearTimeout(timers.get(server))
      timers.delete(server)
      options.tell?.(`${server} is back after ${Math.round(away)} s`)
      signals.emit({ kind: 'server-back', server, seconds: away })
    },
  })
  return () => {
    leave()
    for (const timer of timers.values()) clearTimeout(timer)
  }
}

/** Tells that a server is away, or that it is back if no reason is given, while others take its requests. */
export function makePartMoves(
  options: Pick<OutageOptions, 'signals' | 'tell'>,
): (server: string, why: string | undefined) => void {
  const since = new Map<string, number>()
  const tellMoved = makeMoves(options, 'the others take its requests')
  return (server, why) => {
    if (why !== undefined) {
      since.set(server, performance.now())
      tellMoved(server, why)
      return
    }
    const seconds = (performance.now() - since.get(server)!) / 1000
    options.tell?.(`${server} is back after ${Math.round(seconds)} s`)
    options.signals.emit({ kind: 'server-back', server, seconds })
  }
}

function makeMoves(
  { signals, tell }: Pick<OutageOptions, 'signals' | 'tell'>,
  meanwhile = 'nothing is begun, and no time is counted, until it answers',
): (server: string, why: string) => void {
  return (server, why) => {
    const since = new Date().toTimeString().slice(0, 8)
    const message = `${server} is away since ${since}; ${meanwhile}`
    tell?.(`WARNING server-away: ${message}. ${why}`)
    signals.emit({ kind: 'warning', sentinel: 'server-away', message, likely: why })
  }
}
