import { commandLine } from '../../base/core/names/program-name.ts'
import { type Trained, train } from '../../learn/learn/train.ts'
import { trainOptionsOf } from '../../learn/learn/train-options.ts'
import { resolveSettings } from '../../run/settings/config.ts'
import { needed } from '../../run/settings/open-named.ts'
import { settingsOf } from '../../run/settings/settings.ts'
import { isRun } from '../../run/store/run-folder.ts'
import { RunStoppedError, resumeLine } from '../../run/watch/stopped.ts'
import { type Command, exitCodeOf, type Invocation } from '../command.ts'
import { beginOrPlan, dryRunFlag } from '../dry-run.ts'
import { bestModelLines } from '../model-hints.ts'
import { verdictLine } from '../next-try.ts'
import { elsewhereOf, type Rolled, warnOfChat } from '../rolling.ts'
import { openTrainingDisplay } from '../training-display.ts'

/** Rolls and learns in turn. */
export const trainCommand: Command = {
  name: 'train',
  usage: '--policy embedded[:DIR] --environment NAME --tasks FILE|N',
  about:
    'Rolls groups, weighs them, changes the weights and evaluates on held-out tasks, in turn. Keeps\n' +
    'every trajectory, the metrics of every step and checkpoints in a run folder.',
  examples: [
    'espalier train --policy embedded --environment desk --tasks 2000 --steps 60',
    'espalier train --policy embedded:models/shop --environment ./shop.ts#shop --tasks tasks.jsonl',
  ],
  settings: settingsOf('train'),
  readsConfig: true,
  own: dryRunFlag,
  words: [0, 0],
  run: runTrain,
}

async function runTrain(invocation: Invocation): Promise<number> {
  const beginning = { kind: 'train', run: trainWith } as const
  return await beginOrPlan(await resolveSettings(invocation), invocation, beginning)
}

/** Trains by settings into a run folder, or goes on with the one it holds. */
export async function trainWith(
  { values, out, resumes = false }: Rolled,
  { terminal, signal, json }: Invocation,
): Promise<number> {
  const { tell } = terminal
  warnOfChat(values, tell)
  const { tasks = values.steps * values.tasksPerStep } = values
  const trained = await train(needed(values, 'environment'), tasks, {
    ...trainOptionsOf(values),
    ...openTrainingDisplay(terminal, values.steps),
    out,
    resumes,
    signal,
    tell,
    ...elsewhereOf(values, { out, tell }),
  }).catch((error: unknown) => {
    // A spent budget is a planned end; everything else is an error.
    if (error instanceof RunStoppedError && error.isPlanned) return error
    // What was misused did not begin this run.
    if (isRun(out) && exitCodeOf(error) === 1)
      tell(`\`${commandLine('resume', out)}\` goes on from here`)
    throw error
  })
  if (trained instanceof RunStoppedError) {
    tell(`stopped: ${trained.message}; \`${resumeLine(out, trained.kind, values.budget)}\` goes on`)
    return 0
  }
  if (json) terminal.print(JSON.stringify(trainedRecord(trained)))
  else {
    const { successBefore, successAfter } = trained
    terminal.print(`success ${successBefore.toFixed(3)} before, ${successAfter.toFixed(3)} after`)
  }
  const best = { ...trained.best, before: trained.successBefore }
  for (const line of bestModelLines(best, values)) tell(line)
  tell(`next  ${commandLine('view', out)}`)
  tell(`      ${commandLine('show', out)}`)
  tell(verdictLine(trained, values))
  return 0
}

/** What training gave, as one JSON object. */
export function trainedRecord({ training: _, ...trained }: Trained): object {
  return trained
}
