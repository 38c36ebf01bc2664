/** A part of a regular expression, as it is matched. */
export type Part =
  /** One character of a set. */
  | { readonly kind: 'set'; readonly accepts: (point: number) => boolean }
  | { readonly kind: 'sequence'; readonly parts: readonly Part[] }
  /** The first of these that lets the whole match. */
  | { readonly kind: 'choice'; readonly parts: readonly Part[] }
  | {
      readonly kind: 'repeat'
      readonly part: Part
      readonly least: number
      /** Infinity if it has no end. */
      readonly most: number
      readonly isLazy: boolean
    }
  /** A lookahead or lookbehind, positive or negative. */
  | {
      readonly kind: 'look'
      readonly part: Part
      readonly isAhead: boolean
      readonly isNegated: boolean
    }
  /** An atomic part: once matched, it is not tried in another way. */
  | { readonly kind: 'atomic'; readonly part: Part }
  | { readonly kind: 'edge'; readonly of: Edge }

/** A place between characters. */
export type Edge =
  | 'text-start'
  | 'text-end'
  | 'line-start'
  | 'line-end'
  | 'word-edge'
  | 'no-word-edge'

/** Whether a part can match nothing. */
export function isNullable(part: Part): boolean {
  switch (part.kind) {
    case 'set':
      return false
    case 'sequence':
      return part.parts.every(isNullable)
    case 'choice':
      return part.parts.some(isNullable)
    case 'repeat':
      return part.least === 0 || isNullable(part.part)
    case 'atomic':
      return isNullable(part.part)
    default:
      return true
  }
}

/**
 * Whether a backtracking engine needs only linear time: every unbounded repetition is the last part
 * of its alternative, so that nothing after it can fail.
 */
export function isTame(part: Part): boolean {
  const options = part.kind === 'choice' ? part.parts : [part]
  return options.every(option => {
    const parts = option.kind === 'sequence' ? option.parts : [option]
    const last = parts.at(-1)
    const isLoop = last?.kind === 'repeat' && last.part.kind === 'set'
    return (isLoop ? parts.slice(0, -1) : parts).every(each => mostWays(each) <= 64)
  })
}

/** Repetitions that an engine writes out one by one. */
const mostCopies = 100

/** In how many ways a part can match at most; Infinity if it repeats without end or very often. */
function mostWays(part: Part): number {
  switch (part.kind) {
    case 'sequence':
      return part.parts.reduce((ways, each) => ways * mostWays(each), 1)
    case 'choice':
      return part.parts.reduce((ways, each) => ways + mostWays(each), 0)
    case 'repeat':
      return part.most > mostCopies
        ? Number.POSITIVE_INFINITY
        : (part.most - part.least + 1) * mostWays(part.part) ** part.most
    case 'look':
    case 'atomic':
      return mostWays(part.part)
    default:
      return 1
  }
}
