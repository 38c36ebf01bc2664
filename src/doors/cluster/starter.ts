/**
 * Aborts when the process that started this one is gone, if it gave this one a channel. Call it before
 * anything is waited for; that it was gone even earlier is noticed too.
 */
export function starterGone(): AbortSignal {
  const gone = new AbortController()
  const leave = (): void => gone.abort(new Error('the process that started this one has ended'))
  process.on('disconnect', leave)
  // Without a channel it is undefined, and there is nobody to wait for.
  if (process.connected === false) leave()
  return gone.signal
}
