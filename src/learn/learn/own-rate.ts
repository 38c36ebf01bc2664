import type { EmbeddedModel, ModelWeights } from '../model/model.ts'

/** How far a step of training should move the policy, in nats per token, and how far it may. */
const [aim, limit] = [0.002, 0.01]

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

/** How often a step is shortened at most: each time to less than half. */
const shortenings = 6

/**
 * Shortens the step from some weights to those of now until it moves the policy no further than it may: one step too
 * far ends what was learned before it, and no later one finds back. Gives how far the whole step went, and the last
 * measurement.
 */
export async function shortenStep<Change extends { readonly metrics: { readonly kl?: number } }>(
  model: Pick<EmbeddedModel, 'weights' | 'take'>,
  from: ModelWeights,
  measure: () => Promise<Change>,
): Promise<{ readonly whole: number; readonly change: Change }> {
  let change = await measure()
  const whole = change.metrics.kl ?? 0
  for (let times = 0; times < shortenings && (change.metrics.kl ?? 0) > limit; times++) {
    // A change of the policy grows with the square of the step's length.
    const share = Math.min(0.45, Math.sqrt(aim / change.metrics.kl!))
    const { tensors, version } = await model.weights()
    const shorter = tensors.map((tensor, index) => {
      const start = from.tensors[index]!.data
      return {
        ...tensor,
        data: tensor.data.map((end, at) => start[at]! + share * (end - start[at]!)),
      }
    })
    await model.take({ tensors: shorter, version })
    change = await measure()
  }
  return { whole, change }
}
