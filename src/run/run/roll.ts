import type { Environment } from '../../base/core/environment.ts'
import type { Group } from '../../base/core/group.ts'
import { refuseChangingShots } from '../demonstrations/shots.ts'
import { checkOptions } from '../settings/check-options.ts'
import { defaults } from '../settings/settings.ts'
import type { TaskSource } from '../tasks/tasks.ts'
import type { ObserverNotes } from '../watch/observe.ts'
import { writeReport } from '../watch/run-report.ts'
import { RunStoppedError } from '../watch/stopped.ts'
import { checkTaskArgument } from './check-options.ts'
import { openObserved } from './observed.ts'
import { openRollParts } from './open-parts.ts'
import { rollIntoRun } from './open-run-folder.ts'
import { recordedOptions } from './recorded-options.ts'
import { type RollParts, rollGroups } from './roll-groups.ts'
import type { RollOptions } from './roll-options.ts'

/**
 * Rolls a group of attempts for every task; yields each group as soon as it is complete.
 *
 * @example
 * for await (const group of roll(calculator(), 16, { policy: 'sglang:http://localhost:30000' })) …
 */
export async function* roll<Data>(
  environment: Environment<Data> | string,
  tasks: TaskSource<Data>,
  options: RollOptions,
): AsyncGenerator<Group, void> {
  checkOptions<'roll', RollOptions>('roll', options)
  yield* rollAs('roll', environment, tasks, options)
}

/** Rolls for a command, whose name is recorded in the run folder. */
export async function* rollAs<Data>(
  kind: string,
  environment: Environment<Data> | string,
  tasks: TaskSource<Data>,
  options: RollOptions,
): AsyncGenerator<Group, void> {
  checkTaskArgument(tasks)
  refuseChangingShots(options.shots)
  await using opened = await openRollParts(environment, tasks, options)
  const { out } = options
  if (out === undefined) yield* withinBudget(rollGroups(tasks, opened.parts))
  else {
    const notes = yield* rollObserved(tasks, opened.parts, { ...options, out, kind })
    await writeReport(out, notes)
  }
}

/** Rolls into a run folder with all observers that options ask for; returns what they noticed. */
async function* rollObserved<Data>(
  tasks: TaskSource<Data>,
  parts: RollParts<Data>,
  options: RollOptions & { readonly out: string; readonly kind: string },
): AsyncGenerator<Group, ObserverNotes> {
  const { out, kind, resumes = false, retry, tell, unfinished = defaults.unfinished } = options
  await using observed = await openObserved(parts, options)
  const record = { out, kind, config: configOf(parts, options), unfinished, resumes, retry, tell }
  yield* rollIntoRun(tasks, observed.parts, record)
  return await observed.notes()
}

/** What the run folder records: the settings that options came from, or the options themselves. */
function configOf<Data>(
  { environment, policy }: RollParts<Data>,
  options: RollOptions,
): Readonly<Record<string, unknown>> {
  const { advantage, seed } = defaults
  const { config = { environment: environment.name, policy: policy.name } } = options
  return { advantage, seed, ...recordedOptions(options), ...config }
}

/** Without a run folder nothing can be resumed, so a spent budget is an ordinary end. */
async function* withinBudget(groups: AsyncGenerator<Group>): AsyncGenerator<Group> {
  try {
    yield* groups
  } catch (error) {
    if (!(error instanceof RunStoppedError) || !error.isPlanned) throw error
  }
}
