/** What a benchmark must show, so that it can fail. */
export interface Expectation {
  readonly what: string
  readonly value: number
  readonly atLeast?: number
  readonly atMost?: number
}

/** A sentence for every expectation that was not met. */
export function missedOf(expectations: readonly Expectation[]): readonly string[] {
  return expectations.flatMap(({ what, value, atLeast, atMost }) => {
    const shown = Number.isFinite(value) ? Number(value.toPrecision(3)) : value
    if (atLeast !== undefined && !(value >= atLeast)) {
      return [`${what}: ${shown}, where at least ${atLeast} is expected`]
    }
    if (atMost !== undefined && !(value <= atMost)) {
      return [`${what}: ${shown}, where at most ${atMost} is expected`]
    }
    return []
  })
}
