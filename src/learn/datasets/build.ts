import { setMaxListeners } from 'node:events'
import type { Message, ToolDefinition } from '@espalier/text'
import type { Call } from '../../base/core/call.ts'
import { describeCause } from '../../base/core/failure.ts'
import type { Json } from '../../base/core/ids.ts'
import { makeLane } from '../../base/core/lane.ts'
import { type Split, splitOf } from './splits.ts'
import { openWork, type Work } from './work.ts'
import { fileOf, writeSplits } from './write.ts'

/** One example of a supervised set, in OpenAI's shape. */
export interface Example {
  readonly messages: readonly Message[]
  readonly tools?: readonly ToolDefinition[]
}

/** An example with what is known of it. */
export interface DatasetRow {
  readonly id: string
  /** Rows with the same key say the same: the first is kept. */
  readonly key: string
  /** Rows with the same subject go into the same split. */
  readonly subject: string
  readonly example: Example
  readonly notes: Readonly<Record<string, Json>>
}

/** The result of building one item. */
export type Built =
  | { readonly kind: 'kept'; readonly rows: readonly DatasetRow[] }
  /** `reason` is one of a few fixed texts, so that it can be counted; `detail` says more. */
  | { readonly kind: 'rejected'; readonly reason: string; readonly detail?: string }

/** Something that rows are made of. */
export interface DatasetItem {
  readonly id: string
  build(call: Call): Promise<Built>
}

/** How a set is built. */
export interface DatasetOptions {
  /** A file that ends with `.jsonl` or `.parquet`; with several splits their names come before that. */
  readonly out: string
  readonly splits: readonly Split[]
  readonly seed: number
  /** Items that are built at one time. */
  readonly concurrency: number
  readonly signal: AbortSignal
  /** The settings that the rows depend on: an interrupted set is resumed only with equal ones. */
  readonly settings: Readonly<Record<string, Json>>
  readonly progress?: (progress: DatasetProgress) => void
}

/** How far a set is. */
export interface DatasetProgress {
  readonly done: number
  readonly rows: number
  readonly rejected: Readonly<Record<string, number>>
}

/** The result of building a set. */
export interface DatasetReport {
  readonly items: number
  /** Items that were built before an interruption. */
  readonly resumed: number
  readonly rows: Readonly<Record<string, number>>
  readonly rejected: Readonly<Record<string, number>>
  readonly files: readonly string[]
}

/**
 * Builds a set: items side by side, each on record as soon as it is done, so that an interrupted
 * set goes on where it was; then splits and duplicates, in the order of the items.
 */
export async function buildDataset(
  items: AsyncIterable<DatasetItem> | Iterable<DatasetItem>,
  options: DatasetOptions,
): Promise<DatasetReport> {
  const { out, splits, seed } = options
  const files = splits.map(({ name }) => fileOf(out, name))
  await using work = await openWork(out, files, { ...options.settings, seed })
  const { resumed } = work
  const order = await buildItems(items, work, options)
  const { rows, duplicates } = await writeSplits(work, order, {
    out,
    splits,
    splitOf: subject => splitOf(subject, splits, seed),
  })
  const rejected = { ...work.rejected, ...(duplicates > 0 && { duplicate: duplicates }) }
  await work.finish()
  return { items: order.length, resumed, rows, rejected, files }
}

/** Builds what is not on record yet; gives the ids in the order of the items. */
async function buildItems(
  items: AsyncIterable<DatasetItem> | Iterable<DatasetItem>,
  work: Work,
  { concurrency, signal, progress }: DatasetOptions,
): Promise<readonly string[]> {
  // Every waiting item listens to this signal, which is not a leak.
  setMaxListeners(0, signal)
  const lane = makeLane('dataset', concurrency)
  const order: string[] = []
  const seen = new Set<string>()
  const running = new Set<Promise<void>>()
  let failure: unknown
  const tell = (): void => progress?.({ done: work.done, rows: work.rows, rejected: work.rejected })
  const one = async (item: DatasetItem): Promise<void> => {
    const built = await tryItem(item, { signal })
    await work.record(item.id, built)
    tell()
  }
  for await (const item of items) {
    signal.throwIfAborted()
    if (seen.has(item.id)) throw new Error(`two items have the id "${item.id}"`)
    seen.add(item.id)
    order.push(item.id)
    if (work.has(item.id)) continue
    const task = lane
      .run({ signal }, () => one(item))
      .catch((error: unknown) => {
        failure ??= error
      })
    running.add(task)
    task.finally(() => running.delete(task))
    while (running.size >= 2 * concurrency) await Promise.race(running)
    if (failure !== undefined) break
  }
  await Promise.all(running)
  if (failure !== undefined) throw failure
  tell()
  return order
}

/** An error in one item becomes its reason for rejection, and does not stop the others. */
async function tryItem(item: DatasetItem, call: Call): Promise<Built> {
  try {
    return await item.build(call)
  } catch (cause) {
    call.signal.throwIfAborted()
    return { kind: 'rejected', reason: 'failed', detail: describeCause(cause) }
  }
}
