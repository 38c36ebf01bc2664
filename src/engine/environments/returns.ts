import { Failure } from '../../base/core/failure.ts'
import type { RewardFunction } from '../../base/core/reward.ts'

/** What a world that rewards its own steps reports. */
export interface ReturnReport {
  /** The sum of the rewards of its steps. */
  readonly return: number
  /** How many steps were given one. */
  readonly rewarded: number
  /** Whether the world itself came to its end. */
  readonly done: boolean
}

/** Sums the step rewards of an outside world, and keeps whether it is over. */
export class Returns {
  #sum = 0
  #rewarded = 0
  #ofTurn: number | undefined
  isDone = false

  /** Adds the reward of a step; throws if it is not a finite number. */
  add(reward: number | undefined): void {
    if (reward === undefined) return
    if (!Number.isFinite(reward)) {
      throw new Failure('environment', { cause: new Error(`a step was rewarded with ${reward}`) })
    }
    this.#sum += reward
    this.#rewarded++
    this.#ofTurn = (this.#ofTurn ?? 0) + reward
  }

  /** The turn's reward; undefined if no step of it had one. Call once per turn: it resets the sum. */
  takeTurn(): number | undefined {
    const reward = this.#ofTurn
    this.#ofTurn = undefined
    return reward
  }

  /** `last` is the world's reward for an attempt that was cut off here. */
  report(last?: number): ReturnReport {
    const rewarded = this.#rewarded + (last === undefined ? 0 : 1)
    return { return: this.#sum + (last ?? 0), rewarded, done: this.isDone }
  }
}

/**
 * The return of a world that rewards its own steps. An attempt cut off before any reward earned 0; a
 * world that ended without ever giving one has not been scored, which is a failure.
 */
export const returnReward: RewardFunction<unknown, ReturnReport> = ({ report }) => {
  if (report.rewarded > 0 || !report.done) return report.return
  const text = 'no reward: the world came to its end without giving one; name one with --reward'
  throw new Failure('reward', { cause: new Error(text) })
}
