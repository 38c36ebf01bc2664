import { commandLine } from '../base/core/names/program-name.ts'
import { openCluster } from '../doors/cluster/open-cluster.ts'
import type { AttemptOptions } from '../run/run/roll-options.ts'
import { policyScheme } from '../run/settings/open-policy.ts'
import { defaultTasks, type Settings } from '../run/settings/settings.ts'
import { isRun } from '../run/store/run-folder.ts'
import { countTasks } from '../run/tasks/tasks.ts'
import { RunStoppedError, resumeLine } from '../run/watch/stopped.ts'
import type { Invocation } from './command.ts'
import { openProgress, type Progress } from './progress.ts'

/** A run that a command rolls into: its settings, if it is kept, and whether it goes on. */
export interface Rolled {
  readonly values: Settings
  readonly out: string
  readonly resumes?: boolean
  /** What of it is rolled again although it ended. */
  readonly retry?: 'failed' | undefined
}

/** What a command adds to the options that settings make. */
export type ShownOptions = Required<
  Pick<AttemptOptions, 'out' | 'resumes' | 'signal' | 'tell' | 'listen'>
> &
  Pick<AttemptOptions, 'retry'>

/** Shows progress while `work` rolls, then a summary; if it stopped early, says how to resume. */
export async function withProgress(
  { values, out, resumes = false, retry }: Rolled,
  { terminal, signal }: Pick<Invocation, 'terminal' | 'signal'>,
  work: (tasks: string | number, options: ShownOptions) => Promise<void>,
): Promise<Progress> {
  const { tasks = defaultTasks, group, budget } = values
  // Wrong tasks are reported later, where they are checked.
  const known = await countTasks(tasks).catch(() => undefined)
  const attempts = known === undefined ? undefined : known * group
  using progress = openProgress(terminal, { attempts, budget })
  const { tell } = terminal
  const options = { out, resumes, ...(retry && { retry }), signal, tell, listen: progress.listen }
  await work(tasks, options).catch((error: unknown) => {
    const isStopped = signal.aborted || error instanceof RunStoppedError
    if (isStopped && isRun(out)) tell(`\`${commandLine('resume', out)}\` goes on from here`)
    throw error
  })
  terminal.status('')
  tell(progress.summary())
  const { stopped, stopKind } = progress.counts
  if (stopKind) tell(`stopped: ${stopped}; \`${resumeLine(out, stopKind, budget)}\` goes on`)
  return progress
}

/** Warns before rolling that chat servers mostly give no log-probabilities, and what such runs can be used for. */
export function warnOfChat({ policy }: Settings, tell: (line: string) => void): void {
  const chat = [policy].flat().find(uri => uri !== undefined && policyScheme(uri).scheme?.onlyChats)
  if (chat === undefined) return
  tell(
    `WARNING ${chat} is a chat server: unless it returns token ids, rows have no log-probabilities. ` +
      'That is good for evaluation and supervised rows (export --to openai-sft), not for ' +
      'reinforcement learning; for that use sglang:, vllm: or llama-cpp:.',
  )
}

/** The cluster that makes the attempts, if settings name one. */
export function elsewhereOf(
  values: Settings,
  shown: { readonly out?: string; readonly tell: (line: string) => void },
): Pick<AttemptOptions, 'elsewhere'> {
  const { cluster } = values
  if (cluster === undefined) return {}
  const { out, tell } = shown
  return {
    elsewhere: openCluster(cluster, { config: values, tell, ...(out !== undefined && { out }) }),
  }
}
