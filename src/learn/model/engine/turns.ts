import type { Plan } from './plan.ts'
import type { Sequence } from './sequence.ts'
import { smallWeights } from './step.ts'

/** Sequences per thread that take their turn together, whole tiles: enough that weights are used often. */
const turnRows = 18

/** Steps of a turn: what it fetches from memory at its start is used as often. */
const turnSteps = 16

/**
 * Chooses whom a step works for. Every token reads all keys and values of its sequence, and those of
 * many sequences do not fit into the processor's cache: so a few sequences go on for some steps, and
 * then the next ones. What is sampled does not depend on it.
 */
export class Turns {
  readonly #rows: number
  #steps = 0

  constructor({ weightBytes }: Plan) {
    this.#rows = weightBytes > smallWeights ? Number.POSITIVE_INFINITY : turnRows
  }

  /**
   * The sequences of the next step, of those that run in the order of their turns, which this changes.
   * Sequences whose prompts are not computed yet are always among them: others may wait for these.
   */
  next(running: Map<number, Sequence>, threads: number): Sequence[] {
    const rows = this.#rows * threads
    if (running.size < 1.5 * rows) return [...running.values()]
    if (++this.#steps % turnSteps === 0) passOn(running, rows)
    let free = rows
    return [...running.values()].filter(sequence => isFresh(sequence) || free-- > 0)
  }
}

function isFresh({ computed, order }: Sequence): boolean {
  return computed < order.prompt.length
}

/** Puts the first ones behind the last. */
function passOn(running: Map<number, Sequence>, count: number): void {
  for (const [id, sequence] of [...running].slice(0, count)) {
    running.delete(id)
    running.set(id, sequence)
  }
}
