import { once } from 'node:events'
import { createServer } from 'node:net'
import { isLoopback } from '../doors/door/address.ts'
import { type Invocation, MisuseError } from './command.ts'

/** Throws if the port is taken; called first, since the service listens only after its folder was made. */
export async function tryPort(port: number, host: string): Promise<void> {
  const probe = createServer().listen(port, host)
  await once(probe, 'listening')
  probe.close()
  await once(probe, 'close')
}

/** What whole-number flags are bounded by, besides nine digits; a day is less than a timer can wait. */
const bounds: Readonly<Record<string, readonly [least: number, most: number]>> = {
  port: [0, 65_535],
  threads: [1, 64],
  lease: [1, 86_400],
  grace: [0, 86_400],
}

/** A whole-number flag as an option of the same name; an empty object if it was not given. */
export function counted<Name extends string>(
  name: Name,
  text: string | undefined,
): { [Key in Name]?: number } {
  if (text === undefined) return {}
  const [least, most] = bounds[name] ?? [0, 999_999_999]
  const count = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (count >= least && count <= most) return { [name]: count } as { [Key in Name]?: number }
  const range = name in bounds ? ` from ${least} to ${most}` : ''
  throw new MisuseError(`--${name} takes a whole number${range}, not "${text}"`)
}

/** The flags of every command that serves others over HTTP. */
export const doorFlags = {
  host: {
    help: 'The address to listen on; another than this machine needs a token (default: 127.0.0.1)',
    argument: 'HOST',
  },
  'allow-host': {
    help: 'A name besides its address that clients may call it by; may be given several times',
    argument: 'NAME',
    isList: true,
  },
  'token-variable': {
    help: 'The environment variable that holds the token clients send (default: ESPALIER_TOKEN)',
    argument: 'NAME',
  },
} as const

/** The environment variable that holds the token of a door. */
export const tokenVariable = (own: Readonly<Record<string, string | undefined>>): string =>
  own['token-variable'] ?? 'ESPALIER_TOKEN'

/** What to put behind the URL of a door in an environment's name, if the door asks for a token. */
export function keyOption(own: Readonly<Record<string, string | undefined>>): string {
  const variable = tokenVariable(own)
  return process.env[variable] ? `,key-variable=${variable}` : ''
}

/** Where a command listens and who may enter, from its flags. */
export function readDoor(
  { own, lists }: Pick<Invocation, 'own' | 'lists'>,
  makeToken?: () => string,
): {
  readonly host: string
  readonly token?: string
  readonly allowedHosts: readonly string[]
} {
  const { host = '127.0.0.1' } = own
  const variable = tokenVariable(own)
  // An empty variable is not a token.
  const token = process.env[variable] || (isLoopback(host) ? undefined : makeToken?.())
  refuseOpenDoor(host, token, variable)
  return { host, ...(token && { token }), allowedHosts: lists['allow-host'] ?? [] }
}

/** Refuses to let others in without a token, and says where it belongs. */
export function refuseOpenDoor(host: string, token: string | undefined, variable: string): void {
  if (token !== undefined || isLoopback(host)) return
  throw new MisuseError(
    `--host ${host} lets others in, who need a token: put one into the variable ${variable}`,
  )
}
