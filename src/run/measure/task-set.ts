import type { Task } from '../../base/core/environment.ts'
import { openRunReader } from '../store/store.ts'
import { type Band, bandOf, bands } from '../tasks/curate/curate.ts'
import { LikenessIndex, type LikenessOptions } from '../tasks/curate/likeness.ts'
import { measureRun, type TaskResult } from './measure.ts'

/** How useful a set of tasks is for training a policy. */
export interface MeasuredTasks {
  readonly tasks: number
  /** Tasks whose attempts all failed outside the policy; they are in no band. */
  readonly unscored: number
  readonly success: number
  /** The share of tasks whose attempts differ in reward: only those teach anything. */
  readonly contrast: number
  readonly bands: Readonly<Record<Band, number>>
  /** Tasks that are like a held-out one, with its id; if there are some to compare with. */
  readonly leaked?: readonly { readonly id: string; readonly of: string; readonly share: number }[]
  readonly byTask: readonly MeasuredTask[]
}

/** How one task went. */
export interface MeasuredTask {
  readonly id: string
  readonly band: Band
  readonly success: number
  readonly trials: number
  readonly differs: boolean
}

/** Measures the tasks of a run by the rewards of its attempts. */
export async function measureTasks(
  run: string,
  options: LikenessOptions & { readonly successAt?: number; readonly heldOut?: readonly Task[] },
): Promise<MeasuredTasks> {
  const { successAt, heldOut, ...likeness } = options
  const { byTask } = await measureRun(run, successAt === undefined ? {} : { successAt })
  const measured = byTask.filter(({ trials }) => trials > 0).map(toMeasured)
  const share = (count: number): number => (measured.length === 0 ? 0 : count / measured.length)
  const leaked = heldOut && (await findLeaks(run, heldOut, likeness))
  return {
    tasks: byTask.length,
    unscored: byTask.length - measured.length,
    success: share(measured.reduce((sum, { success }) => sum + success, 0)),
    contrast: share(measured.filter(({ differs }) => differs).length),
    bands: countBands(measured),
    ...(leaked && { leaked }),
    byTask: measured,
  }
}

function toMeasured({ task, successes, trials, rewards }: TaskResult): MeasuredTask {
  const success = successes / trials
  const differs = new Set(rewards).size > 1
  return { id: task, band: bandOf(success), success, trials, differs }
}

function countBands(measured: readonly MeasuredTask[]): Readonly<Record<Band, number>> {
  const counts = bands.map(band => [band, measured.filter(each => each.band === band).length])
  return Object.fromEntries(counts) as Record<Band, number>
}

async function findLeaks(run: string, heldOut: readonly Task[], options: LikenessOptions) {
  await using reader = await openRunReader(run)
  const tasks = reader.tasks()
  const index = new LikenessIndex(options, [...tasks, ...heldOut])
  for (const task of heldOut) index.add(task)
  return tasks.flatMap(task => {
    const like = index.find(task)
    return like ? [{ id: task.id as string, of: like.of, share: like.share }] : []
  })
}
