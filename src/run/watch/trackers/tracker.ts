import { describeCause } from '../../../base/core/failure.ts'
import type { Listen, RunEnd } from '../events.ts'
import { type CurvePoint, curveReader } from './curves.ts'

/** Where curves are shown while a run goes: a service of others, asked over HTTP. */
export interface TrackerService {
  readonly name: string
  /** Begins the run there, or goes on with the one that was begun. Gives the address to look at. */
  begin(): Promise<{ readonly page: string }>
  /** Adds points, all of them or none. */
  add(points: readonly CurvePoint[]): Promise<void>
  end(status: RunEnd['status']): Promise<void>
}

/** What a run is told to a tracker as. */
export interface TrackedRun {
  /** The name of its folder. */
  readonly name: string
  /** The run folder, in which the tracker's own id is kept for a later sitting. */
  readonly folder: string
  /** Settings of the run, without secrets; asked for when the run has begun. */
  settings(): Promise<Readonly<Record<string, unknown>>>
}

/** How a tracker waits: in milliseconds, for tests without a clock. */
export interface TrackerOptions {
  readonly tell: (line: string) => void
  /** @default by timers */
  readonly wait?: (milliseconds: number) => Promise<void>
}

/** Milliseconds between two messages, and before one that failed is sent again. */
const pauses = { usual: 2000, failed: 10_000 }

/** Most points that wait; a service that is away for longer loses the oldest. */
const mostWaiting = 10_000

/** Tries of the last message, when the run is over. */
const lastTries = 3

/**
 * Sends the curves of a run on in the background. Nothing waits for it and no failure of it ends a run: it is told once,
 * tried again, and what was lost is told at the end.
 */
export function openTracker(
  service: TrackerService,
  { tell, wait = delay }: TrackerOptions,
): { readonly listen: Listen } & AsyncDisposable {
  const read = curveReader()
  const waiting: CurvePoint[] = []
  let status: RunEnd['status'] = 'stopped'
  let isOver = false
  let lost = 0
  let hasFailed = false
  let wake: () => void = () => {}
  const failed = (cause: unknown): void => {
    if (!hasFailed)
      tell(
        `WARNING --track: ${service.name} does not answer: ${describeCause(cause)}; it is tried again`,
      )
    hasFailed = true
  }
  const tried = async (work: () => Promise<unknown>): Promise<boolean> => {
    try {
      await work()
      return true
    } catch (cause) {
      failed(cause)
      return false
    }
  }
  const send = async (): Promise<boolean> => {
    const batch = waiting.slice()
    const isSent = batch.length === 0 || (await tried(() => service.add(batch)))
    if (isSent) waiting.splice(0, batch.length)
    return isSent
  }
  const untilOver = (milliseconds: number): Promise<unknown> =>
    Promise.race([wait(milliseconds), new Promise<void>(resolve => (wake = resolve))])
  const work = async (): Promise<void> => {
    let hasBegun = false
    const begin = (): Promise<boolean> =>
      tried(async () => tell(`${service.name}: ${(await service.begin()).page}`))
    for (let last = 0; last < lastTries; ) {
      hasBegun ||= await begin()
      const isGood = hasBegun && (await send())
      if (isOver && isGood && (await tried(() => service.end(status)))) return
      if (isOver) last++
      if (last < lastTries) await untilOver(isGood ? pauses.usual : pauses.failed)
    }
    lost += waiting.length
  }
  let working: Promise<void> | undefined
  return {
    listen(event) {
      if (event.kind === 'run-end') status = event.status
      const point = read(event)
      if (point || event.kind === 'run-start') working ??= work()
      if (!point) return
      waiting.push(point)
      if (waiting.length > mostWaiting) lost += waiting.splice(0, 1).length
    },
    async [Symbol.asyncDispose]() {
      isOver = true
      wake()
      await working
      if (lost > 0) tell(`WARNING --track: ${service.name} was not told of ${lost} steps`)
    },
  }
}

function delay(milliseconds: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, milliseconds).unref())
}
