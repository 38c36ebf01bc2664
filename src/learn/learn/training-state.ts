import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeWhole } from '../../base/core/files/whole-file.ts'
import { checkpointMark, replaceFile, runPaths } from '../../run/store/run-folder.ts'
import type { TaskMemory } from '../../run/tasks/sample-tasks.ts'
import type { Evaluation } from './held-out.ts'
import type { Ledger } from './steps/ledger.ts'
import type { OrderMemory } from './steps/order.ts'

/** The progress of a training run, saved beside the weights of that step. */
export interface TrainingState {
  readonly step: number
  /** The version of the weights after it. */
  readonly version: number
  readonly before: Evaluation
  readonly after: Evaluation
  readonly best?: BestStep
  readonly sampledTokens: number
  /** What became of all tokens so far; older checkpoints lack it. */
  readonly ledger?: Ledger
  /** Where rolling ahead of learning was. */
  readonly feed?: OrderMemory
  /** Examples that are shown before each task from here on. */
  readonly shots?: number
  /** What is remembered of the tasks that were tried. */
  readonly tasks?: TaskMemory
}

/** The step with the best evaluation, and where its weights are. */
export interface BestStep {
  readonly step: number
  readonly success: number
  readonly folder?: string
  /** The environment's split that it was measured on, where the tasks were made of one. */
  readonly split?: string
}

/** The folder of a step's checkpoint. */
export function checkpointFolder(out: string, step: number): string {
  return join(runPaths(out).checkpoints, String(step).padStart(6, '0'))
}

/** Writes the state; it is written last, so that its presence means that the checkpoint is complete. */
export async function writeState(out: string, state: TrainingState): Promise<void> {
  const short = ({ attempts: _attempts, ...rest }: Evaluation): Evaluation => ({
    ...rest,
    attempts: [],
  })
  const { before, after, ...rest } = state
  const text = JSON.stringify({ ...rest, before: short(before), after: short(after) })
  await replaceFile(join(checkpointFolder(out, state.step), checkpointMark), `${text}\n`)
}

/** The newest whole checkpoint of a training run, if there is one. */
export async function readState(out: string): Promise<TrainingState | undefined> {
  const { checkpoints } = runPaths(out)
  const names = existsSync(checkpoints) ? await readdir(checkpoints) : []
  for (const name of names
    .filter(each => /^\d{6,}$/.test(each))
    .sort()
    .reverse()) {
    const path = join(checkpoints, name, checkpointMark)
    if (existsSync(path)) return JSON.parse(await readFile(path, 'utf8')) as TrainingState
  }
  return undefined
}

/** Removes the metrics of steps that will be repeated. */
export async function cutMetrics(out: string, lastStep: number): Promise<void> {
  const path = join(out, 'metrics.jsonl')
  if (!existsSync(path)) return
  const lines = (await readFile(path, 'utf8')).split('\n').filter(line => {
    try {
      return line !== '' && (JSON.parse(line) as { step: number }).step <= lastStep
    } catch {
      // A line cut off by a crash.
      return false
    }
  })
  await writeWhole(path, lines.map(line => `${line}\n`).join(''))
}
