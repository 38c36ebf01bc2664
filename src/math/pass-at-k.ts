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
