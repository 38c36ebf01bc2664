import type { TrajectoryEvent } from '../core/trajectory.ts'
import type { Known } from './known.ts'

/** Whoever asks in an attempt: its conversations, and what they took. */
export interface Seat {
  readonly name: string
  readonly known: Known
  readonly tally: Tally
}

/** What was counted while a seat's requests were answered. */
export interface Tally {
  sampled: number
  prompted: number
  cached: number
  seconds: number
  isReencoded: boolean
  readonly servers: Set<string>
  readonly events: Omit<TrajectoryEvent, 'turn'>[]
  /** How often each prompt was drawn from, by the name of its tokens. */
  readonly draws: Map<string, number>
}

/** A tally of nothing. */
export function openTally(): Tally {
  return {
    sampled: 0,
    prompted: 0,
    cached: 0,
    seconds: 0,
    isReencoded: false,
    servers: new Set(),
    events: [],
    draws: new Map(),
  }
}
