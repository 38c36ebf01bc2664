import { RequestProblem } from '../../engine/capture/dialects/problem.ts'
import type { GatewayAttempt } from './attempts.ts'
import type { Gateway } from './gateway.ts'

/** Names end up in files, lists and paths: they are short and of plain characters. */
export function checkName<Name extends string>(name: Name): Name {
  if (typeof name === 'string' && /^[\w.:@~ -]{1,200}$/.test(name)) return name
  throw new RequestProblem(
    'invalid',
    'a name has 1 to 200 letters, digits, spaces and . : @ ~ - _ and nothing else',
  )
}

/** An attempt by its name. */
export function findAttempt({ attempts }: Gateway, id: string): GatewayAttempt {
  const attempt = attempts.get(id)
  if (attempt) return attempt
  throw new RequestProblem('not-found', `there is no attempt called ${JSON.stringify(id)}`)
}
