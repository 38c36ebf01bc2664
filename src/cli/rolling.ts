import type { Group } from '../core/group.ts'
import { resumeLine } from '../core/stopped.ts'
import { openRunParts } from '../run/open-parts.ts'
import { type RunRecord, rollIntoRun } from '../run/open-run-folder.ts'
import type { Settings } from '../settings/settings.ts'
import { countTasks } from '../tasks/tasks.ts'
import { listenAll } from '../watch/events.ts'
import { type ObserverNotes, openObservers } from '../watch/observe.ts'
import { writeReport } from '../watch/run-report.ts'
import type { Invocation } from './command.ts'
import { openProgress, type Progress } from './progress.ts'

/** How many tasks an environment makes where nobody says. */
const defaultTasks = 16

/** Rolls by settings into a run folder, showing how it goes; leaves a report there. */
export async function rollBySettings(
  given: Settings,
  record: RunRecord,
  invocation: Pick<Invocation, 'terminal' | 'signal'> & { show(group: Group): void },
): Promise<Progress> {
  const { terminal } = invocation
  const values = { ...given, tasks: given.tasks ?? defaultTasks }
  // What is wrong with them is said where they are checked.
  const known = await countTasks(values.tasks).catch(() => undefined)
  const attempts = known === undefined ? undefined : known * values.group
  using progress = openProgress(terminal, { attempts, budget: values.budget })
  const notes = await rollWatched(values, record, { ...invocation, progress }).catch(error => {
    if (invocation.signal.aborted)
      terminal.tell(`\`espalier resume ${record.out}\` goes on from here`)
    throw error
  })
  await writeReport(record.out, notes)
  terminal.status('')
  terminal.tell(progress.summary())
  const { stopped, stopKind } = progress.counts
  if (stopKind) {
    terminal.tell(`stopped: ${stopped}; \`${resumeLine(record.out, stopKind)}\` goes on`)
  }
  return progress
}

type Watched = Parameters<typeof rollBySettings>[2] & { readonly progress: Progress }

/** Rolls with everything that settings ask to watch it; all of it is closed in the end. */
async function rollWatched(
  values: Settings & { readonly tasks: string | number },
  record: RunRecord,
  { terminal, signal, show, progress }: Watched,
): Promise<ObserverNotes> {
  await using opened = await openRunParts(values, terminal.tell)
  const { renderer } = opened.parts
  const context = { out: record.out, tell: terminal.tell, renderer }
  await using observers = await openObservers(values, context)
  const listen = listenAll(progress.listen, observers.listen)
  const { instruments } = observers
  const parts = { ...opened.parts, signal, listen, instruments }
  for await (const group of rollIntoRun(values.tasks, parts, record)) show(group)
  return observers.notes()
}
