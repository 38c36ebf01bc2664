import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isGgufPath } from '@espalier/text/gguf'
import { SettingError } from '../base/core/names/setting-error.ts'
import { checkpointFolder, readState } from '../learn/learn/training-state.ts'
import { baseModel } from '../learn/model/embedded.ts'
import { isPeft } from '../learn/model/pretrained/peft.ts'
import { findHubWeights } from '../run/settings/hub/find-weights.ts'
import { isRun } from '../run/store/run-folder.ts'

/**
 * The folder or file of the model that is named: the base in the package, one of a training run, a folder, an
 * adapter's folder, a GGUF file, or one of the Hub's.
 */
export async function findModel(named: string): Promise<string> {
  const name = named.replace(/^embedded:/, '')
  if (name === 'embedded') return baseModel
  if (name.startsWith('hf:')) {
    const tell = (text: string) => void process.stderr.write(`${text}\n`)
    return await findHubWeights(name.slice('hf:'.length), { tell })
  }
  const path = resolve(name)
  if (isRun(path)) return await modelOfRun(name, path)
  if (isGgufPath(path) && existsSync(path)) return path
  if (hasModel(path)) return path
  throw new SettingError(
    `${name} is not a model: it is no GGUF file, and no folder with config.json or adapter_config.json; ` +
      '`espalier teach` makes one',
  )
}

/** Whether a folder holds a model or an adapter. */
function hasModel(folder: string): boolean {
  return existsSync(join(folder, 'config.json')) || isPeft(folder)
}

async function modelOfRun(name: string, folder: string): Promise<string> {
  const state = await readState(folder)
  if (!state)
    throw new SettingError(`${name} has no model: only training runs keep checkpoints of one`)
  const steps = [state.best?.step, state.step].flatMap(step => step ?? [])
  const found = steps.map(step => checkpointFolder(folder, step)).find(hasModel)
  if (found !== undefined) return found
  throw new SettingError(`${name} has no model here: its trainer kept the weights elsewhere`)
}
