import type { Sample } from '../../base/core/policy.ts'

/** What is known of a walk's next turn before it is sampled. */
export interface NextTurn {
  /** Its first sampled node, if another path began the turn. */
  begun?: number | undefined
  /** Its sample, if it was drawn together with its siblings'. */
  drawn?: Promise<Sample> | undefined
}

/** Takes the node at which another path began the turn; later turns begin on this path. */
export function takeBegun(next: NextTurn): number | undefined {
  const { begun } = next
  if (begun !== undefined) next.begun = undefined
  return begun
}

/** Takes the sample that was drawn together with its siblings'; only once. */
export function takeDrawn(next: NextTurn): Promise<Sample> | undefined {
  const { drawn } = next
  if (drawn) next.drawn = undefined
  return drawn
}
