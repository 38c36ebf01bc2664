import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { isAbsolute, join, resolve } from 'node:path'
import { type AdapterMap, type AdapterShape, adapterMaps } from '../adapter.ts'
import { checkCompanion, parseObject, writeSynced } from '../checkpoint.ts'
import { readMetadata, readSafetensors, writeSafetensors } from '../safetensors.ts'
import type { Tensor } from '../tensor.ts'

const configName = 'adapter_config.json'
const weightsName = 'adapter_model.safetensors'

/** A PEFT folder: an adapter, and the model that it changes. */
export interface PeftFolder {
  readonly shape: AdapterShape
  readonly tensors: readonly Tensor[]
  /** The base model's folder or file. */
  readonly base: string
  /** What the base's weights were when it was written; other programs do not say. */
  readonly digest?: string
  /** The base's tokenizer and template files. */
  readonly files: ReadonlyMap<string, Uint8Array>
}

/** Whether a folder holds an adapter and not a model. */
export function isPeft(folder: string): boolean {
  return existsSync(join(folder, configName))
}

/** Writes an adapter as PEFT does; each file appears whole or not at all. */
export async function writePeft(folder: string, peft: PeftFolder): Promise<void> {
  const { shape, tensors, base, digest, files } = peft
  await mkdir(folder, { recursive: true })
  for (const [name, bytes] of files) {
    checkCompanion(name)
    await writeSynced(join(folder, name), bytes)
  }
  const config = {
    base_model_name_or_path: base,
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
    init_lora_weights: true,
    lora_alpha: shape.alpha,
    lora_dropout: 0,
    modules_to_save: null,
    peft_type: 'LORA',
    r: shape.rank,
    target_modules: shape.targets,
    task_type: 'CAUSAL_LM',
    use_dora: false,
    use_rslora: false,
  }
  await writeSynced(join(folder, configName), `${JSON.stringify(config, undefined, 2)}\n`)
  const bytes = writeSafetensors(tensors, digest === undefined ? {} : { base: digest })
  await writeSynced(join(folder, weightsName), bytes)
}

/** Reads an adapter; one that changes more than low-rank factors can say is refused. */
export async function readPeft(folder: string): Promise<Omit<PeftFolder, 'files'>> {
  const source = join(folder, configName)
  const config = parseObject(await readFile(source, 'utf8'), source)
  refuse(config, source)
  const path = join(folder, weightsName)
  const bytes = await readFile(path)
  const tensors = readSafetensors(bytes, path)
  const { r: rank, lora_alpha: alpha, base_model_name_or_path: base } = config
  if (!Number.isSafeInteger(rank) || (rank as number) < 1 || typeof alpha !== 'number') {
    throw new Error(`${source} has no whole rank r, or no lora_alpha.`)
  }
  if (typeof base !== 'string' || base === '') {
    throw new Error(`${source} names no base model: base_model_name_or_path is missing.`)
  }
  const { base: digest } = readMetadata(bytes, path)
  const isBeside = !isAbsolute(base) && existsSync(join(folder, base))
  if (!isBeside && !existsSync(base)) {
    throw new Error(
      `${source} names the base model ${base}, which is no folder or file here: write its place into base_model_name_or_path.`,
    )
  }
  return {
    shape: { rank: rank as number, alpha, targets: targetsOf(tensors, path) },
    tensors,
    base: isBeside ? resolve(folder, base) : base,
    ...(digest !== undefined && { digest }),
  }
}

/** What an adapter may state, and with what values it is computed exactly. */
const exact: Readonly<Record<string, (value: unknown) => boolean>> = {
  peft_type: value => value === 'LORA',
  bias: value => value === 'none',
  use_rslora: value => !value,
  use_dora: value => !value,
  fan_in_fan_out: value => !value,
  modules_to_save: isEmpty,
  rank_pattern: isEmpty,
  alpha_pattern: isEmpty,
  layers_to_transform: isEmpty,
}

function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value as object).length === 0)
}

function refuse(config: Readonly<Record<string, unknown>>, source: string): void {
  for (const [name, isExact] of Object.entries(exact)) {
    const value = config[name]
    if (value === undefined || isExact(value)) continue
    throw new Error(`${source}: ${name} is ${JSON.stringify(value)}, which is not computed inside.`)
  }
}

/** The maps that an adapter changes, by the names of its tensors. */
function targetsOf(tensors: readonly Tensor[], path: string): readonly AdapterMap[] {
  const found = new Set<string>()
  for (const { name } of tensors) {
    const map = /\.layers\.\d+\.\w+\.(\w+)\.lora_[AB]\.weight$/.exec(name)?.[1]
    if (map === undefined || !(adapterMaps as readonly string[]).includes(map)) {
      throw new Error(`${path} has the tensor ${name}, which changes no map that is known.`)
    }
    found.add(map)
  }
  return adapterMaps.filter(map => found.has(map))
}
