import { resolveSettings } from '../../run/config.ts'
import { openRunParts } from '../../run/open-run.ts'
import { nextRunFolder } from '../../run/run-folder.ts'
import type { SettingName } from '../../run/settings.ts'
import type { Trained } from '../../run/train.ts'
import { trainWith } from '../../run/train-settings.ts'
import type { Command, Invocation } from '../command.ts'
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
  'evaluateEvery',
  'checkpointEvery',
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
  settings: [...rollSettings, ...trainSettings],
  isCommon: true,
  words: [0, 0],
  run: runTrain,
}

async function runTrain(invocation: Invocation): Promise<number> {
  const { terminal, signal, json } = invocation
  const { values } = await resolveSettings(invocation)
  const out = values.out ?? (await nextRunFolder())
  const display = openTrainingDisplay(terminal, values.steps)
  await using opened = await openRunParts(values, terminal.tell)
  const trained = await trainWith(values, { ...opened.parts, signal }, { out, ...display })
  if (json) terminal.print(JSON.stringify(trainedRecord(trained)))
  else {
    const { successBefore, successAfter } = trained
    terminal.print(`success ${successBefore.toFixed(3)} before, ${successAfter.toFixed(3)} after`)
  }
  terminal.tell(`next  espalier show ${out}`)
  return 0
}

/** What training gave, as one JSON object. */
export function trainedRecord({ training: _, ...trained }: Trained): object {
  return trained
}
