import { textOf } from '@espalier/text'
import type { ChatAnswer, ChatDelta, ChatFinish } from '../contract.ts'
import type { Asked, DialectProblem, StreamWriter, WriteOptions } from './dialect.ts'
import { plainEvent } from './events.ts'
import { type ProblemKind, type RequestProblem, statusOfProblem } from './problem.ts'
import { argumentsObject } from './tools.ts'

const finishes: Readonly<Record<ChatFinish, string>> = {
  stop: 'STOP',
  length: 'MAX_TOKENS',
  'tool-calls': 'STOP',
  aborted: 'OTHER',
}

/** The body of generated content. */
export function writeGoogle(
  asked: Asked,
  answers: readonly ChatAnswer[],
  options: WriteOptions,
): unknown {
  return {
    candidates: answers.map((answer, index) => ({
      content: { role: 'model', parts: partsOf(answer) },
      ...endOf(answer),
      index,
      ...(asked.wants.logprobs && { logprobsResult: logprobsOf(answer, options) }),
    })),
    ...tailOf(asked, answers, options),
  }
}

/** Why it ended, and in words what it lacks of what was asked for. */
function endOf({ finish, unmet }: ChatAnswer): object {
  const finishReason = finishes[finish]
  if (unmet.length === 0) return { finishReason }
  return { finishReason, finishMessage: unmet.map(({ problem }) => problem).join('; ') }
}

function tailOf(asked: Asked, answers: readonly ChatAnswer[], { id }: WriteOptions): object {
  const prompt = answers[0]?.usage.prompt ?? 0
  const sampled = answers.reduce((sum, { usage }) => sum + usage.sampled, 0)
  return {
    usageMetadata: {
      promptTokenCount: prompt,
      candidatesTokenCount: sampled,
      totalTokenCount: prompt + sampled,
      cachedContentTokenCount: answers[0]?.usage.cached ?? 0,
    },
    modelVersion: asked.model,
    responseId: id,
  }
}

function partsOf({ message }: ChatAnswer): readonly object[] {
  const { content, reasoning_content: reasoning, tool_calls: calls = [] } = message
  const words = textOf(content)
  return [
    ...(reasoning === undefined ? [] : [{ text: reasoning, thought: true }]),
    ...(words === '' && calls.length > 0 ? [] : [{ text: words }]),
    ...calls.map(({ id, function: { name, arguments: given } }) => callPart({ id, name, given })),
  ]
}

function callPart(call: { readonly id: string; readonly name: string; readonly given: string }) {
  return { functionCall: { id: call.id, name: call.name, args: argumentsObject(call.given) } }
}

function logprobsOf({ tokens }: ChatAnswer, { decode }: WriteOptions): object {
  const { sampled, logprobs, candidates } = tokens
  if (!logprobs) return { chosenCandidates: [] }
  const write = (tokenId: number, logProbability: number | null) => ({
    token: decode?.(tokenId) ?? '',
    tokenId,
    logProbability,
  })
  return {
    chosenCandidates: [...sampled].map((id, index) => write(id, logprobs[index] ?? null)),
    ...(candidates && {
      topCandidates: candidates.map(list => ({
        candidates: list.map(({ id, logprob }) => write(id, logprob)),
      })),
    }),
  }
}

/** The pieces of streamed content, each a body of its own. */
export function streamGoogle(asked: Asked, options: WriteOptions): StreamWriter {
  const head = { modelVersion: asked.model, responseId: options.id }
  const chunk = (candidates: readonly object[], more: object = head): string =>
    plainEvent({ candidates, ...more })
  return {
    begin: () => '',
    delta: delta =>
      chunk([{ content: { role: 'model', parts: [partOf(delta)] }, index: delta.answer }]),
    end: answers =>
      chunk(
        answers.map((answer, index) => ({
          content: { role: 'model', parts: [{ text: '' }] },
          ...endOf(answer),
          index,
          ...(asked.wants.logprobs && { logprobsResult: logprobsOf(answer, options) }),
        })),
        tailOf(asked, answers, options),
      ),
    fail: problem => plainEvent(googleProblem(problem).body),
  }
}

function partOf(delta: ChatDelta): object {
  switch (delta.kind) {
    case 'text':
      return { text: delta.text }
    case 'reasoning':
      return { text: delta.text, thought: true }
    case 'call':
      return callPart({ id: delta.id, name: delta.name, given: delta.arguments })
    default:
      return delta satisfies never
  }
}

const words: Readonly<Record<ProblemKind, string>> = {
  invalid: 'INVALID_ARGUMENT',
  unsupported: 'INVALID_ARGUMENT',
  context: 'INVALID_ARGUMENT',
  unauthorized: 'UNAUTHENTICATED',
  forbidden: 'PERMISSION_DENIED',
  'not-found': 'NOT_FOUND',
  conflict: 'ABORTED',
  over: 'FAILED_PRECONDITION',
  'too-large': 'INVALID_ARGUMENT',
  'too-many': 'RESOURCE_EXHAUSTED',
  unavailable: 'UNAVAILABLE',
  internal: 'INTERNAL',
}

/** A problem as Google's API writes it. */
export function googleProblem({ kind, message }: RequestProblem): DialectProblem {
  const status = statusOfProblem(kind)
  return { status, body: { error: { code: status, message, status: words[kind] } } }
}
