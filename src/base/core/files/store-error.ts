import { dirname } from 'node:path'
import { RunEndingError } from '../failure.ts'
import { commandLine } from '../names/program-name.ts'

/** What the system's error codes mean for a run, and what to do about them. */
const meanings: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full; make room',
  EDQUOT: 'the disk quota is used up; make room',
  EFBIG: 'the file-size limit is reached; raise it (ulimit -f)',
  EROFS: 'the file system is read-only; choose another --out',
  EACCES: 'permission is denied; choose another --out or change its permissions',
  EPERM: 'permission is denied; choose another --out or change its permissions',
  ENOTDIR: 'a part of the path is a file, not a folder; choose another --out',
  EIO: 'the disk reports an input/output error',
  EMFILE: 'too many files are open; raise the limit (ulimit -n)',
}

/** A run folder that could not be written. What was finished before is still there. */
export class StoreError extends RunEndingError {
  override name = 'StoreError'

  readonly path: string
  /** What is wrong, without what to do next. */
  readonly problem: string

  /** `next` says how to go on; `keeps` that `resume` does. */
  constructor(
    path: string,
    options: { readonly cause: unknown; readonly keeps?: boolean; readonly next?: string },
  ) {
    const { code, message } = options.cause as NodeJS.ErrnoException
    const meaning = code === undefined ? undefined : meanings[code]
    const reason = meaning ? `${meaning} (${code})` : message
    const resumed = `What is finished is kept: \`${commandLine('resume', dirname(path))}\` goes on from there`
    const { next = options.keeps ? resumed : undefined } = options
    const problem = `${path} cannot be written: ${reason}`
    super(next === undefined ? problem : `${problem}. ${next}`, options)
    this.path = path
    this.problem = problem
  }
}
