/** The known word nearest to a misspelt one, if any is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map(candidate => ({
      candidate,
      distance: editDistance(word.toLowerCase(), candidate.toLowerCase()),
    }))
    .sort((a, b) => a.distance - b.distance)[0]
  const most = Math.min(word.length - 1, Math.max(2, Math.floor(word.length / 3)))
  return ranked && ranked.distance <= most ? ranked.candidate : undefined
}

/** A hint for an error about a misspelt word: a question with the nearest known one, or ''. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = nearest(word, known)
  return near === undefined ? '' : ` Did you mean "${near}"?`
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}
