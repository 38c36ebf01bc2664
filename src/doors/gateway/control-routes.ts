import { z } from 'zod'
import type { Json, TaskId } from '../../base/core/ids.ts'
import { RequestProblem } from '../../engine/capture/dialects/problem.ts'
import { type Door, everybody } from '../door/door.ts'
import type { RequestHead } from '../door/request.ts'
import { checkName, findAttempt } from './attempt-names.ts'
import type { GatewayAttempt } from './attempts.ts'
import type { Gateway } from './gateway.ts'
import { type Guarded, guardWith } from './secrets.ts'

const opening = z.strictObject({
  id: z.string().optional().describe('A name of your own for the attempt'),
  task: z.string().describe('The task; attempts at the same one are compared with each other'),
  data: z.record(z.string(), z.json()).optional().describe("The task's data, for rewards"),
})

const rewarding = z.strictObject({ reward: z.number().describe('What the attempt was worth') })

const closing = z
  .strictObject({
    reward: z.number().optional().describe('What it was worth, where its agent knows'),
    report: z.json().optional().describe('Plain JSON about the final state, for reward functions'),
    failed: z.string().optional().describe('What broke; the attempt is then not scored'),
  })
  .refine(({ reward, failed }) => reward === undefined || failed === undefined, {
    error: 'an attempt that failed is not scored: send a reward or what failed, not both',
  })

/** Adds the paths that attempts are opened, rewarded, closed and listed on. */
export function addControlRoutes(door: Door, gateway: Gateway): void {
  const { attempts, readTask } = gateway
  const guarded = guardWith(gateway)
  door.post('/attempts', guarded('control'), async (request, reply) => {
    const { id, task, data } = parse(opening, await request.json())
    const attempt = attempts.open({
      ...(id !== undefined && { id: checkName(id) }),
      task: readTask(checkName(task) as TaskId, data),
    })
    const { token } = attempt
    reply.status = 201
    return { ...toRecord(attempt), token, urls: urlsOf(request, attempt.id) }
  })
  door.get('/attempts', guarded('read'), async () => ({
    attempts: attempts.list().map(toRecord),
  }))
  door.get('/attempts/:id', guarded('read'), async ({ params }) =>
    toRecord(findAttempt(gateway, params.id)),
  )
  door.post('/attempts/:id/reward', guarded('control'), async request => {
    const { reward } = parse(rewarding, await request.json())
    const attempt = findAttempt(gateway, request.params.id)
    attempts.postReward(attempt, reward)
    return toRecord(attempt)
  })
  door.post('/attempts/:id/close', guarded('control'), async request => {
    const { reward, report, failed } = parse(closing, (await request.json()) ?? {})
    const attempt = findAttempt(gateway, request.params.id)
    await attempts.close(attempt, {
      ...(reward !== undefined && { reward }),
      ...(report !== undefined && { report: report as Json }),
      ...(failed !== undefined && {
        outcome: { kind: 'failed', boundary: 'environment', message: failed },
      }),
    })
    return toRecord(attempt)
  })
  addGroupRoutes(door, gateway, guarded)
}

function addGroupRoutes(door: Door, { attempts }: Gateway, guarded: Guarded): void {
  door.get('/groups', guarded('read'), async () => ({
    finished: attempts.groups.finished,
    open: attempts.groups.open.map(({ id, task, members, running }) => ({
      id,
      task: task.id,
      attempts: members,
      running,
    })),
  }))
  door.post('/groups/:task/close', guarded('control'), async ({ params }) => {
    const groups = await attempts.groups.close(params.task as TaskId)
    return { written: groups.length > 0 }
  })
  door.get('/health', { admit: everybody }, () => {
    attempts.check()
    return { status: 'ok' }
  })
}

/** The public record of an attempt: everything but its token and its messages. */
function toRecord(attempt: GatewayAttempt): object {
  const { id, task, group, member, state, requests, running, opened, ended, reward } = attempt
  return {
    id,
    task: task.id,
    group: group.id,
    member,
    state,
    requests,
    running,
    opened,
    ...(attempt.posted !== undefined && { posted: attempt.posted }),
    ...(ended && { outcome: ended.outcome }),
    ...(reward !== undefined && { reward }),
  }
}

/** The base URLs that clients of each dialect are given; a proxy in front may speak TLS. */
function urlsOf({ headers }: RequestHead, id: string): object {
  const protocol = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
  const base = `${protocol}://${headers.host}/attempts/${encodeURIComponent(id)}`
  return { openai: `${base}/v1`, anthropic: base, google: base }
}

/** Checks a body; errors name the place. */
export function parse<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const read = schema.safeParse(body)
  if (read.success) return read.data
  const { path, message } = read.error.issues[0]!
  const place = path.length === 0 ? 'the body' : path.join('.')
  throw new RequestProblem('invalid', `${place}: ${message}`)
}
