/** What everything that waits is given: the signal that stops it. */
export interface Call {
  readonly signal: AbortSignal
}
