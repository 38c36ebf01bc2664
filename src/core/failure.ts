import type { Call } from './call.ts'
import { placeInUsersCode } from './code-place.ts'

/** The contracts whose implementations can fail. */
export const boundaries = [
  'policy',
  'tool',
  'environment',
  'user',
  'reward',
  'renderer',
  'condenser',
  'store',
] as const

/** The contract whose implementation failed. */
export type Boundary = (typeof boundaries)[number]

/** A failure that has been attributed to the boundary it crossed. */
export class Failure extends Error {
  override name = 'Failure'
  readonly boundary: Boundary

  constructor(boundary: Boundary, options: { readonly cause: unknown }) {
    const place = placeInUsersCode(options.cause)
    super(`${describeCause(options.cause)}${place ? ` (${place})` : ''}`, options)
    this.boundary = boundary
  }
}

/** Runs `work`; whatever it throws is attributed to `boundary`, once, unless the caller itself stopped it. */
export async function across<T>(
  boundary: Boundary,
  { signal }: Call,
  work: () => Promise<T> | T,
): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw attributed(boundary, signal, cause)
  }
}

/** The same for work that is done at once: nothing is awaited. */
export function acrossNow<T>(boundary: Boundary, { signal }: Call, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw attributed(boundary, signal, cause)
  }
}

function attributed(boundary: Boundary, signal: AbortSignal, cause: unknown): unknown {
  if (cause instanceof Failure || (signal.aborted && cause === signal.reason)) return cause
  return new Failure(boundary, { cause })
}

/** One sentence about anything that was thrown. */
export function describeCause(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  const name = cause.name === 'Error' ? '' : `${cause.name}: `
  return `${name}${cause.message || 'no message'}`
}
