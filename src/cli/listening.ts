import { once } from 'node:events'
import { createServer } from 'node:net'
import { MisuseError } from './command.ts'

/** Throws where a port is taken: the service listens last, when a folder has been made for it. */
export async function tryPort(port: number, host: string): Promise<void> {
  const probe = createServer().listen(port, host)
  await once(probe, 'listening')
  probe.close()
  await once(probe, 'close')
}

/** A flag that takes a whole number, as an option of that name; nothing where it was not given. */
export function counted<Name extends string>(
  name: Name,
  text: string | undefined,
): { [Key in Name]?: number } {
  if (text === undefined) return {}
  if (/^\d{1,9}$/.test(text)) return { [name]: Number(text) } as { [Key in Name]?: number }
  throw new MisuseError(`--${name} takes a whole number, not "${text}"`)
}
