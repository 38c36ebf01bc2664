import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { TaskId } from '../../base/core/ids.ts'
import type { ChatFinish } from '../../engine/capture/contract.ts'
import { RequestProblem } from '../../engine/capture/dialects/problem.ts'
import { type Door, everybody } from '../door/door.ts'
import { RefusedRequest } from '../door/refused-request.ts'
import type { Query } from '../door/request.ts'
import { checkName, findAttempt } from './attempt-names.ts'
import type { GatewayAttempt } from './attempts.ts'
import { parse } from './control-routes.ts'
import type { Gateway } from './gateway.ts'
import { guardWith } from './secrets.ts'
import type { Trace } from './traces.ts'

const sessionBody = z.looseObject({
  session_id: z.string().nullish(),
  metadata: z.record(z.string(), z.json()).nullish(),
})

const idsBody = z.looseObject({ session_ids: z.array(z.string()).max(10_000).default([]) })

/**
 * Adds the paths of rLLM's model gateway: a session is an attempt, a trace is an answer. The task
 * that groups them is the metadata's `task_id`, or else the session's name up to its last colon,
 * which is how rLLM names the rollouts of one task.
 */
export function addRllmRoutes(door: Door, gateway: Gateway): void {
  const { attempts, readTask, model } = gateway
  const guarded = guardWith(gateway, { changesNothing: true })
  door.get('/rllm/health', { admit: everybody }, () => {
    attempts.check()
    return { status: 'ok' }
  })
  door.post('/rllm/sessions', guarded('control'), async request => {
    const { session_id: given, metadata } = parse(sessionBody, (await request.json()) ?? {})
    const id = checkName(given || randomUUID())
    const task = metadata?.task_id
    const name = typeof task === 'string' ? task : id.replace(/:[^:]*$/, '')
    attempts.open({
      id,
      task: readTask(checkName(name) as TaskId),
      keepsTraces: true,
      metadata: metadata ?? {},
    })
    return { session_id: id, url: `/sessions/${id}/v1` }
  })
  door.get('/rllm/sessions', guarded('read'), async ({ query }) =>
    within(attempts.list(), query, ({ opened }) => opened).map(toSession),
  )
  door.get('/rllm/sessions/:id', guarded('read'), async ({ params }) =>
    toSession(findAttempt(gateway, params.id)),
  )
  door.get('/rllm/sessions/:id/traces', guarded('read'), async ({ params, query }) =>
    tracesOf(findAttempt(gateway, params.id), query),
  )
  door.delete('/rllm/sessions/:id', guarded('control'), async ({ params }) => ({
    deleted: await remove(gateway, [params.id]),
  }))
  door.post('/rllm/sessions/batch_delete', guarded('control'), async request => ({
    deleted: await remove(gateway, parse(idsBody, (await request.json()) ?? {}).session_ids),
  }))
  door.get('/rllm/traces/:id', guarded('read'), async ({ params }) => {
    for (const attempt of attempts.list()) {
      const trace = attempt.traces?.find(({ id }) => id === params.id)
      if (trace) return toTrace(attempt, trace)
    }
    throw new RequestProblem('not-found', `there is no trace ${JSON.stringify(params.id)}`)
  })
  door.post('/rllm/traces/query', guarded('read'), async request =>
    parse(idsBody, (await request.json()) ?? {})
      .session_ids.flatMap(id => attempts.get(id) ?? [])
      .flatMap(attempt => tracesOf(attempt, {})),
  )
  door.post('/rllm/admin/flush', guarded('control'), async () => ({ status: 'flushed' }))
  const worker = { worker_id: 'policy', url: '', api_path: '/v1', model_name: model }
  door.get('/rllm/admin/workers', guarded('read'), async () => [
    { ...worker, weight: 1, healthy: true, active_requests: 0 },
  ])
  door.post('/rllm/admin/workers', guarded('control'), refuseWorker)
}

/** Refuses to add servers: the policy is fixed when the gateway starts, since its tokenizer must be known. */
function refuseWorker(): never {
  throw new RefusedRequest(400, 'the policy is named with --policy when the gateway starts')
}

/** Deletes sessions: attempts that run are closed first. Gives how many traces went with them. */
async function remove(gateway: Gateway, ids: readonly string[]): Promise<number> {
  let count = 0
  for (const id of ids) {
    const attempt = gateway.attempts.get(id)
    if (!attempt) continue
    count += attempt.traces?.length ?? 0
    await gateway.attempts.remove(attempt)
  }
  return count
}

function toSession({ id, traces, opened, metadata }: GatewayAttempt): object {
  return { session_id: id, trace_count: traces?.length ?? 0, created_at: opened, metadata }
}

function tracesOf(attempt: GatewayAttempt, query: Query): readonly object[] {
  return within(attempt.traces ?? [], query, ({ at }) => at).map(trace => toTrace(attempt, trace))
}

function within<T>(
  list: readonly T[],
  { since, limit }: Query,
  timeOf: (item: T) => number,
): readonly T[] {
  const from = since === undefined ? Number.NEGATIVE_INFINITY : Number(since)
  const count = limit === undefined ? list.length : Number(limit)
  return list.filter(item => timeOf(item) > from).slice(0, Math.max(0, count || 0))
}

/** Why an answer ended, in the words of OpenAI's API. */
export function finishWord(finish: ChatFinish): string {
  return finish === 'tool-calls' ? 'tool_calls' : finish === 'aborted' ? 'stop' : finish
}

function toTrace({ id: session, metadata }: GatewayAttempt, trace: Trace): object {
  const { answer, request } = trace
  const { prompt, sampled, logprobs, version } = answer.tokens
  return {
    trace_id: trace.id,
    session_id: session,
    model: trace.model,
    messages: request.messages,
    prompt_token_ids: [...prompt],
    response_message: answer.message,
    completion_token_ids: [...sampled],
    logprobs: logprobs && [...logprobs],
    routing_matrices: null,
    finish_reason: finishWord(answer.finish),
    weight_version: version,
    latency_ms: trace.milliseconds,
    token_counts: { prompt: answer.usage.prompt, completion: answer.usage.sampled },
    timestamp: trace.at,
    metadata: { ...metadata, ...(request.tools.length > 0 && { tools: request.tools }) },
  }
}
