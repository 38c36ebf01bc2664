import type { Entry } from './rollouts-entry.ts'

/**
 * Tells the operator of a submission that is not rolled because nobody takes what others have finished,
 * once each: the client of those may be gone for good.
 */
export function openStallTelling(
  tell: (line: string) => void,
): (stalled: Entry, all: Iterable<Entry>) => void {
  const told = new WeakSet<Entry>()
  return (stalled, all) => {
    // A client that has groups of its own to take only has to take them.
    if (stalled.results.length > 0 || told.has(stalled)) return
    told.add(stalled)
    const holding = [...all].filter(({ results }) => results.length > 0)
    const names = holding.map(({ submission: { id }, results }) => `${results.length} of "${id}"`)
    tell(
      `"${stalled.submission.id}" is not rolled: the finished groups that may wait (--results) are there, and nobody takes them: ${names.join(', ')}. POST /v1/rollouts/ID/acknowledge {"cursor": N} lets go of them`,
    )
  }
}
