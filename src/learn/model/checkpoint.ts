import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeWhole } from '../../base/core/files/whole-file.ts'
import type { OptimizerState } from './protocol.ts'
import { readSafetensors, writeSafetensors } from './safetensors.ts'
import { checkShape, type ModelShape } from './shape.ts'
import type { Tensor } from './tensor.ts'

/** A model folder, as Hugging Face lays it out. */
export interface Checkpoint {
  readonly shape: ModelShape
  readonly tensors: readonly Tensor[]
  /** Tokenizer and template files, as they are. */
  readonly files: ReadonlyMap<string, Uint8Array>
}

/** Files of a model folder that belong to its tokenizer and are passed on unread. */
const companionNames = [
  'added_tokens.json',
  'chat_template.jinja',
  'generation_config.json',
  'merges.txt',
  'special_tokens_map.json',
  'tokenizer.json',
  'tokenizer.model',
  'tokenizer_config.json',
  'vocab.json',
] as const

/** Values that the kernels assume; a config with others describes another kind of model. */
const fixedConfig = {
  model_type: 'llama',
  hidden_act: 'silu',
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  tie_word_embeddings: true,
  attention_bias: false,
  mlp_bias: false,
} as const

/** Reads a model folder; what the embedded model cannot compute is refused. */
export async function readCheckpoint(folder: string): Promise<Checkpoint> {
  const shape = readConfig(await readFile(join(folder, 'config.json'), 'utf8'), folder)
  const path = join(folder, 'model.safetensors')
  const tensors = readSafetensors(await readFile(path), path)
  return { shape, tensors, files: await readCompanions(folder) }
}

/** Reads the files of a model folder that belong to its tokenizer, those that are there. */
export async function readCompanions(folder: string): Promise<ReadonlyMap<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>()
  for (const name of companionNames) {
    const bytes = await readFile(join(folder, name)).catch(absent)
    if (bytes) files.set(name, bytes)
  }
  return files
}

function absent(cause: NodeJS.ErrnoException): undefined {
  if (cause.code !== 'ENOENT') throw cause
}

/** Writes a model folder; each file appears whole or not at all. */
export async function writeCheckpoint(folder: string, checkpoint: Checkpoint): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const [name, bytes] of checkpoint.files) {
    checkCompanion(name)
    await writeSynced(join(folder, name), bytes)
  }
  const config = `${JSON.stringify(toConfig(checkpoint.shape), undefined, 2)}\n`
  await writeSynced(join(folder, 'config.json'), config)
  await writeSynced(join(folder, 'model.safetensors'), writeSafetensors(checkpoint.tensors))
}

/** Refuses a name that is not of a tokenizer's file: it could be a path to somewhere else. */
export function checkCompanion(name: string): void {
  if ((companionNames as readonly string[]).includes(name)) return
  throw new Error(`A model folder has no file "${name}". Known: ${companionNames.join(', ')}.`)
}

/** Weights are on the disk itself before anything says that they are there. */
export function writeSynced(
  path: string,
  content: string | Uint8Array | Iterable<Uint8Array>,
): Promise<void> {
  return writeWhole(path, content, { isSynced: true })
}

function toConfig(shape: ModelShape): Record<string, unknown> {
  return {
    architectures: ['LlamaForCausalLM'],
    ...fixedConfig,
    vocab_size: shape.vocabulary,
    hidden_size: shape.width,
    num_hidden_layers: shape.layers,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.heads,
    intermediate_size: shape.hidden,
    max_position_embeddings: shape.context,
    torch_dtype: 'float32',
  }
}

/** Whether a config is of a model that is trained whole, as this package writes them. */
export function isTrainedWhole(config: Readonly<Record<string, unknown>>): boolean {
  const wanted = { ...fixedConfig, num_key_value_heads: config.num_attention_heads }
  return Object.entries({ ...wanted, torch_dtype: 'float32' }).every(([name, value]) => {
    return config[name] === value || (config[name] === undefined && name.endsWith('_bias'))
  })
}

function readConfig(text: string, folder: string): ModelShape {
  const config = parseObject(text, join(folder, 'config.json'))
  if (!isTrainedWhole(config)) throw new Error(`The model in ${folder} is not trained whole.`)
  const heads = config.num_attention_heads as number
  return checkShape({
    vocabulary: config.vocab_size as number,
    width: config.hidden_size as number,
    layers: config.num_hidden_layers as number,
    heads,
    hidden: config.intermediate_size as number,
    context: config.max_position_embeddings as number,
  })
}

/** The object of a JSON file. */
export function parseObject(text: string, source: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new Error(`${source} is not JSON.`, { cause })
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>
  }
  throw new Error(`${source} is not a JSON object.`)
}

const momentNames = { moment1: 'exp_avg', moment2: 'exp_avg_sq' } as const

/** Writes the optimiser's memory beside a model's weights. */
export async function writeOptimizer(folder: string, state: OptimizerState): Promise<void> {
  await mkdir(folder, { recursive: true })
  const named = (moment: keyof typeof momentNames) =>
    state[moment].map(tensor => ({ ...tensor, name: `${momentNames[moment]}.${tensor.name}` }))
  const bytes = writeSafetensors([...named('moment1'), ...named('moment2')])
  await writeSynced(join(folder, 'optimizer.safetensors'), bytes)
  const { steps, version } = state
  await writeSynced(join(folder, 'trainer.json'), `${JSON.stringify({ steps, version })}\n`)
}

/** Reads what `writeOptimizer` wrote. */
export async function readOptimizer(folder: string): Promise<OptimizerState> {
  const path = join(folder, 'optimizer.safetensors')
  const tensors = readSafetensors(await readFile(path), path)
  const source = join(folder, 'trainer.json')
  const { steps, version } = parseObject(await readFile(source, 'utf8'), source)
  if (!isCount(steps) || !isCount(version)) {
    throw new Error(`${source} must give steps and version as whole numbers from 0 on.`)
  }
  const named = (moment: keyof typeof momentNames) => {
    const prefix = `${momentNames[moment]}.`
    return tensors
      .filter(tensor => tensor.name.startsWith(prefix))
      .map(tensor => ({ ...tensor, name: tensor.name.slice(prefix.length) }))
  }
  return { steps, version, moment1: named('moment1'), moment2: named('moment2') }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
