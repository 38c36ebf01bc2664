import { createHash, randomBytes } from 'node:crypto'
import { aroundPolicy, aroundWorlds } from '../../../base/core/around.ts'
import { describeCause } from '../../../base/core/failure.ts'
import { type TreeId, treeId } from '../../../base/core/ids.ts'
import { describeOutcome } from '../../../base/core/outcome.ts'
import type { Sample, SampleRequest } from '../../../base/core/policy.ts'
import type { CallRecord } from '../../../base/core/tool.ts'
import type { Tree } from '../../../base/core/tree.ts'
import type { Instrument, RolloutContext } from '../../../engine/rollout/attempt.ts'
import type { Listen } from '../events.ts'
import type { SpanExporter } from './otlp.ts'

/** The two parts of tracing: an instrument around every attempt, and a listener for its end. */
export interface Traces {
  readonly instrument: Instrument
  readonly listen: Listen
}

interface OpenAttempt {
  readonly trace: string
  readonly id: string
  readonly start: number
  readonly environment: string
  readonly task: string
}

/**
 * Traces attempts as OpenTelemetry's GenAI conventions name them: an `invoke_agent` span per
 * attempt, in it `text_completion` spans for samples and `execute_tool` spans for calls.
 */
export function makeTraces(run: string, exporter: Pick<SpanExporter, 'add'>): Traces {
  const open = new Map<TreeId, OpenAttempt>()
  return {
    instrument: (context, attempt) => {
      const tree = treeId(attempt.group, attempt.member)
      const trace = createHash('sha256').update(`${run}\0${tree}`).digest('hex').slice(0, 32)
      const { environment } = context
      const own = { trace, id: spanId(), start: Date.now(), environment: environment.name }
      open.set(tree, { ...own, task: attempt.task.id })
      return traced(context, { trace, parent: own.id, exporter })
    },
    listen(event) {
      if (event.kind !== 'tree-end') return
      const attempt = open.get(event.tree.id)
      open.delete(event.tree.id)
      if (attempt) exporter.add(attemptSpan(attempt, event.tree))
    },
  }
}

const spanId = (): string => randomBytes(8).toString('hex')

interface Tracing {
  readonly trace: string
  readonly parent: string
  readonly exporter: Pick<SpanExporter, 'add'>
}

function traced(context: RolloutContext, tracing: Tracing): RolloutContext {
  return {
    ...context,
    policy: aroundPolicy(context.policy, {
      async draw({ request, ask }) {
        const start = Date.now()
        const span = sampleSpan(context.policy.name, request, { ...tracing, start })
        try {
          const samples = await ask()
          for (const sample of samples) tracing.exporter.add(span(sample))
          return samples
        } catch (error) {
          tracing.exporter.add(span(undefined, error))
          throw error
        }
      },
    }),
    environment: aroundWorlds(context.environment, {
      async step(_action, call, step) {
        const start = Date.now()
        const transition = await step(call)
        for (const record of transition.calls ?? []) addCall(record, { ...tracing, start })
        return transition
      },
    }),
  }
}

function sampleSpan(policy: string, request: SampleRequest, tracing: Tracing & { start: number }) {
  const { trace, parent, start } = tracing
  const { temperature, topP, topK } = request.sampling
  return (sample: Sample | undefined, error?: unknown) => ({
    trace,
    id: spanId(),
    parent,
    name: `text_completion ${policy}`,
    kind: 'client' as const,
    start,
    end: Date.now(),
    attributes: {
      'gen_ai.operation.name': 'text_completion',
      'gen_ai.provider.name': policy,
      'gen_ai.request.model': policy,
      'gen_ai.request.max_tokens': request.maxTokens,
      'gen_ai.request.temperature': temperature,
      'gen_ai.request.top_p': topP,
      'gen_ai.request.top_k': topK,
      'gen_ai.request.seed': request.seed,
      'gen_ai.conversation.id': request.session,
      'gen_ai.response.finish_reasons': sample && [sample.finish.kind],
      'gen_ai.usage.input_tokens': sample?.usage.prompt,
      'gen_ai.usage.output_tokens': sample?.usage.sampled,
      'server.address': sample?.usage.server,
      'error.type': error === undefined ? undefined : nameOf(error),
      'espalier.turn': request.key.turn,
      'espalier.branch': request.key.branch,
    },
    ...(error !== undefined && { error: describeCause(error).slice(0, 500) }),
  })
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error
}

/** Calls of one turn run side by side, so that all of them begin with the step. */
function addCall(record: CallRecord, tracing: Tracing & { start: number }): void {
  const { trace, parent, exporter, start } = tracing
  exporter.add({
    trace,
    id: spanId(),
    parent,
    name: `execute_tool ${record.tool}`,
    kind: 'internal',
    start,
    end: start + record.seconds * 1000,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': record.tool,
      'gen_ai.tool.call.id': record.id,
      'gen_ai.tool.type': 'function',
      'error.type': record.problem,
    },
    ...(record.problem !== undefined && { error: record.problem }),
  })
}

function attemptSpan({ trace, id, start, environment, task }: OpenAttempt, tree: Tree) {
  const failed = tree.trajectories.find(({ outcome }) => outcome.kind === 'failed')
  const sum = (value: (usage: (typeof tree.trajectories)[number]['usage']) => number): number =>
    tree.trajectories.reduce((total, { usage }) => total + value(usage), 0)
  return {
    trace,
    id,
    name: `invoke_agent ${environment}`,
    kind: 'internal' as const,
    start,
    end: Date.now(),
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': environment,
      'gen_ai.conversation.id': tree.id,
      'gen_ai.usage.input_tokens': sum(usage => usage.prompt),
      'gen_ai.usage.output_tokens': sum(usage => usage.sampled),
      'espalier.task': task,
      'espalier.member': tree.member,
      'espalier.outcomes': tree.trajectories.map(({ outcome }) => outcome.kind),
    },
    ...(failed && { error: describeOutcome(failed.outcome).slice(0, 500) }),
  }
}
