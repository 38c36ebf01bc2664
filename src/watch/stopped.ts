import { commandLine } from '../names/program-name.ts'

/** What a run can be stopped by before its tasks are over. */
export type StopKind = 'tokens' | 'seconds' | 'trajectories' | 'money' | 'keep' | 'refill'

/** How a run that was stopped so goes on: the limit that it reached must be a larger one. */
export function resumeLine(run: string, kind: StopKind): string {
  const resume = commandLine('resume', run)
  switch (kind) {
    // Every stretch of a run has its own seconds.
    case 'seconds':
      return resume
    case 'keep':
    case 'refill':
      return `${resume} --${kind} MORE`
    case 'tokens':
    case 'trajectories':
    case 'money':
      return `${resume} --budget '{"${kind}":MORE}'`
    default:
      return kind satisfies never
  }
}

/** A run that stops in order, as it was told to: what is left goes on when it is resumed. */
export class RunStoppedError extends Error {
  override name = 'RunStoppedError'
  readonly kind: StopKind

  constructor(kind: StopKind, message: string) {
    super(message)
    this.kind = kind
  }
}
