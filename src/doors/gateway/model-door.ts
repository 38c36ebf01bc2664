import type { Duplex } from 'node:stream'
import { RequestProblem } from '../../engine/capture/dialects/problem.ts'
import type { ModelDoor, ServedAttempt } from '../../run/settings/offered.ts'
import { Door, everybody } from '../door/door.ts'
import type { Reply } from '../door/reply.ts'
import type { DoorRequest } from '../door/request.ts'
import { isSameSecret } from '../door/token.ts'
import { abortWhenGone } from './answer-http.ts'
import { credentialOf } from './secrets.ts'
import { problemTeller } from './tell-problems.ts'

/** Opens a door at which started agents ask the model, each on connections of its own and with the token of its attempt. */
export function openModelDoor(): ModelDoor {
  const served = new WeakMap<object, ServedAttempt>()
  const door = new Door({ host: '127.0.0.1', tell: problemTeller('words') })
  const anyPath = (path: string) => ({ path })
  door.on(
    ['GET', 'POST'],
    anyPath,
    { admit: everybody, changesNothing: true },
    async (request, reply) => {
      const attempt = served.get(reply.raw.socket!)
      if (attempt) await answer(attempt, request, reply)
    },
  )
  return {
    take(connection: Duplex, attempt: ServedAttempt) {
      served.set(connection, attempt)
      door.server.emit('connection', connection)
    },
    [Symbol.asyncDispose]: () => door.close(),
  }
}

async function answer(attempt: ServedAttempt, request: DoorRequest, reply: Reply): Promise<void> {
  const given = credentialOf(request.headers)
  if (given === undefined || !isSameSecret(given, attempt.token)) {
    const why = given === undefined ? 'without a key' : 'with another key'
    attempt.refused(`a request came ${why} than the token of its attempt`)
    throw new RequestProblem('unauthorized', 'send the token of the attempt as the API key')
  }
  const { method, url, headers } = request
  const body = await request.json()
  const asked = new Request(`http://127.0.0.1${url}`, {
    method,
    headers: Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' && !hops.has(name) ? [[name, value] as [string, string]] : [],
    ),
    signal: abortWhenGone(reply).signal,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  await send(await attempt.answer(asked, body), reply)
}

/** Headers of the connection, which say nothing of a body that was read. */
const hops: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
])

async function send(response: Response, reply: Reply): Promise<void> {
  const type = response.headers.get('content-type') ?? 'application/json; charset=utf-8'
  if (!type.startsWith('text/event-stream')) {
    reply.send(response.status, type, await response.text())
    return
  }
  reply.begin(type)
  const { raw } = reply
  for await (const piece of response.body ?? []) {
    if (raw.destroyed) return
    raw.write(piece)
  }
  raw.end()
}
