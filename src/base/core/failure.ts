import type { Call } from './call.ts'

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

/** What ends a run and is no attempt's failure: its record cannot be written. */
export class RunEndingError extends Error {
  override name = 'RunEndingError'
}

/** Runs `work`; whatever it throws is attributed to `boundary`. */
export async function across<T>(
  boundary: Boundary,
  call: Call,
  work: () => Promise<T> | T,
): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw attributed(boundary, call, cause)
  }
}

/** Does synchronous work on behalf of a boundary: what it throws is attributed to that. */
export function acrossNow<T>(boundary: Boundary, call: Call, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw attributed(boundary, call, cause)
  }
}

/**
 * What was thrown, attributed to `boundary`, once, unless the caller itself stopped it. A record that cannot be
 * written is nobody's failure: it ends the run, which can go on when there is room.
 */
export function attributed(boundary: Boundary, { signal }: Call, cause: unknown): unknown {
  if (cause instanceof RunEndingError) return cause
  if (cause instanceof Failure || (signal.aborted && cause === signal.reason)) return cause
  return new Failure(boundary, { cause })
}

/** One sentence about anything that was thrown. */
export function describeCause(cause: unknown): string {
  if (!(cause instanceof Error)) return describeThrown(cause)
  const name = cause.name === 'Error' ? '' : `${cause.name}: `
  return `${name}${cause.message || messagesIn(cause) || 'no message'}`
}

/** A connection that failed at every address has its reasons inside, and no message. */
function messagesIn(cause: Error): string {
  return cause instanceof AggregateError ? cause.errors.map(describeCause).join('; ') : ''
}

/** Something thrown that is no error of this program: errors of others have a message as well. */
function describeThrown(cause: unknown): string {
  if (typeof cause !== 'object' || cause === null) return String(cause)
  const { message } = cause as { readonly message?: unknown }
  if (typeof message === 'string' && message !== '') return message
  const keys = Object.keys(cause).slice(0, 5).join(', ')
  return keys === '' ? 'an object without a message' : `an object with ${keys}`
}

/** A failure's message without numbers and ids, so that equal failures are counted together; its place keeps its column, an address its numbers. */
export function generalised(message: string): string {
  const isKept = /^\D/
  return message
    .replace(/https?:\/\/[^\s/]+|\/v\d+\b|\d+(?!\d*\)$)/g, found =>
      isKept.test(found) ? found : 'N',
    )
    .slice(0, 200)
}

/** The folders of this program's own code, as far as this file knows where it lies; bundles may hide it. */
const root = /^(.*\/)(?:src|dist)\//.exec(import.meta.url ?? '')?.[1] ?? 'file:///espalier/'
const homes = ['src/', 'dist/', 'packages/'].map(folder => root + folder)

/** How many stack lines are looked at: frames further up called us and did not fail. */
const depth = 30

/**
 * The file and line in which the user's own code threw an error: the first place of its stack outside
 * packages and the runtime. Nothing if our code threw it.
 */
function placeInUsersCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const lines = (error.stack ?? '').split('\n').filter(line => /^\s+at /.test(line))
  for (const line of lines.slice(0, depth)) {
    const place = placeOf(line)
    if (place === undefined) continue
    if (homes.some(home => toAddress(place.file).startsWith(home))) return undefined
    if (!/[\\/]node_modules[\\/]/.test(place.file)) return `${fromHere(place.file)}:${place.line}`
  }
  return undefined
}

/** `at name (file:line:column)` or `at file:line:column`; nothing for places without a file. */
function placeOf(line: string): { readonly file: string; readonly line: string } | undefined {
  const found = /(?:\(|at (?:async )?)((?:file:\/\/)?(?:\/|[A-Za-z]:[\\/]).*?):(\d+):\d+\)?$/.exec(
    line,
  )
  return found ? { file: found[1]!, line: found[2]! } : undefined
}

function toAddress(file: string): string {
  return file.startsWith('file://') ? file : `file://${file}`
}

/** A path as people write it: from the working folder if it lies in it. */
function fromHere(file: string): string {
  const path = decodeURIComponent(file.replace(/^file:\/\//, ''))
  // The viewer's page reads failures too, and a browser has no working folder.
  const { process } = globalThis as { process?: { cwd(): string } }
  const folder = `${process?.cwd() ?? ''}/`
  return path.startsWith(folder) ? path.slice(folder.length) : path
}
