import { availableParallelism, freemem } from 'node:os'
import type { LaneLimits } from '../../base/core/lane.ts'
import { knownSecrets } from '../../base/core/process/secrets.ts'
import { laneLimits } from '../../run/run/roll-groups.ts'
import type { RollOptions } from '../../run/run/roll-options.ts'
import type { ServedRun, TurnsKept, Width } from '../../run/run/served/served-run.ts'
import { Crew } from '../../run/run/threads/crew.ts'
import { openHere } from '../../run/run/threads/here.ts'
import type { ThreadStart } from '../../run/run/threads/messages.ts'
import { shareOf } from '../../run/run/threads/open-threads.ts'
import { threadOptions, weighingOf } from '../../run/run/threads/spreading.ts'
import { startThread } from '../../run/run/threads/thread.ts'

/** How many threads a worker has: so many, or one for each core as far as memory goes. */
export type WorkerThreads = number | 'auto'

/** What makes the attempts of one run in a worker: this thread, or several others. */
export interface MakersOptions {
  readonly environment: string
  readonly options: RollOptions
  /** The run as it was opened here. */
  readonly served: ServedRun
  readonly width: Width
  readonly start: Pick<ThreadStart, 'onUpdate' | 'imageFolder'>
  readonly turns: TurnsKept | undefined
  readonly threads: WorkerThreads
  readonly tell: (line: string) => void
  /** The weights of the run, if it has some of its own. */
  packWeights(): Promise<Uint8Array | null>
}

/** Opens a crew that makes what it is asked for, and leaves it to the coordinator what is made again. */
export function openMakers({ served, tell, packWeights, turns, ...more }: MakersOptions): Crew {
  const lanes: LaneLimits & { readonly rollouts: number } = {
    ...laneLimits({ concurrency: more.width }),
    rollouts: rolloutsIn(more.width),
  }
  const count = Math.min(threadsOf(more.threads), lanes.rollouts)
  const rest = { isLent: true, packWeights, tell, weighs: () => true }
  if (count === 1) {
    const start = () => openHere(served, lanes.rollouts)
    return new Crew({ ...rest, widths: [lanes.rollouts], start })
  }
  const shares = Array.from({ length: count }, (_, index) => shareOf(lanes, index, count))
  const startOf = (place: number): ThreadStart => ({
    ...{ environment: more.environment, ...more.start },
    options: { ...threadOptions(more.options), ...weighingOf(more.options, []).options },
    tellsSamples: true,
    turns: turns && { address: turns.address, name: turns.name },
    waitsForever: true,
    concurrency: shares[place]!,
    secrets: knownSecrets(),
  })
  return new Crew({
    ...rest,
    widths: shares.map(({ rollouts }) => rollouts),
    atOnce: availableParallelism(),
    start: (place, news) => startThread(startOf(place), { ...news, tell, onKept: turns?.onKept }),
  })
}

/** The number of threads that is meant. */
export function threadsOf(threads: WorkerThreads): number {
  if (threads !== 'auto') return threads
  // A thread needs about as much memory as this one, since it opens the same parts.
  const memory = 1 + Math.floor(freemem() / process.memoryUsage.rss())
  return Math.min(availableParallelism(), memory)
}

const rolloutsIn = (width: Width): number => (typeof width === 'number' ? width : width.rollouts!)
