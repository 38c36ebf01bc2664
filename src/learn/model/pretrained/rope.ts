import type { Rope } from '../shape.ts'

/** What a config says of rotary positions. */
export interface RopeConfig {
  readonly theta: number
  readonly headSize: number
  /** The context that the model was trained with. */
  readonly context: number
  /** `rope_scaling` or `rope_parameters`, as it stands there. */
  readonly scaling: Readonly<Record<string, unknown>> | undefined
}

/** Kinds of scaling that are computed as published; others depend on a text's length or are unknown. */
const kinds = { default: plain, linear, llama3, yarn } as const

/** The angles of a config, as transformers computes them; a kind that would not be exact is refused. */
export function readRope(config: RopeConfig): Rope {
  const kind = String(config.scaling?.rope_type ?? config.scaling?.type ?? 'default')
  if (!Object.hasOwn(kinds, kind)) {
    const known = Object.keys(kinds).join(', ')
    throw new Error(`its rope_scaling is "${kind}"; exact are ${known}`)
  }
  const { frequencies, factor } = kinds[kind as keyof typeof kinds](config)
  // transformers keeps them in single precision.
  return { frequencies: frequencies.map(Math.fround), factor: Math.fround(factor) }
}

function plain({ theta, headSize }: RopeConfig): Rope {
  const half = headSize / 2
  return {
    frequencies: Array.from({ length: half }, (_, pair) => theta ** (-pair / half)),
    factor: 1,
  }
}

function numberIn(config: RopeConfig, name: string, usual?: number): number {
  const value = config.scaling?.[name] ?? usual
  if (typeof value === 'number' && Number.isFinite(value) && value > 0) return value
  throw new Error(`its rope_scaling has no ${name}`)
}

function linear(config: RopeConfig): Rope {
  const by = numberIn(config, 'factor')
  const { frequencies } = plain(config)
  return { frequencies: frequencies.map(frequency => frequency / by), factor: 1 }
}

/** Slow pairs are slowed by the factor, fast ones stay, and those between are mixed. */
function llama3(config: RopeConfig): Rope {
  const by = numberIn(config, 'factor')
  const low = numberIn(config, 'low_freq_factor')
  const high = numberIn(config, 'high_freq_factor')
  const old = numberIn(config, 'original_max_position_embeddings')
  const frequencies = plain(config).frequencies.map(frequency => {
    const turns = (old * frequency) / (2 * Math.PI)
    if (turns < low) return frequency / by
    if (turns > high) return frequency
    const share = (turns - low) / (high - low)
    return (1 - share) * (frequency / by) + share * frequency
  })
  return { frequencies, factor: 1 }
}

/** Pairs that turn often within the trained context stay, others are slowed, with a ramp between. */
function yarn(config: RopeConfig): Rope {
  const { theta, headSize, context, scaling } = config
  const old = numberIn(config, 'original_max_position_embeddings', context)
  const by = numberIn(config, 'factor', context / old)
  const [fast, slow] = [numberIn(config, 'beta_fast', 32), numberIn(config, 'beta_slow', 1)]
  const pairOf = (turns: number) =>
    (headSize * Math.log(old / (turns * 2 * Math.PI))) / (2 * Math.log(theta))
  const isRounded = scaling?.truncate !== false
  const first = Math.max(isRounded ? Math.floor(pairOf(fast)) : pairOf(fast), 0)
  const end = Math.min(isRounded ? Math.ceil(pairOf(slow)) : pairOf(slow), headSize - 1)
  const last = end === first ? end + 0.001 : end
  const frequencies = plain(config).frequencies.map((frequency, pair) => {
    const slowed = Math.min(Math.max((pair - first) / (last - first), 0), 1)
    return (frequency / by) * slowed + frequency * (1 - slowed)
  })
  return { frequencies, factor: yarnFactor(config, by) }
}

/** What cosines and sines are multiplied by, so that attention stays as sharp as it was. */
function yarnFactor({ scaling }: RopeConfig, by: number): number {
  const { attention_factor: given, mscale, mscale_all_dim: all } = scaling ?? {}
  const scale = (strength: number) => (by <= 1 ? 1 : 0.1 * strength * Math.log(by) + 1)
  if (typeof given === 'number') return given
  if (typeof mscale === 'number' && typeof all === 'number' && mscale !== 0 && all !== 0) {
    return scale(mscale) / scale(all)
  }
  return scale(1)
}
