import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { TaskId } from '../../base/core/ids.ts'
import { type Door, everybody } from '../door/door.ts'
import type { Reply } from '../door/reply.ts'
import { checkName } from './attempt-names.ts'
import { type GatewayAttempt, mintToken } from './attempts.ts'
import { parse } from './control-routes.ts'
import type { Gateway } from './gateway.ts'
import { finishWord } from './rllm-routes.ts'
import { type Guarded, guardWith } from './secrets.ts'
import { chainsOf, type Trace } from './traces.ts'

const sessionBody = z.looseObject({
  session_id: z.string().nullish(),
  metadata: z.record(z.string(), z.json()).nullish(),
})

/**
 * Adds the paths of OpenEnv's capture door. A session's id is the key that its agent sends: the
 * token of an attempt, whose name and task are others, since those are written and shown (H4). The
 * metadata's `task_id` groups attempts.
 */
export function addOpenEnvRoutes(door: Door, gateway: Gateway): void {
  const { attempts, readTask, model } = gateway
  const guarded = guardWith(gateway, { changesNothing: true })
  door.get('/openenv/health', { admit: everybody }, () => {
    attempts.check()
    return {
      status: 'ok',
      model,
      capture_level: gateway.capture,
      rollout_type: gateway.capture === 'tokens' ? 'train' : 'eval',
      sessions: attempts.openCount,
    }
  })
  door.post('/openenv/sessions', guarded('control'), async request => {
    const { session_id: given, metadata } = parse(sessionBody, (await request.json()) ?? {})
    const token = checkName(given || mintToken())
    const task = metadata?.task_id
    attempts.open({
      token,
      task: readTask(checkName(typeof task === 'string' ? task : randomUUID()) as TaskId),
      keepsTraces: true,
      metadata: metadata ?? {},
    })
    return {
      session_id: token,
      capture_level: gateway.capture,
      rollout_type: gateway.capture === 'tokens' ? 'train' : 'eval',
      max_model_calls: 0,
      llm_url: null,
      model,
    }
  })
  door.get('/openenv/sessions', guarded('read'), async () => ({
    sessions: attempts.list().map(attempt => toStatus(attempt, attempt.id)),
  }))
  addSessionRoutes(door, gateway, guarded)
}

function addSessionRoutes(door: Door, { attempts, capture }: Gateway, guarded: Guarded): void {
  /** By its key, or by the name that it is listed under; an answer repeats what it was asked by. */
  const sessionOf = (id: string): GatewayAttempt | undefined =>
    attempts.byToken(id) ?? attempts.get(id)
  const found = (id: string, reply: Reply, answer: (attempt: GatewayAttempt) => object): object => {
    const attempt = sessionOf(id)
    if (attempt) return answer(attempt)
    reply.status = 404
    return { error: 'unknown session' }
  }
  door.get('/openenv/sessions/:id', guarded('read'), ({ params }, reply) =>
    found(params.id, reply, attempt => toStatus(attempt, params.id)),
  )
  door.get('/openenv/sessions/:id/rollout', guarded('read'), ({ params, query }, reply) =>
    found(params.id, reply, attempt =>
      toRollout(attempt, {
        session: params.id,
        capture,
        withMessages: query.include_messages === 'true',
      }),
    ),
  )
  door.get('/openenv/sessions/:id/trace_entries', guarded('read'), ({ params }, reply) =>
    found(params.id, reply, attempt => ({
      session_id: params.id,
      entries: (attempt.traces ?? []).map((trace, index) => toEntry(trace, index)),
    })),
  )
  door.delete('/openenv/sessions/:id', guarded('control'), async ({ params }) => {
    const attempt = sessionOf(params.id)
    if (!attempt) return { deleted: false }
    await attempts.remove(attempt)
    return { deleted: true }
  })
}

function toStatus({ traces = [] }: GatewayAttempt, session: string): object {
  const idle = traces.length === 0 ? 0 : Date.now() / 1000 - traces.at(-1)!.at
  return {
    session_id: session,
    idle_s: Math.round(idle * 10) / 10,
    upstream_errors: 0,
    ...statsOf(traces),
  }
}

function statsOf(traces: readonly Trace[]): object {
  const chains = chainsOf(traces)
  const roots = new Set(chains.map(({ nodes }) => nodes[0]))
  return {
    n_turns: traces.length,
    n_roots: roots.size,
    n_leaves: chains.length,
    n_forks: chains.length - roots.size,
    n_discarded: 0,
  }
}

function toEntry({ answer, request, id, model }: Trace, index: number): object {
  const { prompt, sampled, logprobs } = answer.tokens
  return {
    request: { messages: request.messages, tools: request.tools },
    response: {
      choices: [{ message: answer.message, finish_reason: finishWord(answer.finish) }],
    },
    prompt_token_ids: [...prompt],
    completion_token_ids: [...sampled],
    per_token_logps: logprobs ? [...logprobs] : [],
    loss_mask: [...prompt.map(() => 0), ...sampled.map(() => 1)],
    metadata: { node_id: id, index, model, n_tools: request.tools.length },
  }
}

interface RolloutOptions {
  /** What the session was asked for by. */
  readonly session: string
  readonly capture: string
  readonly withMessages: boolean
}

/** The whole attempt as rows: one per conversation, every answer trained in one of them. */
function toRollout(
  attempt: GatewayAttempt,
  { session, capture, withMessages }: RolloutOptions,
): object {
  const { traces = [], metadata } = attempt
  const hasTools = traces.some(({ request }) => request.tools.length > 0)
  const chains = chainsOf(traces)
  const rows = chains.map(({ nodes, ids, mask, logprobs }) => {
    const isAgent = !hasTools || nodes.some(({ request }) => request.tools.length > 0)
    const trainable = mask.reduce((sum, each) => sum + each, 0)
    return {
      role: isAgent ? 'agent' : 'auxiliary',
      root_id: nodes[0]!.id,
      node_ids: nodes.map(node => node.id),
      n_turns: nodes.length,
      prompt_len: nodes[0]!.answer.tokens.prompt.length,
      n_trainable: trainable,
      turn_lengths: nodes.map(node => node.answer.tokens.sampled.length),
      input_ids: ids,
      loss_mask: mask,
      logprobs,
      trainable: isAgent && capture === 'tokens' && trainable > 0,
      validation: [],
    }
  })
  const trained = rows.filter(row => row.trainable)
  return {
    session_id: session,
    metadata,
    budget_stop_count: 0,
    turns: traces.map((trace, index) => toTurn(trace, { index, withMessages })),
    stats: {
      ...statsOf(traces),
      n_sequences: rows.length,
      n_trainable_sequences: trained.length,
      n_trainable_tokens: trained.reduce((sum, row) => sum + row.n_trainable, 0),
    },
    sequences: rows,
    validation: [],
    trainable: trained.length > 0,
    capture_level: capture,
    rollout_type: capture === 'tokens' ? 'train' : 'eval',
  }
}

function toTurn(
  { id, answer, request }: Trace,
  { index, withMessages }: { readonly index: number; readonly withMessages: boolean },
): object {
  const { prompt, sampled, logprobs } = answer.tokens
  return {
    node_id: id,
    index,
    n_sampled: sampled.length,
    n_prompt: prompt.length,
    n_tools: request.tools.length,
    finish_reason: finishWord(answer.finish),
    sampled_logprobs: logprobs && [...logprobs],
    discarded: false,
    ...(withMessages && {
      request_messages: request.messages,
      request_tools: request.tools,
      response_message: answer.message,
    }),
  }
}
