import { Transform } from 'node:stream'
import { finished as ended } from 'node:stream/promises'
import { describeCause } from '../../base/core/failure.ts'
import type { StartedCommand } from '../../worlds/sandboxes/run.ts'
import type { Reply } from '../door/reply.ts'

/** Seconds after which a client hears that a silent command still runs. */
const pulseSeconds = 30

/** Tells a client of a command that it talks to, a line of JSON each: its id, what it prints, and how it ended. */
export async function tellTalk(
  { output, finished }: StartedCommand,
  id: string,
  { raw }: Reply,
): Promise<void> {
  const say = (message: object): void => void raw.write(`${JSON.stringify(message)}\n`)
  const lines = new Transform({
    transform: (part: Buffer, _encoding, done) =>
      done(null, `${JSON.stringify({ printed: part.toString('base64') })}\n`),
  })
  const pulse = setInterval(() => raw.write('\n'), 1000 * pulseSeconds)
  say({ id })
  output.pipe(lines).pipe(raw, { end: false })
  try {
    const how = await finished
    lines.end()
    await ended(lines)
    say({ finished: how })
  } catch (cause) {
    say({ error: describeCause(cause) })
  } finally {
    clearInterval(pulse)
    raw.end()
  }
}
