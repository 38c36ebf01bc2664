import { checkNumber, checkWord } from './options.ts'

/** A number that changes with the training step. */
export interface Schedule {
  readonly kind: 'constant' | 'linear' | 'cosine'
  readonly from: number
  /** Reached at step `steps` and kept from there on; a constant schedule has none. */
  readonly to?: number
  readonly steps?: number
}

/** The schedule's number at a step, counted from 0. */
export function scheduleAt(schedule: Schedule, step: number): number {
  const { kind, from, to, steps } = schedule
  checkWord('A schedule', kind, ['constant', 'linear', 'cosine'])
  checkNumber('The step', step, { low: 0 })
  if (kind === 'constant') {
    if (to === undefined && steps === undefined) return from
    throw new TypeError(`A constant schedule has no end, got to ${to} and steps ${steps}.`)
  }
  if (to === undefined || steps === undefined) {
    throw new TypeError(`A ${kind} schedule needs "to" and "steps", got ${to} and ${steps}.`)
  }
  checkNumber('steps', steps, { low: Number.MIN_VALUE })
  const progress = Math.min(1, step / steps)
  const eased = kind === 'linear' ? progress : (1 - Math.cos(Math.PI * progress)) / 2
  return from + (to - from) * eased
}
