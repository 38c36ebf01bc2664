import type { Filter } from '../../base/core/group.ts'
import { type DropFrom, perTrajectory, turnsOf } from './filter.ts'
import { hesitation, repetition } from './repetition.ts'

/** When a policy counts as looping. */
export interface DeadLoopOptions {
  /** How often in a row one call with one input is a loop. @default 3 */
  readonly calls?: number
  readonly from?: DropFrom
}

/** Drops trajectories that make the same call again and again. */
export function deadLoops({ calls = 3, from = 'loss' }: DeadLoopOptions = {}): Filter {
  return perTrajectory('dead-loops', from, trajectory => {
    let last = ''
    let count = 0
    for (const { tool, input } of trajectory.calls) {
      const key = JSON.stringify([tool, input])
      count = key === last ? count + 1 : 1
      last = key
      if (count >= calls) return `${tool} was called ${count} times in a row with the same input`
    }
    return undefined
  })
}

/** When a text repeats itself. */
export interface RepetitionOptions {
  /** Words, or characters of scripts without spaces, that make one n-gram. @default 8 */
  readonly length?: number
  /** Share of n-grams that stood before. @default 0.45 */
  readonly share?: number
  /** Markers of hesitation per 1,000 characters. @default 7 */
  readonly hesitation?: number
  readonly from?: DropFrom
}

/** Drops trajectories whose turns repeat themselves or hesitate without end. */
export function repetitions(options: RepetitionOptions = {}): Filter {
  const { length = 8, share = 0.45, hesitation: most = 7, from = 'loss' } = options
  return perTrajectory('repetition', from, trajectory => {
    for (const { number, text, message } of turnsOf(trajectory)) {
      const whole = `${message.reasoning_content ?? ''} ${text}`
      const repeated = repetition(whole, length)
      if (repeated > share)
        return `turn ${number} repeats ${percent(repeated)} of its ${length}-grams`
      const marks = hesitation(whole)
      if (marks > most)
        return `turn ${number} hesitates ${marks.toFixed(1)} times per 1,000 characters`
    }
    return undefined
  })
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
