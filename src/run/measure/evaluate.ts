import type { Environment } from '../../base/core/environment.ts'
import type { Group } from '../../base/core/group.ts'
import { rollAs } from '../run/roll.ts'
import type { OptionsOf, RunOptions } from '../run/roll-options.ts'
import { checkOptions } from '../settings/check-options.ts'
import { defaults } from '../settings/settings.ts'
import type { TaskSource } from '../tasks/tasks.ts'
import {
  type Evaluated,
  type MeasureOptions,
  makeMeasure,
  measureRun,
  type TaskResult,
} from './measure.ts'

/** How a policy is evaluated. */
export interface EvaluateOptions
  extends RunOptions,
    Omit<OptionsOf<'evaluate'>, keyof MeasureOptions>,
    MeasureOptions {
  /** Called with every task as it ends, with its attempts. */
  readonly onTask?: (result: TaskResult, group: Group) => void
}

/** Attempts tasks without training on them: success, pass@k and pass^k, each with its interval. */
export async function evaluate<Data>(
  environment: Environment<Data> | string,
  tasks: TaskSource<Data>,
  options: EvaluateOptions,
): Promise<Evaluated> {
  checkOptions<'evaluate', EvaluateOptions>('evaluate', options)
  const { trials = defaults.trials, successAt, k, onTask, ...rest } = options
  const measured = { ...(successAt !== undefined && { successAt }), k }
  const measure = makeMeasure(measured)
  const rolling = { ...rest, group: trials }
  for await (const group of rollAs('eval', environment, tasks, rolling)) {
    const result = measure.add(group)
    onTask?.(result, group)
  }
  // A resumed run has tasks that were finished before.
  return rest.out === undefined ? measure.result() : await measureRun(rest.out, measured)
}
