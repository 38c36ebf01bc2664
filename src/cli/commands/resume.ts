import { readManifest } from '../../run/run-folder.ts'
import { checkSettings, type SettingsInput, withDefaults } from '../../run/settings.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { rollWith } from './roll.ts'

/** Goes on with an interrupted run. */
export const resumeCommand: Command = {
  name: 'resume',
  summary: 'Go on with an interrupted run',
  usage: 'RUN',
  about:
    'Goes on with a run that was interrupted, with the settings it was begun with. What finished is\\n' +
    'never rolled again; the exported rows are those of an undisturbed run.',
  examples: ['espalier resume runs/0007'],
  settings: [],
  words: [1, 1],
  run: runResume,
}

async function runResume(invocation: Invocation): Promise<number> {
  const out = invocation.words[0]!
  const { kind, config, status } = await readManifest(out)
  if (status === 'finished') {
    invocation.terminal.tell(`${out} is finished; nothing is left to do`)
    return 0
  }
  if (kind !== 'roll')
    throw new MisuseError(`${out} is a run of kind "${kind}", which cannot be resumed`)
  const values = withDefaults(checkSettings(config, `${out}/run.json`) as SettingsInput)
  return await rollWith(values, { out, kind, config, resumes: true }, invocation)
}
