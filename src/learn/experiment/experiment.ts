import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { describeCause } from '../../base/core/failure.ts'
import { isInsideUri } from '../../run/settings/open-policy.ts'
import { lockFile } from '../../run/store/lock.ts'
import { replaceFile } from '../../run/store/run-folder.ts'
import { type Cell, type CellResult, cellsOf, resultFile } from './cell.ts'
import { runCellInThread } from './cell-in-thread.ts'
import { checkArms } from './check-arms.ts'
import type { ExperimentDesign } from './design.ts'
import { experimentPage } from './page.ts'
import { type ExperimentPlan, type PlannedArm, planExperiment, readPlan } from './plan.ts'
import { type ExperimentResult, experimentResult } from './result.ts'
import type { CellOptions } from './run-cell.ts'
import { experimentTable } from './table.ts'

/** How an experiment is run. */
export interface ExperimentOptions {
  /** The folder of the experiment: its plan, its cells, and what it found. */
  readonly out: string
  /** Chooses fresh seeds. */
  readonly freshness: number
  readonly signal: AbortSignal
  /** Seeds to add to those of the plan. @default 0 */
  readonly moreSeeds?: number
  /** Cells at one time. @default one per core for a model inside, else 1 */
  readonly jobs?: number
  readonly tell?: (line: string) => void
  /** Called with every cell that has ended, also those of an earlier sitting. */
  readonly onCell?: (cell: CellResult, progress: ExperimentProgress) => void
  /** Runs one cell. @default in a thread of its own */
  readonly runCell?: (cell: Cell, options: CellOptions) => Promise<CellResult>
}

/** How far an experiment is. */
export interface ExperimentProgress {
  readonly finished: number
  readonly cells: number
}

/** What an experiment found, and the cells that failed. */
export interface RanExperiment {
  readonly result: ExperimentResult
  readonly failures: readonly {
    readonly arm: string
    readonly seed: number
    readonly reason: string
  }[]
}

/**
 * Runs every cell that has not finished and writes `experiment.json`, `table.md` and `page.html` into its folder.
 * What finished is never run again; a cell that was cut short goes on from its last checkpoint.
 *
 * @example
 * const design = await readDesignFile('groups.toml')
 * const { result } = await experiment(design, { out: 'experiments/groups', freshness: 1, signal })
 */
export async function experiment(
  design: ExperimentDesign,
  options: ExperimentOptions,
): Promise<RanExperiment> {
  const { out, signal, freshness, moreSeeds = 0, tell = () => {} } = options
  await checkArms(design, { signal })
  const wasSeen = existsSync(join(out, 'experiment.json'))
  const plan = await planExperiment(design, out, { freshness, moreSeeds, wasSeen })
  await using _lock = await lockFile(join(out, 'experiment.lock'))
  const { finished, failures } = await runCells(plan, { ...options, tell })
  const result = experimentResult(plan, finished)
  await writeResult(out, result, finished)
  return { result, failures }
}

/** What an experiment's folder holds so far, without running anything. */
export async function readExperiment(out: string): Promise<ExperimentResult | undefined> {
  const plan = await readPlan(out)
  if (!plan) return undefined
  const finished = await Promise.all(cellsOf(plan, out).map(readResult))
  return experimentResult(
    plan,
    finished.filter(cell => cell !== undefined),
  )
}

async function writeResult(
  out: string,
  result: ExperimentResult,
  finished: readonly CellResult[],
): Promise<void> {
  const ordered = result.cells.map(
    cell => finished.find(({ arm, seed }) => arm === cell.arm && seed === cell.seed)!,
  )
  const table = experimentTable(result)
  await replaceFile(join(out, 'page.html'), experimentPage(result, { table, cells: ordered }))
  await replaceFile(join(out, 'table.md'), table)
  await replaceFile(join(out, 'experiment.json'), `${JSON.stringify(result, null, 2)}\n`)
}

async function runCells(
  plan: ExperimentPlan,
  { out, signal, tell = () => {}, onCell, jobs, runCell = runCellInThread }: ExperimentOptions,
): Promise<{ finished: readonly CellResult[]; failures: RanExperiment['failures'] }> {
  const cells = cellsOf(plan, out)
  const finished: CellResult[] = []
  const failures: { arm: string; seed: number; reason: string }[] = []
  const waiting = [...cells]
  const end = (result: CellResult): void => {
    finished.push(result)
    onCell?.(result, { finished: finished.length, cells: cells.length })
  }
  const work = async (): Promise<void> => {
    for (let cell = waiting.shift(); cell; cell = waiting.shift()) {
      signal.throwIfAborted()
      const known = await readResult(cell)
      try {
        end(known ?? (await runCell(cell, { signal, tell: toldBy(cell, tell) })))
      } catch (cause) {
        signal.throwIfAborted()
        failures.push({ arm: cell.arm, seed: cell.seed, reason: describeCause(cause) })
        tell(`${cell.arm} with seed ${cell.seed} failed: ${describeCause(cause)}`)
      }
    }
  }
  const most = Math.min(jobs ?? usualJobs(plan.arms), cells.length)
  const ended = await Promise.allSettled(Array.from({ length: most }, work))
  const broken = ended.find(each => each.status === 'rejected')
  if (broken) throw broken.reason
  return { finished, failures }
}

const toldBy =
  ({ arm, seed }: Cell, tell: (line: string) => void) =>
  (line: string): void =>
    tell(`${arm}/${seed}: ${line}`)

/** A model inside takes one core per cell; a server is asked by one cell after the other. */
export function usualJobs(arms: readonly Pick<PlannedArm, 'settings'>[]): number {
  const isInside = arms.every(({ settings }) =>
    [settings.policy].flat().map(String).every(isInsideUri),
  )
  return isInside ? availableParallelism() : 1
}

async function readResult(cell: Cell): Promise<CellResult | undefined> {
  const file = resultFile(cell)
  return existsSync(file) ? (JSON.parse(await readFile(file, 'utf8')) as CellResult) : undefined
}
