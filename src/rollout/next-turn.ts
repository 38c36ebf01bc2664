import type { Sample } from '../core/policy.ts'

/** What is known of a walk's next turn before it is sampled. */
export interface NextTurn {
  /** Its first sampled node, where it was begun elsewhere and goes on here. */
  begun?: number
  /** Its sample, where it was drawn together with its siblings'. */
  drawn?: Promise<Sample>
}

/** The node at which the turn was begun elsewhere; the turn after it begins anew. */
export function takeBegun(next: NextTurn): number | undefined {
  const { begun } = next
  delete next.begun
  return begun
}

/** The sample that was drawn together with its siblings'; it is taken once. */
export function takeDrawn(next: NextTurn): Promise<Sample> | undefined {
  const { drawn } = next
  delete next.drawn
  return drawn
}
