import type { Fact, GgufHeader } from '@espalier/text/gguf'

/** What a GGUF file says of its model, as `config.json` of a folder would. */
export interface GgufConfig {
  readonly model_type: 'llama' | 'qwen2' | 'qwen3'
  readonly vocab_size: number
  readonly hidden_size: number
  readonly num_hidden_layers: number
  readonly num_attention_heads: number
  readonly num_key_value_heads: number
  readonly head_dim: number
  readonly intermediate_size: number
  readonly max_position_embeddings: number
  readonly rms_norm_eps: number
  readonly rope_theta: number
  readonly rope_scaling: Readonly<Record<string, unknown>> | null
  readonly sliding_window: number | null
  readonly tie_word_embeddings: boolean
  readonly attention_bias: boolean
  readonly mlp_bias: boolean
  readonly hidden_act: 'silu'
}

/** Architectures whose GGUF files are read. */
const architectures = ['llama', 'qwen2', 'qwen3'] as const

/** Reads what a file says of its architecture, and the `factors` of its positions if it has some; what cannot be exact is refused by name. */
export function ggufConfig(header: GgufHeader, factors?: Float32Array): GgufConfig {
  const { path, facts, tensors } = header
  const named = facts.get('general.architecture')
  const type = architectures.find(each => each === named)
  if (type === undefined) {
    throw new Error(
      `${path} holds a model of the architecture ${String(named)}; ${architectures.join(', ')} are read from GGUF.`,
    )
  }
  const number = (key: string, fallback?: number): number =>
    numberOf(header, `${type}.${key}`, fallback)
  if (number('expert_count', 0) > 0) {
    throw new Error(`${path} holds a mixture of experts, which is not computed here.`)
  }
  const heads = number('attention.head_count')
  const width = number('embedding_length')
  const size = number('attention.key_length', number('rope.dimension_count', width / heads))
  if (number('rope.dimension_count', size) !== size) {
    throw new Error(
      `${path} turns only a part of each head by its position, which is not computed here.`,
    )
  }
  const theta = number('rope.freq_base', 10_000)
  const tokens = facts.get('tokenizer.ggml.tokens')
  const names = new Set(tensors.map(({ name }) => name))
  const embedding = tensors.find(({ name }) => name === 'token_embd.weight')
  return {
    model_type: type,
    vocab_size:
      embedding?.shape[0] ?? number('vocab_size', Array.isArray(tokens) ? tokens.length : 0),
    hidden_size: width,
    num_hidden_layers: number('block_count'),
    num_attention_heads: heads,
    num_key_value_heads: number('attention.head_count_kv', heads),
    head_dim: size,
    intermediate_size: number('feed_forward_length'),
    max_position_embeddings: number('context_length'),
    rms_norm_eps: number('attention.layer_norm_rms_epsilon'),
    rope_theta: theta,
    rope_scaling: scalingOf(header, type, factors),
    sliding_window: number('attention.sliding_window', 0) || null,
    tie_word_embeddings: !names.has('output.weight'),
    attention_bias: type !== 'qwen2' && names.has('blk.0.attn_q.bias'),
    mlp_bias: names.has('blk.0.ffn_gate.bias'),
    hidden_act: 'silu',
  }
}

function numberOf({ path, facts }: GgufHeader, key: string, fallback?: number): number {
  const value = facts.get(key) ?? fallback
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new Error(`${path} says no number for ${key}, but ${shown(value)}.`)
}

function shown(value: Fact | undefined): string {
  return value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 80)
}

/** How positions beyond the trained ones are scaled. */
function scalingOf(
  header: GgufHeader,
  type: string,
  factors: Float32Array | undefined,
): GgufConfig['rope_scaling'] {
  const { path, facts } = header
  if (factors) return llama3Scaling(header, factors)
  const kind = facts.get(`${type}.rope.scaling.type`) ?? 'none'
  if (kind === 'none') return null
  const factor = numberOf(header, `${type}.rope.scaling.factor`)
  if (kind === 'linear') return { rope_type: 'linear', factor }
  const original = numberOf(header, `${type}.rope.scaling.original_context_length`)
  if (kind === 'yarn') {
    return { rope_type: 'yarn', factor, original_max_position_embeddings: original }
  }
  throw new Error(`${path} scales its positions by ${String(kind)}; linear and yarn are read.`)
}

/** The settings of every model that Llama 3.1 and later scale by; files have only the factors that follow from them. */
const llama3 = {
  rope_type: 'llama3',
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 8192,
} as const

/** The rule behind the factors of a file, if it is the published one. */
function llama3Scaling(
  { path, facts }: GgufHeader,
  factors: Float32Array,
): GgufConfig['rope_scaling'] {
  const theta = facts.get('llama.rope.freq_base')
  const factor = factors.at(-1)!
  const {
    low_freq_factor: low,
    high_freq_factor: high,
    original_max_position_embeddings: original,
  } = llama3
  const wanted = Array.from(factors, (_, pair) => {
    const turns = (original * Number(theta) ** (-pair / factors.length)) / (2 * Math.PI)
    const smooth = Math.min(1, Math.max(0, (turns - low) / (high - low)))
    return 1 / ((1 - smooth) / factor + smooth)
  })
  if (wanted.every((each, pair) => Math.abs(each / factors[pair]! - 1) < 1e-5)) {
    return { ...llama3, factor }
  }
  throw new Error(
    `${path} scales its positions by factors of its own (rope_freqs.weight) that are not those of Llama 3: ` +
      'open the folder of safetensors, whose config.json says by which rule',
  )
}
