import { readFile } from 'node:fs/promises'
import { isHeldOut } from '../core/group.ts'
import { type RunManifest, readManifest, replaceFile, runPaths } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import type { ObserverNotes } from './observe.ts'
import { openReport, type Report, type ReportBuilder } from './report.ts'

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

/** Held-out tasks as they went after a step of training; 0 is before the first. */
export interface MeasuredStep extends Pick<Report, 'success' | 'reward' | 'trajectories'> {
  readonly step: number
}

/** Reads a run, also one that is still growing, and adds it up. */
export async function reportRun(
  run: string,
  options: { readonly successAt?: number } = {},
): Promise<RunReport> {
  const { kind, status, started, finished, reason, config, isolation } = await readManifest(run)
  const at = options.successAt ?? config.successAt
  const open = (): ReportBuilder => openReport(typeof at === 'number' ? { successAt: at } : {})
  const builder = open()
  const heldOut = new Map<number, ReportBuilder>()
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) {
    const measured = isHeldOut(group) ? (heldOut.get(group.step!) ?? open()) : undefined
    if (measured) heldOut.set(group.step!, measured)
    const adding = measured ?? builder
    adding.add(group)
  }
  return {
    run,
    kind,
    status,
    started,
    ...(finished !== undefined && { finished }),
    ...(reason !== undefined && { reason }),
    ...(isolation && { isolation }),
    ...(await readNotes(run)),
    ...builder.report(),
    ...(heldOut.size > 0 && { evaluations: measuredSteps(heldOut) }),
  }
}

function measuredSteps(heldOut: ReadonlyMap<number, ReportBuilder>): readonly MeasuredStep[] {
  return [...heldOut]
    .sort(([one], [other]) => one - other)
    .map(([step, builder]) => {
      const { success, reward, trajectories } = builder.report()
      return { step, success, reward, trajectories }
    })
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
export interface ReportNotes extends Partial<ObserverNotes> {
  /** What training came to. */
  readonly training?: object
}

/** Writes `report.json` into a run folder; what else it holds there is kept. */
export async function writeReport(
  run: string,
  { scoringSeconds = 0, ...more }: ReportNotes = {},
): Promise<RunReport> {
  const report = await reportRun(run)
  const seconds = { ...report.seconds, reward: report.seconds.reward + scoringSeconds }
  const text = JSON.stringify({ ...report, seconds, ...more }, null, 2)
  await replaceFile(runPaths(run).report, `${text}\n`)
  return report
}
