import type { Group } from '../core/group.ts'
import { openRunParts } from '../run/open-run.ts'
import { type RunRecord, rollIntoRun } from '../run/rolling.ts'
import { writeReport } from '../run/run-report.ts'
import type { Settings } from '../run/settings.ts'
import type { Invocation } from './command.ts'
import { openProgress, type Progress } from './progress.ts'

/** How many tasks an environment makes where nobody says. */
export const defaultTasks = 16

/** Rolls by settings into a run folder, showing how it goes; leaves a report there. */
export async function rollBySettings(
  values: Settings,
  record: RunRecord,
  {
    terminal,
    signal,
    show,
  }: Pick<Invocation, 'terminal' | 'signal'> & { show(group: Group): void },
): Promise<Progress> {
  const opened = await openRunParts(values, terminal.tell)
  const tasks = values.tasks ?? defaultTasks
  const total = typeof tasks === 'number' ? tasks * values.group : undefined
  const progress = openProgress(terminal, total)
  try {
    const parts = { ...opened.parts, signal, listen: progress.listen }
    for await (const group of rollIntoRun(tasks, parts, record)) show(group)
  } finally {
    await opened[Symbol.asyncDispose]()
  }
  await writeReport(record.out)
  terminal.tell(progress.summary())
  const { stopped } = progress.counts
  if (stopped)
    terminal.tell(`stopped: ${stopped}; \`espalier resume ${record.out} --budget JSON\` goes on`)
  return progress
}
