import type { ServerBack, Warned } from '../../watch/events.ts'

/** Tells of a server that is away, or back, once, however many threads wait for it. */
export function makeHearing(
  tell: (event: Warned | ServerBack) => void,
): (event: Warned | ServerBack) => void {
  const away = new Set<string>()
  return event => {
    const isBack = event.kind === 'server-back'
    const server = isBack ? event.server : event.message.slice(0, event.message.indexOf(' is away'))
    if (away.has(server) !== isBack) return
    if (isBack) away.delete(server)
    else away.add(server)
    tell(event)
  }
}
