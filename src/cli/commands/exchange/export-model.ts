import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { writeWhole } from '../../../base/core/files/whole-file.ts'
import { openExported, readAdapter } from '../../../learn/model/exported/open-exported.ts'
import {
  type FolderType,
  folderTypes,
  writeFolder,
} from '../../../learn/model/exported/write-folder.ts'
import { type GgufType, ggufOf, ggufTypes } from '../../../learn/model/gguf/write-gguf.ts'
import { writePeft } from '../../../learn/model/pretrained/peft.ts'
import { openNamed } from '../../../run/settings/open-named.ts'
import { type Command, type Invocation, MisuseError } from '../../command.ts'
import { findModel } from '../../named-model.ts'

/** Writes an embedded model for other programs. */
export const exportModelCommand: Command = {
  name: 'export-model',
  usage: 'RUN|DIR|FILE.gguf|hf:OWNER/NAME|embedded',
  about:
    'Writes a model that was taught or trained here as a GGUF file, or as a Hugging Face folder with\n' +
    'safetensors. Of a training run it is the model that its evaluations found best, or the last where\n' +
    'none was made; DIR is a model folder, such as RUN/checkpoints/000020; "embedded" is the base in\n' +
    'the package. An adapter of a pretrained model is worked into the weights of its base; --to peft\n' +
    'writes the adapter alone. Log-probabilities are exact in f32, which is the type unless one asks\n' +
    'for a smaller one.',
  examples: [
    'espalier export-model embedded --to gguf --out desk.gguf',
    'espalier export-model runs/0001 --to safetensors --out trained-model',
    'espalier export-model runs/0001 --to gguf --type q8_0 --out trained.gguf',
  ],
  settings: [],
  own: {
    to: { help: 'The format', argument: 'gguf|safetensors|peft' },
    type: {
      help: 'How numbers are written: f32, f16 or bf16 to safetensors, f32, f16 or q8_0 to gguf (default: f32)',
      argument: 'TYPE',
    },
    out: { help: 'The file to write; for safetensors and peft the folder', argument: 'FILE' },
  },
  positionalCount: [1, 1],
  run: runExportModel,
}

/** One way of writing a model. */
interface Target {
  /** What must not be there yet. */
  readonly marks: (out: string) => string
  readonly types: readonly string[]
  readonly write: (folder: string, out: string, type: string) => Promise<void>
  /** What opens it. */
  readonly next: (out: string) => string
}

const inTransformers = (out: string) =>
  `from transformers import AutoModelForCausalLM; AutoModelForCausalLM.from_pretrained("${out}")`

const targets: Readonly<Record<string, Target>> = {
  gguf: {
    marks: out => out,
    types: Object.keys(ggufTypes),
    async write(folder, out, type) {
      using model = await openExported(folder)
      await writeWhole(out, ggufOf(model, type as GgufType), { isSynced: true })
    },
    next: out => `llama-server --model ${out}`,
  },
  safetensors: {
    marks: out => join(out, 'config.json'),
    types: Object.keys(folderTypes),
    async write(folder, out, type) {
      using model = await openExported(folder)
      await writeFolder(out, model, type as FolderType)
    },
    next: inTransformers,
  },
  peft: {
    marks: out => join(out, 'adapter_config.json'),
    types: ['f32'],
    async write(folder, out) {
      await writePeft(out, await readAdapter(folder))
    },
    next: inTransformers,
  },
}

async function runExportModel(invocation: Invocation): Promise<number> {
  const { positionals: words, own, terminal, json } = invocation
  const { to = '', out, type = 'f32' } = own
  const target = Object.hasOwn(targets, to) ? targets[to] : undefined
  if (!target) throw new MisuseError(`--to is ${Object.keys(targets).join(', ')}, not "${to}"`)
  if (!target.types.includes(type)) {
    throw new MisuseError(`--type ${type}: ${to} is written as ${target.types.join(', ')}`)
  }
  if (out === undefined) throw new MisuseError('--out FILE says where to write')
  const folder = await findModel(words[0]!)
  // A model says nothing of who wrote it, and may be somebody's only copy.
  const old = target.marks(out)
  if (existsSync(old)) {
    throw new MisuseError(`${old} is there already: remove it or choose another --out`)
  }
  await openNamed(undefined, () => target.write(folder, out, type))
  if (json) terminal.print(JSON.stringify({ model: folder, to, type, out }))
  else {
    terminal.print(`wrote ${out}`)
    terminal.print(`use it with: ${target.next(out)}`)
  }
  return 0
}
