import { commandLine } from '../../base/core/names/program-name.ts'
import type { Settings } from '../settings/settings.ts'

/** What can stop a run before its tasks are done. */
export type StopKind = 'tokens' | 'seconds' | 'trajectories' | 'money' | 'keep' | 'refill'

/** The command that resumes a stopped run, with a larger limit; its other limits stay as they are. */
export function resumeLine(run: string, kind: StopKind, budget: Settings['budget']): string {
  const resume = commandLine('resume', run)
  switch (kind) {
    // Seconds count anew after each resume, so the limit need not be larger.
    case 'seconds':
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

/** A planned stop of a run, which can be resumed. */
export class RunStoppedError extends Error {
  override name = 'RunStoppedError'
  readonly kind: StopKind

  constructor(kind: StopKind, message: string) {
    super(message)
    this.kind = kind
  }
}
