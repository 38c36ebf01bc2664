import { commandLine } from '../../names/program-name.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { enterRun } from '../enter-run.ts'
import { evalWith } from './eval.ts'
import { rollWith } from './roll.ts'
import { trainWith } from './train.ts'

/** Goes on with an interrupted run. */
export const resumeCommand: Command = {
  name: 'resume',
  usage: 'RUN',
  about:
    'Goes on with a run that was interrupted, with the settings it was begun with. What finished is\n' +
    'never rolled again; the exported rows are those of an undisturbed run. The flags change where\n' +
    'and how fast it samples and how much it may spend, nothing else; --no-budget lifts a limit.',
  examples: ['espalier resume runs/0007'],
  settings: [
    'policy',
    'concurrency',
    'keep',
    'refill',
    'budget',
    'deadline',
    'retries',
    'keyVariable',
    'unfinished',
    'threads',
    'cluster',
  ],
  words: [1, 1],
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
  const { run, manifest, values } = await enterRun(invocation)
  const { kind, status } = manifest
  if (status === 'finished') {
    invocation.terminal.tell(`${invocation.words[0]} is finished; nothing is left to do`)
    return 0
  }
  const goOn = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
  if (!goOn) {
    const hint = doors.includes(kind)
      ? `start \`${commandLine(kind)}\` again with --out ${run} and what it was started with: it goes on`
      : `only those of ${Object.keys(kinds).join(', ')} can be resumed`
    throw new MisuseError(`${run} is a run of kind "${kind}": ${hint}`)
  }
  return await goOn({ values, out: run, resumes: true }, invocation)
}
