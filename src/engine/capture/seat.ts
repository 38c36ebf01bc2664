import type { TrajectoryEvent } from '../../base/core/trajectory.ts'
import type { CaptureContext } from './contract.ts'
import { type Known, makeKnown } from './known.ts'
import { makeRoom, type Room } from './room.ts'
import { SentImages } from './sent-images.ts'

/** Whoever asks in an attempt: its conversations, and what they took. */
export interface Seat {
  readonly name: string
  /** What its requests are answered with: its player's renderer, if it has a player of its own. */
  readonly context: CaptureContext
  readonly known: Known
  readonly images: SentImages
  readonly tally: Tally
  /** What is left of its limits. */
  readonly room: Room
}

/** Opens a seat. */
export function makeSeat(name: string, context: CaptureContext): Seat {
  const renderer = context.seats?.get(name)?.renderer ?? context.renderer
  // The context is copied only for a seat with a renderer of its own: every attempt has seats.
  const own = renderer === context.renderer ? context : { ...context, renderer }
  const tally = makeTally()
  const note = (detail: string): void => void tally.events.push({ kind: 'images', detail })
  return {
    name,
    context: own,
    known: makeKnown(renderer),
    images: new SentImages(own, note),
    tally,
    room: makeRoom(context.limits),
  }
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

function makeTally(): Tally {
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
