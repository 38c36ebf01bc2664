import { checkShape, type Family, type ModelShape } from '../shape.ts'
import { readRope } from './rope.ts'

/** The most tokens of a context inside, unless one asks for more: keys and values of each take memory. */
const usualContext = 8192

type Config = Readonly<Record<string, unknown>>

/** What a kind of model has that its config does not say. */
interface Kind {
  readonly hasQueryBiases?: boolean
  readonly hasHeadNorms?: boolean
  /** Whether `attention_bias` and `mlp_bias` are read. */
  readonly readsBiases?: boolean
  readonly windows?: 'all' | 'upper'
  readonly isGemma?: boolean
  readonly isTiedUnlessSaid?: boolean
}

/** Kinds of models that are computed exactly, by `model_type`. */
const kinds: Readonly<Record<string, Kind>> = {
  llama: { readsBiases: true },
  mistral: { windows: 'all' },
  qwen2: { hasQueryBiases: true, windows: 'upper' },
  qwen3: { hasHeadNorms: true, readsBiases: true, windows: 'upper' },
  gemma: { isGemma: true, readsBiases: true, isTiedUnlessSaid: true },
}

/** The shape of a pretrained model by its config.json; what would not be exact is refused by name. */
export function readPretrainedConfig(
  config: Config,
  source: string,
  context = usualContext,
): ModelShape {
  try {
    return checkShape(shapeOf(config, context))
  } catch (cause) {
    const { message } = cause as Error
    throw new Error(`The model in ${source} cannot run inside: ${message}.`.replace(/\.\.$/, '.'), {
      cause,
    })
  }
}

function shapeOf(config: Config, context: number): ModelShape {
  const type = String(config.model_type)
  if (!Object.hasOwn(kinds, type)) {
    const known = Object.keys(kinds).join(', ')
    throw new Error(`its model_type is "${type}"; exact are ${known}`)
  }
  const kind = kinds[type]!
  const heads = size(config, 'num_attention_heads')
  const width = size(config, 'hidden_size')
  const trained = size(config, 'max_position_embeddings')
  return {
    vocabulary: size(config, 'vocab_size'),
    width,
    layers: size(config, 'num_hidden_layers'),
    heads,
    hidden: size(config, 'intermediate_size'),
    context: Math.min(trained, context),
    family: familyOf(config, kind, { heads, width, trained }),
  }
}

function familyOf(
  config: Config,
  kind: Kind,
  { heads, width, trained }: { heads: number; width: number; trained: number },
): Family {
  refuse(config)
  const headSize = optional(config, 'head_dim') ?? width / heads
  const biases = kind.readsBiases === true && config.attention_bias === true
  const unit = kind.readsBiases === true && config.mlp_bias === true
  const parameters = objectIn(config, 'rope_parameters')
  return {
    keyHeads: optional(config, 'num_key_value_heads') ?? heads,
    headSize,
    epsilon: numberOr(config.rms_norm_eps, 1e-6),
    rope: readRope({
      theta: numberOr(config.rope_theta ?? parameters?.rope_theta, 10_000),
      headSize,
      context: trained,
      scaling: objectIn(config, 'rope_scaling') ?? parameters,
    }),
    biases: {
      queries: biases || kind.hasQueryBiases === true,
      keysAndValues: biases || kind.hasQueryBiases === true,
      output: biases,
      unit,
    },
    headNorms: kind.hasHeadNorms === true,
    isTied: (config.tie_word_embeddings ?? kind.isTiedUnlessSaid ?? false) === true,
    windows: windowsOf(config, kind),
    activation: activationOf(config, kind),
    embeddingScale: kind.isGemma ? Math.fround(Math.sqrt(width)) : 1,
    normsAddOne: kind.isGemma === true,
  }
}

/** Refuses what changes numbers in ways that are not computed here. */
function refuse(config: Config): void {
  const isOne = (value: unknown) => value === undefined || value === null || value === 1
  if (config.quantization_config) throw new Error('its weights are quantised')
  if (!isOne(config.partial_rotary_factor)) {
    throw new Error(`its partial_rotary_factor is ${String(config.partial_rotary_factor)}, not 1`)
  }
  const capped = ['attn_logit_softcapping', 'final_logit_softcapping'].find(name => config[name])
  if (capped !== undefined) throw new Error(`it has ${capped}`)
}

function activationOf(config: Config, { isGemma }: Kind): Family['activation'] {
  const name = String(config.hidden_activation ?? config.hidden_act ?? (isGemma ? 'gelu' : 'silu'))
  if (name === 'silu' || name === 'swish') return 'silu'
  // Gemma's first configs say gelu and mean the one by tanh.
  if (name === 'gelu_pytorch_tanh' || (isGemma && name === 'gelu')) return 'gelu-tanh'
  throw new Error(`its hidden_act is "${name}"; exact are silu and gelu_pytorch_tanh`)
}

/** Per layer the tokens that a query sees; 0 for all. */
function windowsOf(config: Config, { windows }: Kind): readonly number[] {
  const layers = size(config, 'num_hidden_layers')
  const none = new Array<number>(layers).fill(0)
  const window = config.sliding_window
  const isUsed = windows === 'all' || (windows === 'upper' && config.use_sliding_window === true)
  if (typeof window !== 'number' || !isUsed) return none
  const types = config.layer_types
  if (Array.isArray(types) && types.length === layers) {
    return types.map(type => (type === 'sliding_attention' ? window : 0))
  }
  const first = windows === 'all' ? 0 : numberOr(config.max_window_layers, layers)
  return none.map((_, layer) => (layer >= first ? window : 0))
}

function size(config: Config, name: string): number {
  const value = optional(config, name)
  if (value !== undefined) return value
  throw new Error(`its config has no ${name}`)
}

function optional(config: Config, name: string): number | undefined {
  const value = config[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value
  throw new Error(`its ${name} is ${JSON.stringify(value)}`)
}

function numberOr(value: unknown, usual: number): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : usual
}

function objectIn(config: Config, name: string): Config | undefined {
  const value = config[name]
  return typeof value === 'object' && value !== null ? (value as Config) : undefined
}
