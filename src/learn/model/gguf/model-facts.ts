import type { ExportedModel } from '../exported/open-exported.ts'
import type { Fact } from './write-gguf.ts'

type Config = ExportedModel['config']

/** Architectures of GGUF by the kinds of models that they compute exactly. */
const architectures: Readonly<Record<string, string>> = {
  llama: 'llama',
  mistral: 'llama',
  qwen2: 'qwen2',
  qwen3: 'qwen3',
}

/** The architecture under which a GGUF file has a model. */
export function architectureOf({ model_type: type }: Config): string {
  const found = architectures[String(type)]
  if (found !== undefined) return found
  const known = Object.keys(architectures).join(', ')
  throw new Error(`Models of the kind ${String(type)} are not written as GGUF, but ${known} are.`)
}

/** What a GGUF file says of a model's sizes and positions; what it could not say exactly is refused. */
export function modelFacts({ name, shape, config }: ExportedModel): readonly Fact[] {
  const architecture = architectureOf(config)
  const { family } = shape
  const { keyHeads, headSize, epsilon, windows } = family!
  if (windows.some(window => window > 0)) {
    throw new Error(
      'A model with sliding windows is not written as GGUF: export it to safetensors.',
    )
  }
  const number = (key: string, value: number): Fact => [`${architecture}.${key}`, 'u32', value]
  return [
    ['general.architecture', 'string', architecture],
    ['general.name', 'string', name],
    number('vocab_size', shape.vocabulary),
    number('context_length', Number(config.max_position_embeddings)),
    number('embedding_length', shape.width),
    number('block_count', shape.layers),
    number('feed_forward_length', shape.hidden),
    number('attention.head_count', shape.heads),
    number('attention.head_count_kv', keyHeads),
    number('attention.key_length', headSize),
    number('attention.value_length', headSize),
    [`${architecture}.attention.layer_norm_rms_epsilon`, 'f32', epsilon],
    number('rope.dimension_count', headSize),
    [`${architecture}.rope.freq_base`, 'f32', thetaOf(config)],
    ...scalingFacts(config, architecture),
  ]
}

function thetaOf(config: Config): number {
  const { rope_parameters: parameters } = config as { rope_parameters?: { rope_theta?: unknown } }
  return Number(config.rope_theta ?? parameters?.rope_theta ?? 10_000)
}

function scalingOf(config: Config): { readonly kind: string; readonly of: Config } {
  const of = (config.rope_scaling ?? config.rope_parameters ?? {}) as Config
  return { kind: String(of.rope_type ?? of.type ?? 'default'), of }
}

/** What of a published scaling a GGUF file can say. */
const sayable: Readonly<Record<string, readonly string[]>> = {
  linear: ['factor'],
  yarn: ['factor', 'original_max_position_embeddings'],
}

function scalingFacts(config: Config, architecture: string): readonly Fact[] {
  const { kind, of } = scalingOf(config)
  if (kind === 'default' || kind === 'llama3') return []
  const said = new Set(['rope_type', 'type', 'rope_theta', ...(sayable[kind] ?? [])])
  const more = Object.keys(of).find(key => !said.has(key) && of[key] !== null)
  if (more !== undefined) {
    throw new Error(`The model's ${more} of its positions has no name in a GGUF file.`)
  }
  const key = `${architecture}.rope.scaling`
  const old = Number(of.original_max_position_embeddings ?? config.max_position_embeddings)
  return [
    [`${key}.type`, 'string', kind],
    [`${key}.factor`, 'f32', Number(of.factor)],
    [`${key}.original_context_length`, 'u32', old],
  ]
}

/** Llama 3's scaling lies in a GGUF file as what each angle is divided by. */
export function positionFactors({
  shape,
  config,
}: Pick<ExportedModel, 'shape' | 'config'>): Float32Array | undefined {
  if (scalingOf(config).kind !== 'llama3') return undefined
  if (architectureOf(config) !== 'llama') {
    throw new Error("Only models of the kind llama have Llama 3's positions in a GGUF file.")
  }
  const theta = thetaOf(config)
  const { frequencies } = shape.family!.rope
  return Float32Array.from(frequencies, (frequency, pair) => {
    return theta ** (-pair / frequencies.length) / frequency
  })
}
