import { availableParallelism, freemem } from 'node:os'
import { isMainThread } from 'node:worker_threads'
import type { LaneLimits } from '../../../base/core/lane.ts'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import { knownSecrets } from '../../../base/core/process/secrets.ts'
import type { GatherOptions } from '../../../engine/weigh/gather.ts'
import { defaults } from '../../settings/settings.ts'
import { imageFolderOf } from '../../store/images/open-images.ts'
import type { Elsewhere } from '../elsewhere.ts'
import type { OnUpdate } from '../pause.ts'
import { gatherOptions, laneLimits, type RollParts, rolloutsOf } from '../roll-groups.ts'
import { Crew } from './crew.ts'
import type { ThreadStart } from './messages.ts'
import { ownFiles, reasonToStay, type Spreading, threadOptions, weighingOf } from './spreading.ts'
import { canStart, startThread } from './thread.ts'
import { openWhenBusy } from './when-busy.ts'

/**
 * On two cores, threads start beside the one that is busy and compile their code at its cost, so that they pay
 * for runs that go on for longer; and a server's thread may be using the other core already.
 */
const onTwoCores = { seconds: 6, mostCores: 1.5 }

/** Most threads that are started without being asked for: up to so many were measured to pay. */
const mostByItself = 16

type Widths = LaneLimits & { readonly rollouts: number }

/**
 * Opens the threads that share the attempts of these parts; undefined if they stay in this one. By
 * default that is decided during the run: threads are started when this one is always busy, and not
 * while it waits for a server.
 */
export function openThreads(
  spreading: Spreading,
  parts: RollParts,
): (Elsewhere & AsyncDisposable) | undefined {
  const { threads = defaults.threads, tell = () => {} } = spreading.options
  if (threads === 1 || !isMainThread) return undefined
  const reason = reasonToStay(spreading)
  const widths = widthsOf(parts)
  const most = Math.min(...Object.values(widths))
  if (threads !== 'auto') {
    if (reason !== undefined) throw new SettingError(`--threads ${threads}: ${reason}`)
    if (most < threads) {
      tell(`--threads ${threads}: ${most} at one time (--concurrency) leave room for ${most}`)
    }
    return most < 2 ? undefined : makeCrew(Math.min(threads, most), { spreading, parts, widths })
  }
  const memory = 1 + Math.floor(freemem() / memoryOfOne())
  const count = Math.min(most, availableParallelism(), memory, mostByItself)
  // Copies of a model that uses all cores already are slower unless there are many.
  const hasOwnThreads = parts.policy.inside?.ownThreads === true
  if (reason !== undefined || hasOwnThreads || count < 2 || !canStart()) return undefined
  const files = ownFiles(spreading)
  return openWhenBusy({
    hint: files.length === 0 ? undefined : hintOf(count, files[0]!),
    ...(availableParallelism() === 2 && onTwoCores),
    open: () => makeCrew(count, { spreading, parts, widths }),
    tell,
  })
}

/** A thread needs about as much memory as this one, since it opens the same parts. */
const memoryOfOne = (): number => process.memoryUsage.rss()

const hintOf = (count: number, file: string): string =>
  `one core is busy all the time: --threads ${count} uses the others too. Each thread then loads ${file} ` +
  'for itself, so that what it keeps between attempts is kept once per thread'

interface Opening {
  readonly spreading: Spreading
  readonly parts: RollParts
  readonly widths: Widths
}

function makeCrew(count: number, { spreading, parts, widths }: Opening): Crew {
  const { environment, options } = spreading
  const { tell = () => {} } = options
  const told = new Set<string>()
  const weighing = weighingOf(options, parts.filters ?? [])
  const own = gatherOptions(parts)
  const start = (concurrency: Widths): ThreadStart => ({
    environment: environment as string,
    options: { ...threadOptions(options), ...weighing.options },
    onUpdate: onUpdateOf(options),
    tellsSamples: options.metricsPort !== undefined,
    imageFolder: imageFolderOf({ out: options.out }),
    concurrency,
    secrets: knownSecrets(),
  })
  const shares = Array.from({ length: count }, (_, index) => shareOf(widths, index, count))
  return new Crew({
    widths: shares.map(({ rollouts }) => rollouts),
    atOnce: availableParallelism(),
    start: (place, news) =>
      startThread(start(shares[place]!), {
        ...news,
        tell(line) {
          if (!told.has(line)) tell(line)
          told.add(line)
        },
      }),
    weighs: how => weighing.isNamed && isWeighedAlike(how, own),
    packWeights: async () => sharedBytes(await parts.policy.inside?.pack()),
    tell,
  })
}

/** Whether two groups are judged and compared by the very same parts. */
export function isWeighedAlike(one: GatherOptions, other: GatherOptions): boolean {
  return (
    one.filters === other.filters &&
    one.estimate === other.estimate &&
    one.weighting === other.weighting
  )
}

/** Training has it among its options. */
function onUpdateOf(options: object): OnUpdate {
  return (options as { readonly onUpdate?: OnUpdate }).onUpdate ?? defaults.onUpdate
}

function widthsOf(parts: RollParts): Widths {
  return { ...laneLimits(parts), rollouts: rolloutsOf(parts) }
}

/** A thread's share of every lane; the shares add up to the lane's limit. */
export function shareOf(widths: Widths, index: number, count: number): Widths {
  const share = (width: number): number => Math.floor((width + count - 1 - index) / count)
  return {
    rollouts: share(widths.rollouts),
    policy: share(widths.policy),
    tools: share(widths.tools),
    environment: share(widths.environment),
    reward: share(widths.reward),
  }
}

/** Bytes in memory that all threads see, so that it is there once. */
function sharedBytes(bytes: Uint8Array | undefined): Uint8Array | null {
  if (!bytes) return null
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.byteLength))
  shared.set(bytes)
  return shared
}
