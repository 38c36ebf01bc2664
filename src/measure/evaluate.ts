import type { Environment } from '../core/environment.ts'
import { type RollOptions, roll } from '../run/roll.ts'
import type { TaskSource } from '../tasks/tasks.ts'
import {
  type Evaluated,
  type MeasureOptions,
  measureRun,
  openMeasure,
  type TaskResult,
} from './measure.ts'

/** How a policy is evaluated. */
export interface EvaluateOptions<Data = unknown>
  extends Omit<RollOptions<Data>, 'group' | 'advantage'>,
    MeasureOptions {
  /** Attempts per task. @default 1 */
  readonly trials?: number
  /** Told of every task as it ends. */
  readonly onTask?: (result: TaskResult) => void
}

/** Attempts tasks without training on them: success, pass@k and pass^k, each with its interval. */
export async function evaluate<Data>(
  environment: Environment<Data>,
  tasks: TaskSource<Data>,
  options: EvaluateOptions<Data>,
): Promise<Evaluated> {
  const { trials = 1, successAt, k, onTask, ...rest } = options
  const measured = { ...(successAt !== undefined && { successAt }), k }
  const measure = openMeasure(measured)
  const rolling = { ...rest, group: trials, kind: 'eval' }
  for await (const group of roll(environment, tasks, rolling)) {
    const result = measure.add(group)
    onTask?.(result)
  }
  // A resumed run has tasks that were finished before.
  return rest.out === undefined ? measure.result() : await measureRun(rest.out, measured)
}
