import { appendFile, readFile, truncate } from 'node:fs/promises'
import { withoutSecrets } from '../core/process/secrets.ts'
import { StoreError } from '../store/store-error.ts'
import { type Submission, type SubmissionStatus, submission } from './rollouts-api.ts'

/** A submission as a service left it. */
export interface LeftSubmission {
  readonly submission: Submission
  /** The places of the tasks whose groups are finished, by their cursor. */
  readonly finished: readonly number[]
  /** The last group that the client has. */
  readonly taken: number
  readonly state: SubmissionStatus['state']
}

type Line =
  | { readonly kind: 'submitted'; readonly submission: Submission }
  | { readonly kind: 'finished'; readonly id: string; readonly index: number }
  | { readonly kind: 'taken'; readonly id: string; readonly cursor: number }
  | { readonly kind: 'ended'; readonly id: string; readonly state: SubmissionStatus['state'] }

/** The submissions of a service and their progress, so that a killed service can go on. */
export interface RolloutsRecord {
  /** Submissions of the service before, of which something is left to roll or to take. */
  readonly left: readonly LeftSubmission[]
  write(line: Line): Promise<void>
}

/** Opens the record in a file; a torn last line, as a crash leaves it, is cut off. */
export async function openRolloutsRecord(path: string): Promise<RolloutsRecord> {
  const text = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return ''
    throw new StoreError(path, { cause })
  })
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  if (whole.length < text.length) await truncate(path, Buffer.byteLength(whole))
  const left = new Map<string, { -readonly [Name in keyof LeftSubmission]: LeftSubmission[Name] }>()
  for (const line of whole.split('\n')) {
    if (line !== '') follow(left, JSON.parse(line) as Line)
  }
  let last: Promise<unknown> = Promise.resolve()
  return {
    left: [...left.values()].filter(
      ({ state, finished, taken }) => state === 'running' || taken < finished.length,
    ),
    async write(line) {
      const written = last.then(() => appendFile(path, `${withoutSecrets(JSON.stringify(line))}\n`))
      last = written.catch(() => undefined)
      await written
    },
  }
}

function follow(
  left: Map<string, { -readonly [Name in keyof LeftSubmission]: LeftSubmission[Name] }>,
  line: Line,
): void {
  if (line.kind === 'submitted') {
    const checked = submission.parse(line.submission)
    left.set(checked.id, { submission: checked, finished: [], taken: 0, state: 'running' })
    return
  }
  const known = left.get(line.id)
  if (!known) return
  if (line.kind === 'finished') known.finished = [...known.finished, line.index]
  else if (line.kind === 'taken') known.taken = Math.max(known.taken, line.cursor)
  else known.state = line.state
}
