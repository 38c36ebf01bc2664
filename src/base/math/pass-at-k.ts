/**
 * pass@k, the chance that at least one of k attempts succeeds, estimated without bias from
 * `successes` among `trials`: 1 − C(n−c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374).
 */
export function passAtK(successes: number, trials: number, k: number): number {
  checkCounts(successes, trials, k)
  return 1 - chosenFrom(trials - successes, trials, k)
}

/**
 * pass^k, the chance that all of k attempts succeed: C(c, k) / C(n, k)
 * (Yao et al. 2024, tau-bench, arXiv 2406.12045).
 */
export function passHatK(successes: number, trials: number, k: number): number {
  checkCounts(successes, trials, k)
  return chosenFrom(successes, trials, k)
}

/** pass@k of attempts that succeed with these chances, such as trees of which some endings succeed. */
export function passAtKOf(chances: readonly number[], k: number): number {
  return (
    1 -
    chosenProduct(
      chances.map(chance => 1 - chance),
      k,
    )
  )
}

/** pass^k of attempts that succeed with these chances. */
export function passHatKOf(chances: readonly number[], k: number): number {
  return chosenProduct(chances, k)
}

/** The mean, over all choices of k of them, of their product; with 0 and 1 alone C(c, k) / C(n, k). */
function chosenProduct(chances: readonly number[], k: number): number {
  checkCounts(0, chances.length, k)
  const means = new Float64Array(k + 1)
  means[0] = 1
  chances.forEach((chance, index) => {
    const seen = index + 1
    for (let size = Math.min(k, seen); size >= 1; size--) {
      const without = ((seen - size) / seen) * means[size]!
      means[size] = without + (size / seen) * chance * means[size - 1]!
    }
  })
  return means[k]!
}

/** C(part, k) / C(whole, k) as a product of k ratios, so that nothing overflows. */
function chosenFrom(part: number, whole: number, k: number): number {
  let share = 1
  for (let index = 0; index < k; index++) share *= Math.max(0, part - index) / (whole - index)
  return share
}

function checkCounts(successes: number, trials: number, k: number): void {
  const counts = [successes, trials, k]
  if (!counts.every(Number.isInteger) || successes < 0 || successes > trials) {
    throw new RangeError(`${successes} successes in ${trials} trials is not a count.`)
  }
  if (k < 1 || k > trials) {
    throw new RangeError(`k must lie between 1 and the ${trials} trials, got ${k}.`)
  }
}
