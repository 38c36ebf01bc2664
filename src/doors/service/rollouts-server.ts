import { packageVersion } from '../../base/core/process/package-version.ts'
import { withoutSecretsInJson } from '../../base/core/process/secrets.ts'
import { Door, everybody } from '../door/door.ts'
import { RefusedRequest } from '../door/refused-request.ts'
import type { Reply } from '../door/reply.ts'
import type { RequestHead } from '../door/request.ts'
import { digestOf } from './digest.ts'
import type { NamedRequest } from './named-answers.ts'
import type { Rollouts } from './rollouts.ts'
import {
  acknowledgement,
  openApiDocument,
  parse,
  pause,
  resume,
  submission,
  weights,
  worldCall,
  worldClose,
  worldRequest,
} from './rollouts-api.ts'
import { arrowType, toArrow } from './rollouts-arrow.ts'
import type { WeightsDesk } from './rollouts-policy.ts'
import type { Worlds } from './rollouts-worlds.ts'
import { unnamed } from './trainers.ts'

/** Where a service listens, and who may use it. */
export interface RolloutsServerOptions {
  /** 0 takes any free one. @default 8900 */
  readonly port?: number
  /** @default '127.0.0.1' */
  readonly host?: string
  /** What clients send as bearer. Without one only this machine may connect. */
  readonly token?: string
  /** Names besides its address that clients may call it by. */
  readonly allowedHosts?: readonly string[]
}

/** A service that listens; disposing of it closes its connections. */
export interface RolloutsServer extends AsyncDisposable {
  readonly url: string
}

const longestWait = 60
const heartbeatSeconds = 15

/** Serves rollouts over HTTP. */
export async function serveRollouts(
  service: { readonly rollouts: Rollouts; readonly worlds: Worlds },
  options: RolloutsServerOptions = {},
): Promise<RolloutsServer> {
  const { rollouts, worlds } = service
  const { port = 8900, host = '127.0.0.1' } = options
  const door = new Door({ ...options, host, elsewhere: 'see /openapi.json' })
  addRolloutRoutes(door, rollouts)
  addWorldRoutes(door, rollouts, worlds)
  addWeightRoutes(door, rollouts)
  addServiceRoutes(door, rollouts)
  return { url: await door.listen(port), [Symbol.asyncDispose]: () => door.close() }
}

function addRolloutRoutes(door: Door, rollouts: Rollouts): void {
  door.post('/v1/rollouts', async (request, reply) => {
    const status = await rollouts.submit(parse(submission, await request.json()))
    reply.status = 202
    return status
  })
  door.get('/v1/rollouts/:id', async ({ params }) => rollouts.status(params.id))
  door.delete('/v1/rollouts/:id', async ({ params }) => rollouts.cancel(params.id))
  door.post('/v1/rollouts/:id/acknowledge', async request => {
    const { cursor } = parse(acknowledgement, await request.json())
    return rollouts.acknowledge(request.params.id, cursor)
  })
  door.get('/v1/rollouts/:id/groups', async (request, reply) => {
    const { after, wait, max } = request.query
    const taken = await rollouts.take(request.params.id, {
      after: readCursor('after', after),
      wait: Math.min(longestWait, readNumber('wait', wait, 0)),
      max: Math.max(1, readNumber('max', max, 64)),
      signal: closing(reply),
    })
    if (!request.headers.accept?.includes(arrowType)) return taken
    reply.send(200, arrowType, toArrow(taken))
    return undefined
  })
  door.get('/v1/rollouts/:id/events', async (request, reply) => {
    const last = request.headers['last-event-id'] ?? request.query.after
    const after = readCursor('Last-Event-ID', [last].flat()[0])
    const { id } = request.params
    // What is wrong with the request is answered before the stream begins.
    await rollouts.take(id, { after, acknowledges: false, max: 1 })
    await streamGroups(rollouts, reply, { id, after })
  })
}

/** Finished groups as events. A slow connection is sent no more than it reads. */
async function streamGroups(
  rollouts: Rollouts,
  reply: Reply,
  { id, after }: { readonly id: string; readonly after: number },
): Promise<void> {
  const signal = closing(reply)
  const { raw } = reply
  reply.begin('text/event-stream')
  const send = async (text: string): Promise<void> => {
    if (raw.write(withoutSecretsInJson(text)) || signal.aborted) return
    await new Promise<void>(resolve => {
      raw.once('drain', resolve)
      raw.once('close', resolve)
    })
  }
  let cursor = after
  while (!signal.aborted) {
    const wait = heartbeatSeconds
    const taken = await rollouts.take(id, {
      after: cursor,
      acknowledges: false,
      wait,
      max: 1,
      signal,
    })
    for (const group of taken.groups) {
      await send(`id: ${group.cursor}\nevent: group\ndata: ${JSON.stringify(group)}\n\n`)
      cursor = group.cursor
    }
    if (taken.groups.length > 0) continue
    if (taken.state !== 'running') {
      await send(`event: end\ndata: ${JSON.stringify(rollouts.status(id))}\n\n`)
      break
    }
    await send(': still rolling\n\n')
  }
  raw.end()
}

/** Aborts when the client goes away. */
function closing(reply: Reply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => controller.abort())
  return controller.signal
}

function addWorldRoutes(door: Door, rollouts: Rollouts, worlds: Worlds): void {
  door.post('/v1/worlds', async (sent, reply) => {
    const body = await sent.json()
    const { task, seed } = parse(worldRequest, body)
    const request = nameOf(sent, body)
    const opened = await worlds.open(await rollouts.task(task), {
      ...(seed !== undefined && { seed }),
      ...(request && { request }),
    })
    reply.status = 201
    return opened
  })
  door.post('/v1/worlds/:id/calls', async sent => {
    const body = await sent.json()
    return worlds.call(sent.params.id, parse(worldCall, body), nameOf(sent, body))
  })
  door.post('/v1/worlds/:id/close', async sent => {
    const body = await sent.json()
    const { answer } = parse(worldClose, body ?? {})
    const { total, parts } = await worlds.close(sent.params.id, answer, nameOf(sent, body))
    const rewards = Object.fromEntries(parts.map(({ name, score }) => [name, score]))
    return { reward: total, rewards }
  })
}

/** The name that the client gave its request, if it gave one. */
function nameOf({ headers }: RequestHead, body: unknown): NamedRequest | undefined {
  const key = headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key === 'string' && /^[!-~]{1,100}$/.test(key))
    return { key, digest: digestOf(body ?? {}) }
  throw new RefusedRequest(400, 'idempotency-key should be 1 to 100 visible ASCII characters')
}

function addWeightRoutes(door: Door, rollouts: Rollouts): void {
  const { trainers } = rollouts
  const stateOf = ({ pausedFor, version }: WeightsDesk): object => ({
    paused: pausedFor !== null,
    seconds: pausedFor,
    version,
  })
  door.post('/v1/weights', async request => {
    const announced = parse(weights, await request.json())
    await rollouts.announce(announced)
    return stateOf(trainers.of(announced.trainer))
  })
  door.post('/v1/pause', async request => {
    const { trainer, seconds } = parse(pause, (await request.json()) ?? {})
    const desk = trainers.of(trainer)
    await desk.pause(seconds)
    return stateOf(desk)
  })
  door.post('/v1/resume', async request => {
    const desk = trainers.of(parse(resume, (await request.json()) ?? {}).trainer)
    await desk.resume()
    return stateOf(desk)
  })
}

function addServiceRoutes(door: Door, rollouts: Rollouts): void {
  const document = openApiDocument(packageVersion())
  door.get('/openapi.json', async () => document)
  door.get('/health', { admit: everybody }, () => {
    rollouts.check()
    return { status: 'ok' }
  })
  door.get('/metrics', (_, reply) => {
    reply.send(200, 'text/plain; version=0.0.4', metricsOf(rollouts))
  })
}

const gauges = ['queued', 'running', 'waiting', 'policies', 'kept']

/** Counters in the text format of Prometheus. */
function metricsOf({ counts, trainers }: Rollouts): string {
  const lines = Object.entries(counts).flatMap(([name, value]) => {
    const isGauge = gauges.includes(name)
    const word = name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
    const full = `espalier_rollouts_${word}${isGauge ? '' : '_total'}`
    return [`# TYPE ${full} ${isGauge ? 'gauge' : 'counter'}`, `${full} ${value}`]
  })
  const desks = [...trainers.entries()]
  const paused = desks.map(
    ([name, { pausedFor }]) =>
      `espalier_rollouts_paused${labelOf(name)} ${Number(pausedFor !== null)}`,
  )
  const versions = desks.flatMap(([name, { version }]) =>
    version === null ? [] : [`espalier_policy_version${labelOf(name)} ${version}`],
  )
  if (versions.length > 0) versions.unshift('# TYPE espalier_policy_version gauge')
  const all = [...lines, '# TYPE espalier_rollouts_paused gauge', ...paused, ...versions]
  return `${all.join('\n')}\n`
}

function labelOf(trainer: string): string {
  return trainer === unnamed ? '' : `{trainer="${trainer}"}`
}

function readCursor(name: string, text: string | undefined): number {
  const value = readNumber(name, text, 0)
  if (Number.isSafeInteger(value)) return value
  throw new RefusedRequest(400, `${name} should be the cursor of a group, not "${text}"`)
}

function readNumber(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback
  const value = Number(text)
  if (text.trim() !== '' && Number.isFinite(value) && value >= 0) return value
  throw new RefusedRequest(400, `${name} should be a number from 0 on, not "${text}"`)
}
