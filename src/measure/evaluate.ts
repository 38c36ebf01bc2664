import type { Environment } from '../core/environment.ts'
import type { Group } from '../core/group.ts'
import { SettingError } from '../names/setting-error.ts'
import { rollAs } from '../run/roll.ts'
import type { AttemptOptions, GroupOptions } from '../run/roll-options.ts'
import { defaults } from '../settings/settings.ts'
import type { TaskSource } from '../tasks/tasks.ts'
import {
  type Evaluated,
  type MeasureOptions,
  measureRun,
  openMeasure,
  type TaskResult,
} from './measure.ts'

/** How a policy is evaluated. */
export interface EvaluateOptions extends AttemptOptions, MeasureOptions {
  /** Attempts per task. @default 1 */
  readonly trials?: number
  /** Called with every task as it ends, with its attempts. */
  readonly onTask?: (result: TaskResult, group: Group) => void
}

/** Attempts tasks without training on them: success, pass@k and pass^k, each with its interval. */
export async function evaluate<Data>(
  environment: Environment<Data> | string,
  tasks: TaskSource<Data>,
  options: EvaluateOptions,
): Promise<Evaluated> {
  const { trials = defaults.trials, successAt, k, onTask, ...rest } = options
  if (!(Number.isInteger(trials) && trials > 0)) {
    throw new SettingError(
      `trials is a whole number of attempts per task, 1 or more, not ${trials}`,
    )
  }
  const measured = { ...(successAt !== undefined && { successAt }), k }
  const measure = openMeasure(measured)
  const rolling = { ...measuring(rest), group: trials, filters: [] }
  for await (const group of rollAs('eval', environment, tasks, rolling)) {
    const result = measure.add(group)
    onTask?.(result, group)
  }
  // A resumed run has tasks that were finished before.
  return rest.out === undefined ? measure.result() : await measureRun(rest.out, measured)
}

/** Options without what only training needs: nobody learns from an evaluation. */
function measuring(options: AttemptOptions & Partial<GroupOptions>): AttemptOptions {
  const { reference: _r, teacher: _t, distill: _d, klPenalty: _k, overlong: _o, ...rest } = options
  return { ...rest, proximal: 'recorded' } as AttemptOptions
}
