import { RunStoppedError, resumeLine } from '../../core/stopped.ts'
import type { Trained } from '../../learn/train.ts'
import { trainWith } from '../../learn/train-settings.ts'
import { openRunParts } from '../../run/open-parts.ts'
import type { RunRecord } from '../../run/open-run-folder.ts'
import { resolveSettings } from '../../settings/config.ts'
import type { SettingName, Settings } from '../../settings/settings.ts'
import { claimRunFolder } from '../../store/run-folder.ts'
import { openObservers } from '../../watch/observe.ts'
import { writeReport } from '../../watch/run-report.ts'
import type { Command, Invocation } from '../command.ts'
import { dryRunFlag, isDryRun, printPlan } from '../dry-run.ts'
import { openTrainingDisplay } from '../training-display.ts'
import { rollSettings } from './roll.ts'

/** The settings of learning, beside those of rolling. */
export const trainSettings: readonly SettingName[] = [
  'trainer',
  'steps',
  'tasksPerStep',
  'heldOut',
  'learningRate',
  'loss',
  'epochs',
  'updates',
  'entropyBonus',
  'klPenalty',
  'oracleBonus',
  'maxStaleness',
  'onUpdate',
  'evaluateEvery',
  'checkpointEvery',
  'successAt',
]

/** Settings of rolling that mean nothing where steps are taken. */
const withoutMeaning: readonly SettingName[] = ['keep', 'overSample', 'unfinished']

const settingNames: readonly SettingName[] = [
  ...rollSettings.filter(name => !withoutMeaning.includes(name)),
  ...trainSettings,
]

/** Rolls and learns in turn. */
export const trainCommand: Command = {
  name: 'train',
  summary: 'Roll and learn in turn',
  usage: '--policy embedded[:DIR] --environment NAME --tasks FILE|N',
  about:
    'Rolls groups, weighs them, changes the weights and evaluates on held-out tasks, in turn. Keeps\n' +
    'every trajectory, the metrics of every step and checkpoints in a run folder.',
  examples: [
    'espalier train --policy embedded --environment desk --tasks 2000 --steps 60',
    'espalier train --policy embedded:models/shop --environment ./shop.ts#shop --tasks tasks.jsonl',
  ],
  settings: settingNames,
  readsConfig: true,
  own: dryRunFlag,
  isCommon: true,
  words: [0, 0],
  run: runTrain,
}

async function runTrain(invocation: Invocation): Promise<number> {
  const resolved = await resolveSettings(invocation)
  const { values } = resolved
  await using claimed = await claimRunFolder(values.out)
  const { out } = claimed
  if (isDryRun(invocation)) {
    return await printPlan(resolved, invocation, { kind: 'train', out, names: settingNames })
  }
  return await trainInto(values, { out, kind: 'train', config: values }, invocation)
}

/** Trains by settings into a run folder, or goes on with the one it holds. */
export async function trainInto(
  values: Settings,
  { out, resumes = false }: RunRecord,
  { terminal, signal, json }: Invocation,
): Promise<number> {
  const display = openTrainingDisplay(terminal, values.steps)
  await using opened = await openRunParts(values, terminal.tell)
  const context = { out, tell: terminal.tell, renderer: opened.parts.renderer }
  await using observers = await openObservers(values, context)
  const { listen, instruments } = observers
  const parts = { ...opened.parts, signal, listen, instruments }
  const trained = await trainWith(values, parts, { out, resumes, ...display }).catch(stoppedIn)
  if (trained instanceof RunStoppedError) {
    terminal.tell(`stopped: ${trained.message}; \`${resumeLine(out, trained.kind)}\` goes on`)
    return 0
  }
  const { training: _training, ...record } = trained
  await writeReport(out, { training: record, ...observers.notes() })
  if (json) terminal.print(JSON.stringify(trainedRecord(trained)))
  else {
    const { successBefore, successAfter } = trained
    terminal.print(`success ${successBefore.toFixed(3)} before, ${successAfter.toFixed(3)} after`)
  }
  terminal.tell(`next  espalier view ${out}`)
  terminal.tell(`      espalier show ${out}`)
  return 0
}

/** A spent budget is a planned end; everything else is an error. */
function stoppedIn(error: unknown): RunStoppedError {
  if (error instanceof RunStoppedError) return error
  throw error
}

/** What training gave, as one JSON object. */
export function trainedRecord({ training: _, ...trained }: Trained): object {
  return trained
}
