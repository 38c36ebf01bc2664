import { hostname } from 'node:os'
import type { WorkerStatus } from '../../watch/events.ts'
import type { Piece } from '../elsewhere.ts'
import type { RollThread } from './thread.ts'

/** A thread's place: when the thread dies, another one takes it. */
export interface Place<Asked = unknown> {
  readonly index: number
  readonly width: number
  /** When its first thread was started. */
  since: number
  readonly held: Set<Asked>
  /** Attempts of what it holds that are not made yet. */
  load: number
  /** Undefined until there is work for one. */
  thread: RollThread | undefined
  isReady: boolean
  /** Whether it makes one attempt alone, or is about to. */
  isAlone: boolean
  done: number
  sampled: number
  /** Attempts that it is sent to go on with, besides those that it makes. */
  spare: number
  /** Whether it is sent more until it has as many as it may: a few at a time, since each message wakes it. */
  isFilling: boolean
  /** What it had done when it was last looked at. */
  seen: number
}

/** A thread is sent this share of what it made between two looks: for so long it need not hear from here. */
const sharedAhead = 1 / 6
const mostSpare = 128

/**
 * Attempts that a thread is sent besides those that it makes, so that it goes on at once when one ends: a
 * few, and more where it makes thousands in a second. A power of two, so that it seldom changes.
 */
export function spareOf(width: number, done: number): number {
  const ahead = 2 ** Math.ceil(Math.log2(Math.max(1, done * sharedAhead)))
  return Math.max(1, Math.ceil(width / 4), Math.min(mostSpare, ahead))
}

/** A place without a thread yet. */
export function makePlace<Asked>(width: number, index: number): Place<Asked> {
  return {
    index,
    width,
    since: 0,
    held: new Set(),
    load: 0,
    thread: undefined,
    isReady: false,
    isAlone: false,
    done: 0,
    sampled: 0,
    spare: spareOf(width, 0),
    isFilling: true,
    seen: 0,
  }
}

export const loadOf = ({ load, width }: Place): number => load / width
export const byLoad = (a: Place, b: Place): number => a.load - b.load
export const isBusyAlone = ({ isAlone, held, isReady }: Place): boolean =>
  isAlone && (held.size > 0 || !isReady)

/** How many attempts are asked for, counted as far as is needed. */
export function attemptsIn(waiting: readonly { readonly left: number }[], needed: number): number {
  let attempts = 0
  for (const { left } of waiting) {
    if (attempts >= needed) break
    attempts += left
  }
  return attempts
}

/** Counts attempts that a thread has made, and what was sampled for them. */
export function countMade(place: Place, attempts: number, piece: Piece | undefined): void {
  place.done += attempts
  place.sampled += piece?.sampled ?? 0
}

export function statusOf(place: Place): WorkerStatus {
  const { index, width, load, done, sampled, since } = place
  return {
    id: `thread-${index + 1}`,
    host: hostname(),
    process: process.pid,
    thread: index + 1,
    concurrency: width,
    running: Math.min(width, load),
    done,
    refused: 0,
    sampled,
    leaving: false,
    seconds: (performance.now() - since) / 1000,
    silent: 0,
    refusal: null,
  }
}
