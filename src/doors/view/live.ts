import { setTimeout as wait } from 'node:timers/promises'
import type { Reply } from '../door/reply.ts'
import type { Library } from './library.ts'

const everyMilliseconds = 1000

/** Tells a page when the run it shows has grown, as server-sent events, until it goes away. */
export async function sendLive(library: Library, name: string, reply: Reply): Promise<void> {
  const run = await library.open(name)
  const { raw } = reply
  const gone = new AbortController()
  raw.once('close', () => gone.abort())
  reply.begin('text/event-stream; charset=utf-8')
  let last = ''
  while (!gone.signal.aborted) {
    await run.refresh().catch(() => undefined)
    const now = JSON.stringify({ version: run.version, status: run.entry.status })
    if (now !== last) raw.write(`data: ${now}\n\n`)
    last = now
    await wait(everyMilliseconds, undefined, { signal: gone.signal }).catch(() => undefined)
  }
  raw.end()
}
