import type { CallAttempt } from '@espalier/text'

/** A sample as far as it has come. */
export interface GrowingSample {
  readonly ids: Int32Array
  /** The ids as text; decoded when asked for. */
  text(): string
}

/** Watches an attempt and stops paying for it early. What was sampled is kept and gradable. */
export interface Guard {
  readonly name: string
  /** The reward of an attempt that it stops. @default what the rewards give */
  readonly reward?: number
  /** Asked while a turn is sampled; `true` stops it. */
  watch?(sample: GrowingSample): boolean
  /** Asked after a turn was read, with all calls of the attempt; `true` ends it. */
  review?(calls: readonly CallAttempt[]): boolean
}
