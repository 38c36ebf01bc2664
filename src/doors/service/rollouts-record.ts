import { readFile, truncate } from 'node:fs/promises'
import { appenderTo } from '../../base/core/files/appender.ts'
import { StoreError } from '../../base/core/files/store-error.ts'
import { withoutSecretsInJson } from '../../base/core/process/secrets.ts'
import { replaceFile } from '../../run/store/run-folder.ts'
import { digestOf } from './digest.ts'
import { parse, type Submission, type SubmissionStatus, submission } from './rollouts-api.ts'
import { type GroupPlace, placeOf } from './rollouts-entry.ts'
import { unnamed } from './trainers.ts'

/** A submission as a service left it. */
export interface LeftSubmission {
  readonly submission: Submission
  readonly digest: string
  /** How many groups it makes. */
  readonly groups: number
  /** The groups that are finished, by their cursor. */
  readonly finished: readonly GroupPlace[]
  /** The last group that the client has. */
  readonly taken: number
  readonly state: SubmissionStatus['state']
  /** Why it failed. */
  readonly reason?: string
}

/** What is kept of a completely taken submission: its name, how it ended, and a digest of what it asked for. */
export interface DoneSubmission {
  readonly digest: string
  readonly status: SubmissionStatus
}

type Line =
  // Earlier services wrote no digest, and made one group of every task.
  | {
      readonly kind: 'submitted'
      readonly submission: Submission
      readonly digest?: string
      readonly groups?: number
    }
  | ({ readonly kind: 'finished'; readonly id: string } & GroupPlace)
  | { readonly kind: 'taken'; readonly id: string; readonly cursor: number }
  | {
      readonly kind: 'ended'
      readonly id: string
      readonly state: SubmissionStatus['state']
      readonly reason?: string
    }
  | ({ readonly kind: 'done' } & DoneSubmission)
  | ({ readonly kind: 'weights' } & AnnouncedWeights)

/** The last version that a trainer announced, and where the weights are served, if that was. */
export interface AnnouncedWeights {
  readonly version: number
  readonly policy?: string | undefined
  readonly trainer?: string | undefined
}

/** The submissions of a service and their progress, so that a killed service can go on. */
export interface RolloutsRecord {
  /** Submissions of the service before, of which something is left to roll or to take. */
  readonly left: readonly LeftSubmission[]
  /** Its other submissions, whose names stay taken. */
  readonly done: readonly DoneSubmission[]
  /** Of every trainer. */
  readonly weights?: readonly AnnouncedWeights[]
  write(line: Line): Promise<void>
  /** Writes what says nothing, to find out whether there is room. */
  probe(): Promise<void>
}

/**
 * Opens the record in a file. A torn last line, as a crash leaves it, is cut off; of submissions that
 * were completely taken one line each is left.
 */
export async function openRolloutsRecord(path: string): Promise<RolloutsRecord> {
  const known: Known = { left: new Map(), done: new Map(), weights: new Map() }
  for (const [index, line] of (await readLines(path)).entries()) {
    if (line === '') continue
    try {
      follow(known, parseLine(line))
    } catch (cause) {
      const { message } = cause as Error
      throw new Error(`${path}:${index + 1} is damaged: ${message}`, { cause })
    }
  }
  const taken = [...known.left.values()].filter(isTaken)
  for (const each of taken) {
    known.left.delete(each.submission.id)
    known.done.set(each.submission.id, doneOf(each))
  }
  if (taken.length > 0) await replaceFile(path, linesOf(known).map(writtenLine).join(''))
  const file = appenderTo(path)
  return {
    left: [...known.left.values()],
    done: [...known.done.values()],
    weights: [...known.weights.values()],
    async write(line) {
      await file.append(withoutSecretsInJson(writtenLine(line)))
    },
    async probe() {
      await file.append('\n')
    },
  }
}

/**
 * Reads a line. Earlier services joined a line to the half of one that a full disk had left, which was never
 * acknowledged: what is whole at the end counts.
 */
function parseLine(line: string): Line {
  try {
    return JSON.parse(line) as Line
  } catch (cause) {
    for (const { index } of [...line.matchAll(/\{"kind":"/g)].reverse()) {
      const last = index > 0 ? parsed(line.slice(index)) : undefined
      if (last !== undefined) return last as Line
    }
    throw cause
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

interface Progress extends LeftSubmission {
  readonly finished: GroupPlace[]
  taken: number
  state: SubmissionStatus['state']
  reason?: string
}

interface Known {
  readonly left: Map<string, Progress>
  readonly done: Map<string, DoneSubmission>
  /** By trainer. */
  readonly weights: Map<string, AnnouncedWeights>
}

async function readLines(path: string): Promise<readonly string[]> {
  const text = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return ''
    throw new StoreError(path, { cause })
  })
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  if (whole.length < text.length) await truncate(path, Buffer.byteLength(whole))
  return whole.split('\n')
}

function follow(all: Known, line: Line): void {
  const { left, done } = all
  if (line.kind === 'weights') {
    const { kind: _, ...weights } = line
    keepWeights(all, weights)
    return
  }
  if (line.kind === 'done') {
    const { digest, status } = line
    done.set(status.id, { digest, status })
    return
  }
  if (line.kind === 'submitted') {
    const checked = parse(submission, line.submission)
    const { digest = digestOf(checked), groups = checked.tasks.length } = line
    const known = { submission: checked, digest, groups }
    const { version, trainer } = checked
    if (version !== undefined) keepWeights(all, { version, ...(trainer && { trainer }) })
    done.delete(checked.id)
    left.set(checked.id, { ...known, finished: [], taken: 0, state: 'running' })
    return
  }
  const known = left.get(line.id)
  if (!known) return
  if (line.kind === 'finished') known.finished.push(placeOf(line))
  else if (line.kind === 'taken') known.taken = Math.max(known.taken, line.cursor)
  else {
    known.state = line.state
    if (line.reason !== undefined) known.reason = line.reason
  }
}

/** The policy of an announcement before stays, if a new one names none. */
function keepWeights({ weights }: Known, announced: AnnouncedWeights): void {
  const { trainer = unnamed } = announced
  weights.set(trainer, { ...weights.get(trainer), ...announced })
}

function isTaken({ state, finished, taken }: LeftSubmission): boolean {
  return state !== 'running' && taken >= finished.length
}

function doneOf(left: LeftSubmission): DoneSubmission {
  const { submission, digest, groups, finished, taken, state, reason } = left
  return {
    digest,
    status: {
      id: submission.id,
      state,
      groups,
      finished: finished.length,
      taken,
      ...(reason !== undefined && { reason }),
    },
  }
}

function linesOf({ left, done, weights }: Known): readonly Line[] {
  return [
    ...[...done.values()].map(each => ({ kind: 'done', ...each }) as const),
    ...[...left.values()].flatMap(progressLines),
    ...[...weights.values()].map(each => ({ kind: 'weights', ...each }) as const),
  ]
}

function progressLines(left: LeftSubmission): readonly Line[] {
  const { submission, digest, groups, finished, taken, state, reason } = left
  const { id } = submission
  return [
    { kind: 'submitted', submission, digest, groups },
    ...finished.map(place => ({ kind: 'finished', id, ...place }) as const),
    { kind: 'taken', id, cursor: taken },
    ...(state === 'running' ? [] : [endedLine(id, state, reason)]),
  ]
}

/** The line that says how a submission ended. */
export function endedLine(
  id: string,
  state: SubmissionStatus['state'],
  reason: string | undefined,
): Line {
  return { kind: 'ended', id, state, ...(reason !== undefined && { reason }) }
}

function writtenLine(line: Line): string {
  return `${JSON.stringify(line)}\n`
}
