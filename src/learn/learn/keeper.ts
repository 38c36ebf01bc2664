import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { appenderTo } from '../../base/core/files/appender.ts'
import { jsonWithoutSecrets } from '../../base/core/process/secrets.ts'
import type { Trainer } from '../../base/core/trainer.ts'
import type { StepRecord } from './steps/step-record.ts'
import { checkpointFolder, cutMetrics, type TrainingState, writeState } from './training-state.ts'
import type { CourseStep } from './verdict/course.ts'

/** Saves a training run so that it can be resumed: its checkpoints and metrics. */
export type Keeper = ReturnType<typeof makeKeeper>

/** How long a run that stops may take to save its last step, in milliseconds. */
const rescueTime = 30_000

/** Keeps a run in its folder, if it has one. */
export function makeKeeper(out: string | undefined, trainer: Trainer, signal: AbortSignal) {
  const pathOf = (step: number): string | undefined =>
    out === undefined ? undefined : checkpointFolder(out, step)
  const metrics = out === undefined ? undefined : appenderTo(join(out, 'metrics.jsonl'))
  const save = async (step: number, within: AbortSignal = signal): Promise<void> => {
    const folder = pathOf(step)
    if (folder === undefined) return
    // Trainers that keep their weights elsewhere make no folder.
    await mkdir(folder, { recursive: true })
    await trainer.save(folder, { signal: within })
  }
  const state = async (now: TrainingState): Promise<void> => {
    if (out !== undefined) await writeState(out, now)
  }
  return {
    save,
    state,
    folderOf(step: number): { readonly folder?: string } {
      const folder = pathOf(step)
      return folder === undefined ? {} : { folder }
    },
    async checkpoint(now: TrainingState): Promise<void> {
      await save(now.step)
      await state(now)
    },
    /** Saves the last whole step of a run that stops, so that it is not repeated. */
    async rescue(last: TrainingState): Promise<void> {
      try {
        await save(last.step, AbortSignal.timeout(rescueTime))
        await state(last)
      } catch {
        // The checkpoint before it is still there, and the run ends by what stopped it.
      }
    },
    /** Restores the last checkpoint of an interrupted run; later steps are repeated. */
    async restore(from: TrainingState | undefined): Promise<{ readonly version?: number }> {
      const folder = from && pathOf(from.step)
      if (!from || folder === undefined) return {}
      await cutMetrics(out!, from.step)
      return await trainer.load(folder, { signal })
    },
    /** The steps of earlier sittings. */
    async course(): Promise<readonly CourseStep[]> {
      const path = out === undefined ? undefined : join(out, 'metrics.jsonl')
      if (path === undefined || !existsSync(path)) return []
      const lines = (await readFile(path, 'utf8')).split('\n').filter(line => line !== '')
      return lines.map(line => JSON.parse(line) as CourseStep)
    },
    async metrics({ metrics: values, more, ...record }: StepRecord): Promise<void> {
      await metrics?.append(`${jsonWithoutSecrets({ ...record, ...values, ...more })}\n`)
    },
  }
}
