import type { IncomingHttpHeaders } from 'node:http'
import { RequestProblem } from '../../engine/capture/dialects/problem.ts'
import type { RouteOptions } from '../door/door.ts'
import { bearerOf, isSameSecret } from '../door/token.ts'
import type { Gateway } from './gateway.ts'

/** What a request wants to do, each with a secret of its own. */
export type Area = 'model' | 'control' | 'read'

/**
 * The secrets of a gateway. Without any, everybody who reaches it may use it, which is this machine
 * alone. A token of an attempt is always good for asking the model in that attempt.
 */
export interface Secrets {
  /** Opens and closes attempts, posts rewards. */
  readonly control?: string
  /** Lets a client ask the model in any attempt it names. @default only tokens of attempts */
  readonly model?: string
  /** Reads attempts, groups and traces. @default the control secret */
  readonly read?: string
}

/** Where clients carry their key: OpenAI's, Anthropic's, Google's. */
export function credentialOf(headers: IncomingHttpHeaders): string | undefined {
  const bearer = bearerOf(headers)
  if (bearer !== undefined) return bearer
  for (const name of ['x-api-key', 'x-goog-api-key']) {
    const value = headers[name]
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}

/** Throws if the given secret does not allow this. */
export function checkSecret(area: Area, secrets: Secrets, given: string | undefined): void {
  const needed = neededFor(area, secrets)
  if (needed === undefined) return
  if (given !== undefined && needed.some(secret => isSameSecret(given, secret))) return
  throw new RequestProblem('unauthorized', messages[area])
}

const messages: Readonly<Record<Area, string>> = {
  model: 'send the token of the attempt as the API key',
  control: 'send the control token of the gateway as Authorization: Bearer …',
  read: 'send the read or the control token of the gateway as Authorization: Bearer …',
}

/** The secrets that allow an area; undefined if it is open to everybody. */
function neededFor(area: Area, { control, model, read }: Secrets): readonly string[] | undefined {
  const given = (secrets: readonly (string | undefined)[]): readonly string[] =>
    secrets.filter(secret => secret !== undefined)
  if (control === undefined && model === undefined && read === undefined) return undefined
  if (area === 'model')
    return control === undefined && model === undefined ? undefined : given([model])
  if (area === 'control') return control === undefined ? undefined : given([control])
  return read === undefined && control === undefined ? undefined : given([read, control])
}

/** Makes the route options that check the secret of an area. */
export type Guarded = (area: Exclude<Area, 'model'>) => RouteOptions

/**
 * Makes route options that ask for a gateway's secrets; with them the door itself asks for no token.
 * The token of an attempt opens none of these routes, not even if they are open to everybody.
 */
export function guardWith({ secrets, attempts }: Gateway, options: RouteOptions = {}): Guarded {
  return area => ({
    ...options,
    admit({ headers }) {
      const given = credentialOf(headers)
      if (given !== undefined && attempts.byToken(given)) {
        throw new RequestProblem(
          'forbidden',
          `${messages[area]}; that of an attempt is not for this`,
        )
      }
      checkSecret(area, secrets, given)
    },
  })
}
