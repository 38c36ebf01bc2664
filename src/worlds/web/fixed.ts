/** When every page was opened, for its own clock: Monday, 5 January 2026, 9 o'clock in UTC. */
const opened = Date.UTC(2026, 0, 5, 9)

/**
 * What every page runs first: its random numbers are a function of the attempt's seed, and its clock
 * begins at the same moment, so that a replay shows what was shown before.
 */
export function fixedPage(seed: number): string {
  return `(() => {
  let state = ${seed >>> 0}
  Math.random = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  const RealDate = Date
  const real = RealDate.now.bind(RealDate)
  const shift = ${opened} - real()
  const now = () => real() + shift
  Date = new Proxy(RealDate, {
    construct: (target, given, made) => Reflect.construct(target, given.length === 0 ? [now()] : given, made),
    apply: () => new RealDate(now()).toString(),
    get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
  })
})()`
}
