import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Environment } from '../../base/core/environment.ts'
import { describeCause } from '../../base/core/failure.ts'
import { StoreError } from '../../base/core/files/store-error.ts'
import type { Group } from '../../base/core/group.ts'
import { seatGroup, type TreeId } from '../../base/core/ids.ts'
import type { Policy } from '../../base/core/policy.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { SinkRun } from '../exchange/live-sinks.ts'
import type { DiskWatch } from '../store/disk-watch.ts'
import { newManifest } from '../store/manifest.ts'
import { journalMagic } from '../store/read-journal.ts'
import {
  createRun,
  type RunManifest,
  readManifest,
  runFormat,
  runPaths,
  sizeOf,
  writeManifest,
} from '../store/run-folder.ts'
import {
  groupOf,
  openRunReader,
  openRunWriter,
  type RunReader,
  type RunWriter,
} from '../store/store.ts'
import { openUnfinished, type Unfinished } from '../store/unfinished.ts'
import type { TaskSource } from '../tasks/tasks.ts'
import type { RunEnd } from '../watch/events.ts'
import { RunStoppedError } from '../watch/stopped.ts'
import type { BudgetLimits, Spent } from './budget.ts'
import { type RollParts, rollGroups } from './roll-groups.ts'
import { withoutFailed } from './servers/retry-failed.ts'

/** Where a run is kept, and what is written about it. */
export interface RunRecord {
  readonly out: string
  readonly kind: string
  readonly config: Readonly<Record<string, unknown>>
  /** Whether it goes on with what the folder already holds. */
  readonly resumes?: boolean
  /** What of it is rolled again. @default nothing */
  readonly retry?: 'failed' | undefined
  readonly tell?: ((line: string) => void) | undefined
  /** Whether interrupted attempts are continued or restarted. @default 'continue' */
  readonly unfinished?: 'continue' | 'restart'
  /** Writes until it succeeds, for services that outlive a full disk. @default a failed write ends the run */
  readonly disk?: DiskWatch
}

/** Rolls groups into a run folder; what was finished before an interruption is never rolled again. */
export async function* rollIntoRun<Data>(
  tasks: TaskSource<Data>,
  parts: RollParts<Data>,
  record: RunRecord,
): AsyncGenerator<Group> {
  await using run = await openRun(parts, record)
  try {
    yield* rollGroups(tasks, { ...parts, ...run.parts })
    await run.finish()
  } catch (error) {
    run.fail(error)
    // A planned end: the rest is left for a resumed run with a larger budget.
    if (!(error instanceof RunStoppedError) || !error.isPlanned) throw error
    if (error.kind !== 'keep') {
      parts.listen?.({ kind: 'budget-spent', of: error.kind, message: error.message })
    }
  }
}

/** The formats of exports are loaded only for runs that export while they go on. */
async function withSinksOf(record: SinkRun, writer: RunWriter): Promise<RunWriter> {
  const { sinks = [] } = record.config
  if (Array.isArray(sinks) && sinks.length === 0) return writer
  const { withSinks } = await import('../exchange/live-sinks.ts')
  return await withSinks(writer, record)
}

/** A run folder that is open for writing. Disposing of it before `finish` leaves it to be resumed. */
export interface OpenRun extends AsyncDisposable {
  /** What rolling into it needs. */
  readonly parts: Pick<
    RollParts,
    'writer' | 'unfinished' | 'known' | 'finished' | 'spent' | 'before' | 'everSampled'
  >
  finish(): Promise<void>
  /** Records why the run is left unfinished. */
  fail(error: unknown): void
}

type OpenRunPart = 'policy' | 'budget' | 'listen' | 'signal' | 'elsewhere'

/** Makes a run folder, or opens one that was interrupted, for one writer. */
export async function openRun(
  {
    policy,
    environment,
    budget,
    listen,
    signal,
    elsewhere,
  }: Pick<RollParts<never>, OpenRunPart> & {
    readonly environment: Pick<Environment, 'isolation' | 'seats'>
  },
  record: RunRecord,
): Promise<OpenRun> {
  const { out, kind, config, resumes = false } = record
  // What is no run cannot go on.
  if (resumes) await readManifest(out)
  const { isolation, seats = [''] } = environment
  const fresh = {
    ...newManifest(kind, config, policy.inside?.kernel),
    ...(isolation && { isolation }),
  }
  const isNew = !resumes && (await isEmptyFolder(out))
  const lock = resumes ? undefined : await createRun(out, fresh)
  const opened = await openRunWriter(out, lock, elsewhere?.isLed)
  const writer = await withSinksOf({ ...record, seats }, record.disk?.patient(opened) ?? opened)
  try {
    const before = resumes ? await readFinished(record, seats) : undefined
    const unfinished = await openRecord(policy, record, before && finishedIn(before, seats))
    const { reason: _reason, finished: _finished, ...begun } = await readManifest(out)
    // A resumed run of an earlier format continues in the current one.
    const manifest = { ...begun, format: runFormat }
    await writeManifest(out, { ...manifest, status: 'running' })
    const finished = before?.finishedTrees.size ?? 0
    listen?.({ kind: 'run-start', run: out, command: kind, finished })
    const close = async (ending: Partial<RunManifest>): Promise<void> => {
      await unfinished?.[Symbol.asyncDispose]()
      // If the disk is full, the manifest still says `running`; the run can be resumed all the same.
      if (!writer.isLost?.()) await writeManifest(out, { ...manifest, ...ending }).catch(() => {})
      await writer[Symbol.asyncDispose]()
    }
    let isClosed = false
    let ending: RunEnd = {
      kind: 'run-end',
      status: 'stopped',
      reason: 'it was left before its end',
    }
    return {
      parts: {
        writer,
        ...(unfinished && { unfinished }),
        ...before?.parts,
        ...(before && {
          spent: spentBefore(before, unfinished, budget),
          before: { kept: before.usage.kept, begun: before.parts.finished!.size },
          everSampled: before.usage.everSampled,
        }),
      },
      async finish() {
        await writer.complete()
        await unfinished?.remove()
        isClosed = true
        await close({ status: 'finished', finished: new Date().toISOString() })
        listen?.({ kind: 'run-end', status: 'finished' })
      },
      fail(error) {
        const isPlanned = error instanceof RunStoppedError || signal?.aborted
        const status = isPlanned ? 'stopped' : 'failed'
        ending = { kind: 'run-end', status, reason: reasonOf(error), error }
      },
      async [Symbol.asyncDispose]() {
        if (isClosed) return
        await close({ status: 'stopped', reason: ending.reason! })
        listen?.(ending)
        // A run that failed before anything was kept leaves no folder; if its disk failed, it can be resumed.
        const isOver = ending.status === 'failed' && !(ending.error instanceof StoreError)
        if (isNew && isOver) await removeUnbegun(out)
      },
    }
  } catch (error) {
    await writer[Symbol.asyncDispose]()
    throw error
  }
}

/** A planned end is told in its own words; other errors with their kind. */
function reasonOf(error: unknown): string {
  return error instanceof RunStoppedError ? error.message : describeCause(error)
}

async function isEmptyFolder(folder: string): Promise<boolean> {
  return (await readdir(folder).catch(() => [])).length === 0
}

/** Removes the folder of a run that took no step and whose journal and record of unfinished attempts hold nothing. */
async function removeUnbegun(folder: string): Promise<void> {
  if (existsSync(join(folder, 'metrics.jsonl'))) return
  if ((sizeOf(runPaths(folder).unfinished) ?? 0) > journalMagic.length) return
  const reader = await openRunReader(folder).catch(() => undefined)
  const isBegun = reader === undefined || reader.treeCount > 0
  await reader?.[Symbol.asyncDispose]()
  if (!isBegun) await rm(folder, { recursive: true, force: true })
}

/** Only servers are recorded: other policies give the same answer again at once. */
async function openRecord(
  policy: Policy,
  { out, unfinished = 'continue' }: RunRecord,
  isFinished: (attempt: TreeId) => boolean = () => false,
): Promise<Unfinished | undefined> {
  if (unfinished === 'restart' || !policy.describe) return undefined
  return await openUnfinished(runPaths(out).unfinished, isFinished)
}

/** Whether the trees of all seats of an attempt are finished. */
function finishedIn(
  { finishedTrees }: Before,
  seats: readonly string[],
): (attempt: TreeId) => boolean {
  return attempt => {
    const member = attempt.slice(attempt.lastIndexOf('/'))
    const treeOf = (seat: string): string => `${seatGroup(groupOf(attempt), seat)}${member}`
    return seats.every(seat => finishedTrees.has(treeOf(seat) as TreeId))
  }
}

/** What of a run is finished: whole groups, and trees whose group is not. */
interface Before extends Pick<RunReader, 'finishedTrees' | 'usage'> {
  readonly parts: Pick<RollParts, 'known' | 'finished'>
}

/** What a run had cost, attempts that go on from their record included. */
function spentBefore(
  { usage }: Before,
  unfinished: Unfinished | undefined,
  { price }: BudgetLimits = {},
): Spent {
  const sampled = usage.sampled + (unfinished?.usage.sampled ?? 0)
  const prompt = usage.prompt + (unfinished?.usage.prompt ?? 0)
  const { trajectories } = usage
  const money = price ? (prompt * price.prompt + sampled * price.sampled) / 1e6 : 0
  return { tokens: sampled, trajectories, money }
}

async function readFinished(
  { out, retry, tell = () => {} }: RunRecord,
  seats: readonly string[],
): Promise<Before> {
  const reader = await openRunReader(out, seats)
  try {
    const { finishedTrees, usage } = reader
    if (retry) {
      const parts = await withoutFailed(reader, { seats, tell, run: out })
      return { parts, finishedTrees: new Set(parts.known.keys()), usage }
    }
    const known = new Map<TreeId, Tree>()
    for await (const tree of reader.looseTrees()) known.set(tree.id, tree)
    return { parts: { finished: reader.finishedGroups, known }, finishedTrees, usage }
  } finally {
    await reader[Symbol.asyncDispose]()
  }
}
