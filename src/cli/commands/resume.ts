import { existsSync } from 'node:fs'
import { commandLine } from '../../base/core/names/program-name.ts'
import type { Settings } from '../../run/settings/settings.ts'
import { findCut, reopenCut } from '../../run/store/cut-journal.ts'
import { type RunManifest, runPaths } from '../../run/store/run-folder.ts'
import { writeReport } from '../../run/watch/run-report.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { enterRun } from '../enter-run.ts'
import { isOwn, trustFlag, trustRun } from '../trust.ts'
import { gatewayFlags } from './doors/gateway.ts'
import { evalWith, writeLostResults } from './eval.ts'
import { rollWith } from './roll.ts'
import { trainWith } from './train.ts'

/** Goes on with an interrupted run. */
export const resumeCommand: Command = {
  name: 'resume',
  usage: 'RUN',
  about:
    'Goes on with a run that was interrupted, with the settings it was begun with. What finished is\n' +
    'never rolled again; the exported rows are those of an undisturbed run. What a finished run lost\n' +
    'since, because its journal was cut, is rolled again. The flags change where and how fast it\n' +
    'samples and how much it may spend, nothing else; --no-budget lifts a limit.',
  examples: ['espalier resume runs/0007', 'espalier resume runs/0007 --retry failed'],
  settings: [
    'policy',
    'concurrency',
    'keep',
    'refill',
    'budget',
    'deadline',
    'rewardSeconds',
    'retries',
    'keyVariable',
    'unfinished',
    'device',
    'threads',
    'cluster',
  ],
  own: {
    trust: trustFlag,
    ...gatewayFlags,
    retry: {
      help: 'Rolls failed attempts again, also of a run that has ended; complete groups are weighed anew',
      argument: 'failed',
    },
  },
  positionalCount: [1, 1],
  run: runResume,
}

/** What goes on with a run, by the command that began it. */
const kinds: Readonly<Record<string, typeof rollWith>> = {
  roll: rollWith,
  eval: evalWith,
  train: trainWith,
}

/** Servers: they resume by being started again with the same folder. */
const doors: readonly string[] = ['gateway', 'rollouts']

async function runResume(invocation: Invocation): Promise<number> {
  const { run, manifest, values } = await enterRun(invocation, { resumes: true })
  const { kind, status } = manifest
  const retry = retryOf(invocation, kind, values)
  if (status === 'finished' && !retry && !(await reopens(run, manifest, invocation))) {
    const lost = await writeLost(run, kind, values)
    const rest = lost.length > 0 ? `${lost.join(' and ')} written now` : 'nothing is left to do'
    invocation.terminal.tell(`${invocation.positionals[0]} is finished; ${rest}`)
    return 0
  }
  const goOn = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
  if (!goOn) {
    const hint = doors.includes(kind)
      ? `start \`${commandLine(kind)}\` again with --out ${run} and what it was started with: it goes on`
      : `only those of ${Object.keys(kinds).join(', ')} can be resumed`
    throw new MisuseError(`${run} is a run of kind "${kind}": ${hint}`)
  }
  // What somebody began is theirs; a run of another user is a foreign folder.
  if (!isOwn(run)) await trustRun(run, { values, samples: true }, invocation)
  return await goOn({ values, out: run, resumes: true, retry }, invocation)
}

/** What is rolled again, if anything is asked to be. */
function retryOf(
  { own: { retry } }: Invocation,
  kind: string,
  { sinks = [] }: Settings,
): 'failed' | undefined {
  if (retry === undefined) return undefined
  if (retry !== 'failed') throw new MisuseError(`--retry ${retry}: only failed can be rolled again`)
  if (kind !== 'roll' && kind !== 'eval') {
    const why = kind === 'train' ? ': its weights have changed since' : ''
    throw new MisuseError(
      `--retry failed is for runs of roll and eval, and this is one of ${kind}${why}`,
    )
  }
  if (sinks.length > 0) {
    throw new MisuseError(
      '--retry failed: the run wrote rows as it went (--sinks), which cannot be taken back',
    )
  }
  return retry
}

/** Writes what comes after the end of a run, if a kill or a full disk came first; gives the files. */
async function writeLost(run: string, kind: string, values: Settings): Promise<readonly string[]> {
  const { report } = runPaths(run)
  const lost: string[] = []
  if (!existsSync(report)) {
    await writeReport(run)
    lost.push(report)
  }
  const results = kind === 'eval' ? await writeLostResults(values, run) : undefined
  return results === undefined ? lost : [...lost, results]
}

/** Whether a finished run has lost something that can be rolled again; then it counts as stopped. */
async function reopens(
  run: string,
  manifest: RunManifest,
  { terminal }: Invocation,
): Promise<boolean> {
  const cut = await findCut(run, manifest)
  if (!cut) return false
  if (!cut.canBeRolled) throw cut
  await reopenCut(run)
  terminal.tell(
    `${run} was finished, but its journal was cut since: what is missing is rolled again`,
  )
  return true
}
