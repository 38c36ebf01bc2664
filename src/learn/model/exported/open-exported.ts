import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { isGgufPath } from '@espalier/text/gguf'
import { parseObject, readCompanions } from '../checkpoint.ts'
import { checkTensors } from '../engine/frozen.ts'
import { openGguf } from '../gguf/gguf-file.ts'
import { readPretrainedConfig } from '../pretrained/config.ts'
import { digestOf } from '../pretrained/digest.ts'
import { openWeights } from '../pretrained/open-weights.ts'
import { isPeft, type PeftFolder, readPeft } from '../pretrained/peft.ts'
import type { ModelShape } from '../shape.ts'
import type { WeightsFile } from '../weights-file.ts'
import { mergedWeights } from './merged.ts'

/** A model as it is written for other programs: an adapter is worked into its base. */
export interface ExportedModel extends Disposable {
  readonly name: string
  /** As `config.json` says it. */
  readonly config: Readonly<Record<string, unknown>>
  readonly shape: ModelShape
  readonly weights: WeightsFile
  readonly files: ReadonlyMap<string, Uint8Array>
}

/** Opens a model's folder, its GGUF file, or an adapter's folder with the base that it names. */
export async function openExported(path: string): Promise<ExportedModel> {
  const peft = isPeft(path) ? await readAdapter(path) : undefined
  const base = peft?.base ?? path
  const { config, files } = await describe(base)
  const shape = readPretrainedConfig(config, base, Number.POSITIVE_INFINITY)
  const opened = openWeights(base)
  try {
    checkTensors(opened, shape)
    const weights = peft ? mergedWeights(opened, peft) : opened
    const name = basename(path)
    return { name, config, shape, weights, files, [Symbol.dispose]: () => opened[Symbol.dispose]() }
  } catch (cause) {
    opened[Symbol.dispose]()
    throw cause
  }
}

/** An adapter's folder, whose base must be the one that it was made for. */
export async function readAdapter(path: string): Promise<PeftFolder> {
  if (!isPeft(path)) throw new Error(`${path} holds no adapter: it has no adapter_config.json.`)
  const peft = await readPeft(path)
  if (peft.digest !== undefined && peft.digest !== digestOf(peft.base)) {
    throw new Error(`The adapter in ${path} was made for another base than ${peft.base}.`)
  }
  return { ...peft, files: await readCompanions(path) }
}

async function describe(path: string): Promise<Pick<ExportedModel, 'config' | 'files'>> {
  if (!isGgufPath(path)) {
    const source = join(path, 'config.json')
    return {
      config: parseObject(await readFile(source, 'utf8'), source),
      files: await readCompanions(path),
    }
  }
  using model = openGguf(path)
  const { model_type: type } = model.config
  const architecture = { llama: 'Llama', qwen2: 'Qwen2', qwen3: 'Qwen3' }[type]
  const files = [...model.files()].map(([name, text]) => [name, Buffer.from(text)] as const)
  const config = { architectures: [`${architecture}ForCausalLM`], ...model.config }
  return { config, files: new Map(files) }
}
