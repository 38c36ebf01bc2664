import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import { checkpointFolder, readState } from '../../../learn/learn/training-state.ts'
import { readCheckpoint, writeCheckpoint } from '../../../learn/model/checkpoint.ts'
import { baseModel } from '../../../learn/model/embedded.ts'
import { writeGguf } from '../../../learn/model/gguf/write-gguf.ts'
import { openNamed } from '../../../run/settings/open-named.ts'
import { isRun } from '../../../run/store/run-folder.ts'
import { type Command, type Invocation, MisuseError } from '../../command.ts'

/** Writes an embedded model for other programs. */
export const exportModelCommand: Command = {
  name: 'export-model',
  usage: 'RUN|DIR|embedded',
  about:
    'Writes a model that was taught or trained here as a GGUF file, or as a Hugging Face folder with\n' +
    'safetensors. Of a training run it is the model that its evaluations found best, or the last where\n' +
    'none was made; DIR is a model folder, such as RUN/checkpoints/000020; "embedded" is the base in\n' +
    'the package.',
  examples: [
    'espalier export-model embedded --to gguf --out desk.gguf',
    'espalier export-model runs/0001 --to safetensors --out desk-model',
  ],
  settings: [],
  own: {
    to: { help: 'The format', argument: 'gguf|safetensors' },
    out: { help: 'The file to write; for safetensors the folder', argument: 'FILE' },
  },
  positionalCount: [1, 1],
  run: runExportModel,
}

/** The folder of the model that is named: the base, one of a training run, or a folder itself. */
async function modelFolder(name: string): Promise<string> {
  if (name === 'embedded') return baseModel
  const folder = resolve(name)
  if (!isRun(folder)) return folder
  const state = await readState(folder)
  if (!state)
    throw new SettingError(`${name} has no model: only training runs keep checkpoints of one`)
  const steps = [state.best?.step, state.step].flatMap(step => step ?? [])
  const found = steps
    .map(step => checkpointFolder(folder, step))
    .find(each => existsSync(join(each, 'config.json')))
  if (found !== undefined) return found
  throw new SettingError(`${name} has no model here: its trainer kept the weights elsewhere`)
}

async function runExportModel({
  positionals: words,
  own,
  terminal,
  json,
}: Invocation): Promise<number> {
  const { to, out } = own
  if (to !== 'gguf' && to !== 'safetensors') {
    throw new MisuseError(`--to is gguf or safetensors, not "${to ?? ''}"`)
  }
  if (out === undefined) throw new MisuseError('--out FILE says where to write')
  const folder = await modelFolder(words[0]!)
  // A model says nothing of who wrote it, and may be somebody's only copy.
  const old = to === 'gguf' ? out : join(out, 'config.json')
  if (existsSync(old)) {
    throw new MisuseError(`${old} is there already: remove it or choose another --out`)
  }
  const checkpoint = await openNamed(undefined, () => readCheckpoint(folder))
  if (to === 'gguf') await writeFile(out, writeGguf(checkpoint, basename(folder)))
  else await writeCheckpoint(out, checkpoint)
  if (json) terminal.print(JSON.stringify({ model: folder, to, out }))
  else {
    terminal.print(`wrote ${out}`)
    const next =
      to === 'gguf'
        ? `llama-server --model ${out}`
        : `from transformers import AutoModelForCausalLM; AutoModelForCausalLM.from_pretrained("${out}")`
    terminal.print(`use it with: ${next}`)
  }
  return 0
}
