/** What a run can be stopped by before its tasks are over. */
export type StopKind = 'tokens' | 'seconds' | 'trajectories' | 'money' | 'keep' | 'refill'

/** A run that stops in order, as it was told to: what is left goes on when it is resumed. */
export class RunStoppedError extends Error {
  override name = 'RunStoppedError'
  readonly kind: StopKind

  constructor(kind: StopKind, message: string) {
    super(message)
    this.kind = kind
  }
}
