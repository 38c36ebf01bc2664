import { readFile } from 'node:fs/promises'
import { type RunManifest, readManifest, replaceFile, runPaths } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import type { ObserverNotes } from './observe.ts'
import type { Report } from './report.ts'
import { type GroupsTally, type MeasuredStep, openGroupsTally, successAtIn } from './run-tally.ts'

/** The report of a run folder: what it is, and what it came to. */
export interface RunReport
  extends Report,
    ReportNotes,
    Pick<RunManifest, 'kind' | 'status' | 'started' | 'isolation'> {
  readonly run: string
  readonly finished?: string
  readonly reason?: string
  /** What was measured on held-out tasks while training, apart from what was learned from. */
  readonly evaluations?: readonly MeasuredStep[]
}

/** Reads a run, also one that is still growing, and adds it up. */
export async function reportRun(
  run: string,
  options: { readonly successAt?: number } = {},
): Promise<RunReport> {
  const { config } = await readManifest(run)
  const tally = openGroupsTally(options.successAt ?? successAtIn(config))
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) tally.add(group)
  return await describedRun(run, tally)
}

/** What a run came to, with what its folder says of it. */
async function describedRun(run: string, tally: GroupsTally): Promise<RunReport> {
  const { kind, status, started, finished, reason, isolation } = await readManifest(run)
  return {
    run,
    kind,
    status,
    started,
    ...(finished !== undefined && { finished }),
    ...(reason !== undefined && { reason }),
    ...(isolation && { isolation }),
    ...(await readNotes(run)),
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
  'training',
] as const

/** What was noticed while the run went on; its groups do not tell it. */
async function readNotes(run: string): Promise<ReportNotes> {
  try {
    const written = JSON.parse(await readFile(runPaths(run).report, 'utf8')) as ReportNotes
    const names = noteNames.filter(name => written[name] !== undefined)
    return Object.fromEntries(names.map(name => [name, written[name]]))
  } catch {
    // A run that has not ended yet has none.
    return {}
  }
}

/** What a report holds besides what its groups tell. */
export interface ReportNotes extends Partial<Omit<ObserverNotes, 'tally'>> {
  /** What training came to. */
  readonly training?: object
}

/**
 * Writes `report.json` into a run folder; what else it holds there is kept. A run that was added up
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
