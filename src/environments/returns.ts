import { Failure } from '../core/failure.ts'
import type { RewardFunction } from '../core/reward.ts'

/** What a world that rewards its own steps reports. */
export interface ReturnReport {
  /** The sum of the rewards of its steps. */
  readonly return: number
  /** How many steps were given one. */
  readonly rewarded: number
  /** Whether the world itself came to its end. */
  readonly done: boolean
}

/** Keeps what a world elsewhere says its steps are worth, and whether it is over. */
export class Returns {
  #sum = 0
  #rewarded = 0
  #ofTurn: number | undefined
  isDone = false

  /** Takes the reward of a step; throws where it is no number that can be summed. */
  add(reward: number | undefined): void {
    if (reward === undefined) return
    if (!Number.isFinite(reward)) {
      throw new Failure('environment', { cause: new Error(`a step was rewarded with ${reward}`) })
    }
    this.#sum += reward
    this.#rewarded++
    this.#ofTurn = (this.#ofTurn ?? 0) + reward
  }

  /** What the turn was worth; nothing where no step of it was rewarded. Asked once per turn. */
  takeTurn(): number | undefined {
    const reward = this.#ofTurn
    this.#ofTurn = undefined
    return reward
  }

  /** `last` is what the world says an attempt is worth that was cut off here. */
  report(last?: number): ReturnReport {
    const rewarded = this.#rewarded + (last === undefined ? 0 : 1)
    return { return: this.#sum + (last ?? 0), rewarded, done: this.isDone }
  }
}

/**
 * The return of a world that rewards its own steps. An attempt that was cut off before any reward
 * came earned none; a world that came to its end without ever giving one has not been scored.
 */
export const returnReward: RewardFunction<unknown, ReturnReport> = ({ report }) => {
  if (report.rewarded > 0 || !report.done) return report.return
  const text = 'no reward: the world came to its end without giving one; name one with --reward'
  throw new Failure('reward', { cause: new Error(text) })
}
