import { writeFile } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { readCheckpoint, writeCheckpoint } from '../../model/checkpoint.ts'
import { baseModel } from '../../model/embedded.ts'
import { writeGguf } from '../../model/gguf.ts'
import { openNamed } from '../../settings/open-named.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'

/** Writes an embedded model for other programs. */
export const exportModelCommand: Command = {
  name: 'export-model',
  usage: 'DIR|embedded',
  about:
    'Writes a model that was taught or trained here as a GGUF file, or as a Hugging Face folder with\n' +
    'safetensors. DIR is a model folder, such as RUN/best; "embedded" is the base in the package.',
  examples: [
    'espalier export-model embedded --to gguf --out desk.gguf',
    'espalier export-model runs/0001/best --to safetensors --out desk-model',
  ],
  settings: [],
  own: {
    to: { help: 'The format', argument: 'gguf|safetensors' },
    out: { help: 'The file to write; for safetensors the folder', argument: 'FILE' },
  },
  words: [1, 1],
  run: runExportModel,
}

async function runExportModel({ words, own, terminal, json }: Invocation): Promise<number> {
  const { to, out } = own
  if (to !== 'gguf' && to !== 'safetensors') {
    throw new MisuseError(`--to is gguf or safetensors, not "${to ?? ''}"`)
  }
  if (out === undefined) throw new MisuseError('--out FILE says where to write')
  const folder = words[0] === 'embedded' ? baseModel : resolve(words[0]!)
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
