/** How far a step of training should move the policy, in nats per token. */
const aim = Number(process.env.AIM ?? 0.01)

/** What a rate that finds itself begins with, and never leaves. */
const first = 4e-4
const [least, most] = [2e-5, 4e-3]

/** How much the rate changes at most from one step to the next. */
const factor = 1.4

/** A learning rate that follows how far each step moves the policy. */
export function openOwnRate() {
  let rate = first
  return {
    now: () => rate,
    set(known: number): void {
      rate = known
    },
    /** A step went this far. */
    learn(kl: number): void {
      const wanted = kl > 2 * aim ? rate / factor : kl < aim / 2 ? rate * factor : rate
      rate = Math.min(most, Math.max(least, wanted))
    },
  }
}
