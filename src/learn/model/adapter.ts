/** The maps of a layer that an adapter can change, by Hugging Face's names. */
export const adapterMaps = [
  'q_proj',
  'k_proj',
  'v_proj',
  'o_proj',
  'gate_proj',
  'up_proj',
  'down_proj',
] as const

/** The largest rank of an adapter. */
export const rankLimit = 256

/** A map of a layer that an adapter changes. */
export type AdapterMap = (typeof adapterMaps)[number]

/** The size of an adapter: y = x W + (alpha / rank) x A B on every target of every layer. */
export interface AdapterShape {
  readonly rank: number
  readonly alpha: number
  /** In the order of `adapterMaps`. */
  readonly targets: readonly AdapterMap[]
}

/** The two factors of one map in one layer, as PEFT names and lays them out. */
export interface AdapterFactors {
  readonly layer: number
  readonly map: AdapterMap
  /** `lora_A.weight`: rank × inputs. */
  readonly down: Float32Array
  /** `lora_B.weight`: outputs × rank. */
  readonly up: Float32Array
}

/** Refuses an adapter that the kernels cannot compute. */
export function checkAdapter(adapter: AdapterShape): AdapterShape {
  const { rank, alpha, targets } = adapter
  if (!Number.isSafeInteger(rank) || rank < 1 || rank > rankLimit) {
    throw new RangeError(
      `An adapter's rank must be a whole number from 1 to ${rankLimit}: ${rank}.`,
    )
  }
  if (!Number.isFinite(alpha) || alpha <= 0) {
    throw new RangeError(`An adapter's alpha must be above 0, not ${alpha}.`)
  }
  if (targets.length === 0) throw new RangeError('An adapter changes at least one map.')
  return { rank, alpha, targets: adapterMaps.filter(map => targets.includes(map)) }
}
