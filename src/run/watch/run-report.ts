import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type RunManifest, readManifest, replaceFile, runPaths } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import type { ObserverNotes } from './observe.ts'
import type { Report } from './report.ts'
import { type GroupsTally, type MeasuredStep, makeGroupsTally, successAtIn } from './run-tally.ts'

/** The report of a run folder: what it is, and its results. */
export interface RunReport
  extends Report,
    ReportNotes,
    Pick<RunManifest, 'kind' | 'status' | 'started' | 'isolation'> {
  readonly run: string
  readonly finished?: string
  readonly reason?: string
  /** Evaluations on held-out tasks during training. */
  readonly evaluations?: readonly MeasuredStep[]
}

/** Reads a run, also one that is still growing, and adds it up. */
export async function reportRun(
  run: string,
  options: { readonly successAt?: number } = {},
): Promise<RunReport> {
  const { config } = await readManifest(run)
  const tally = makeGroupsTally(options.successAt ?? successAtIn(config))
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) tally.add(group)
  return await describedRun(run, tally)
}

/** A run's results, with its manifest. */
async function describedRun(run: string, tally: GroupsTally): Promise<RunReport> {
  const { kind, status, started, finished, reason, isolation } = await readManifest(run)
  return {
    run,
    kind,
    status,
    started,
    ...(finished !== undefined && { finished }),
    ...(reason !== undefined && { reason: withoutClass(reason) }),
    ...(isolation && { isolation }),
    ...(await readNotes(run)).notes,
    ...tally.report(),
  }
}

const noteNames = [
  'warnings',
  'clock',
  'retries',
  'earlyStop',
  'workers',
  'notices',
  'spans',
  'prefixCache',
  'training',
  'conversion',
] as const

type NoteName = (typeof noteNames)[number]

/** Errors of ours whose message is a whole sentence; the class of any other says something by itself. */
const sentences = /^(?:RunStoppedError|SettingError|StoreError): /

function withoutClass(reason: string): string {
  return reason.replace(sentences, '')
}

/**
 * What observers noticed during the run, which its groups do not contain. A `report.json` that cannot be
 * read gives nothing but the problem: the groups tell the rest of it.
 */
export async function readNotes(
  run: string,
): Promise<{ readonly notes: ReportNotes; readonly problem?: string }> {
  const path = runPaths(run).report
  // A run that has not ended yet has none.
  if (!existsSync(path)) return { notes: {} }
  try {
    const written: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (typeof written !== 'object' || written === null) throw new Error('it is not an object')
    const known = Object.entries(written).filter(([name]) => noteNames.includes(name as NoteName))
    return { notes: Object.fromEntries(known) }
  } catch (error) {
    return { notes: {}, problem: `${path} cannot be read: ${(error as Error).message}` }
  }
}

/** The parts of a report that do not come from its groups. */
export interface ReportNotes extends Partial<Omit<ObserverNotes, 'tally'>> {
  /** The result of training. */
  readonly training?: object
  /** What a run was converted from, and how far it is from what was sampled. */
  readonly conversion?: object
}

/**
 * Writes `report.json` into a run folder; other fields in the file are kept. A run that was tallied
 * while it went on is not read again.
 */
export async function writeReport(
  run: string,
  { scoringSeconds = 0, tally, ...more }: ReportNotes & Partial<Pick<ObserverNotes, 'tally'>> = {},
): Promise<RunReport> {
  const report = tally ? await describedRun(run, tally) : await reportRun(run)
  const seconds = { ...report.seconds, reward: report.seconds.reward + scoringSeconds }
  const text = JSON.stringify({ ...report, seconds, ...more }, null, 2)
  await replaceFile(runPaths(run).report, `${text}\n`)
  return report
}
