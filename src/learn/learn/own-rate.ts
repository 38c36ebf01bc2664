/** How far a step of training should move the policy, in nats per token. */
const aim = 0.002

/** Where a rate that finds itself begins, and the highest it takes. */
const [least, most] = [4e-4, 2e-3]

/** How much the rate changes from one step to the next; it falls faster than it rises. */
const [up, down] = [1.15, 1.5]

/**
 * A learning rate that follows how far each step moves the policy: it rises while steps hardly move it,
 * and falls at once after one that moved it far.
 */
export function makeOwnRate() {
  let rate: number = least
  return {
    now: () => rate,
    set(known: number): void {
      rate = known
    },
    /** A step went this far. */
    learn(kl: number): void {
      const wanted = kl > 2 * aim ? rate / down : kl < aim ? rate * up : rate
      rate = Math.min(most, Math.max(least, wanted))
    },
  }
}
