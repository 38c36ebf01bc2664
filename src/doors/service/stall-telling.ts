import type { Entry } from './rollouts-entry.ts'

/**
 * Tells the operator of a submission that is not rolled because nobody takes what others have finished,
 * once each: the client of those may be gone for good.
 */
export function makeStallTelling(tell: (line: string) => void): (all: Iterable<Entry>) => void {
  const told = new WeakSet<Entry['submission']>()
  return all => {
    const entries = [...all]
    const holding = entries.filter(({ results }) => results.length > 0)
    const names = holding.map(({ submission: { id }, results }) => `${results.length} of "${id}"`)
    for (const { submission, pending, results } of entries) {
      // A client that has groups of its own to take only has to take them.
      if (pending.length === 0 || results.length > 0 || told.has(submission)) continue
      told.add(submission)
      tell(
        `"${submission.id}" is not rolled: the finished groups that may wait (--results) are there, and nobody takes them: ${names.join(', ')}. POST /v1/rollouts/ID/acknowledge {"cursor": N} lets go of them`,
      )
    }
  }
}
