import { commandLine } from '../../base/core/names/program-name.ts'
import type { Settings } from '../settings/settings.ts'

/** What can stop a run before its tasks are done. */
export type StopKind =
  | 'tokens'
  | 'seconds'
  | 'trajectories'
  | 'money'
  | 'keep'
  | 'refill'
  | 'outage'
  | 'basis'

/** The command that resumes a stopped run, with a larger limit; its other limits stay as they are. */
export function resumeLine(run: string, kind: StopKind, budget: Settings['budget']): string {
  const resume = commandLine('resume', run)
  switch (kind) {
    // Seconds count anew after each resume, so the limit need not be larger.
    case 'seconds':
    // A server that was away, or that gives other numbers than it did, is looked at anew.
    case 'outage':
    case 'basis':
      return resume
    case 'keep':
    case 'refill':
      return `${resume} --${kind} MORE`
    case 'tokens':
    case 'trajectories':
    case 'money':
      return `${resume} --budget '${JSON.stringify({ ...budget, [kind]: 'MORE' }).replace('"MORE"', 'MORE')}'`
    default:
      return kind satisfies never
  }
}

/** A stop of a run that can be resumed: planned by a limit, or for want of a server. */
export class RunStoppedError extends Error {
  override name = 'RunStoppedError'
  readonly kind: StopKind
  /** Whether it is an ordinary end; otherwise something has to be put right first. */
  readonly isPlanned: boolean

  constructor(kind: StopKind, message: string) {
    super(message)
    this.kind = kind
    this.isPlanned = kind !== 'outage' && kind !== 'basis'
  }
}
