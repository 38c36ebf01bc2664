import type { ChatAnswer, ChatRequest } from '../../engine/capture/contract.ts'

/** One answer that was given, kept for trainers that read tokens over HTTP. */
export interface Trace {
  readonly id: string
  readonly model: string
  readonly request: Pick<ChatRequest, 'messages' | 'tools'>
  readonly answer: ChatAnswer
  readonly milliseconds: number
  /** Seconds since 1970. */
  readonly at: number
}

/** Most traces per attempt; the run itself keeps everything. */
const mostTraces = 4096

/** Adds an answer to the traces of an attempt, if it keeps any. */
export function keepTrace(
  traces: Trace[] | undefined,
  given: {
    readonly request: ChatRequest
    readonly answer: ChatAnswer
    readonly call: { readonly model: string; readonly id: string }
    readonly milliseconds: number
  },
): void {
  if (!traces || traces.length >= mostTraces) return
  const { request, answer, call, milliseconds } = given
  const { messages, tools } = request
  const { id, model } = call
  const trace = { id, model, request: { messages, tools }, answer, milliseconds }
  traces.push({ ...trace, at: Date.now() / 1000 })
}

/** One conversation of an attempt: answers whose prompts each contain the answer before, token by token. */
export interface Chain {
  readonly nodes: readonly Trace[]
  readonly ids: readonly number[]
  /** 1 if a token was sampled and is trained in this chain. */
  readonly mask: readonly number[]
  /** 0 if a token was not sampled. */
  readonly logprobs: readonly number[]
}

/**
 * The conversations that answers make, by their tokens alone. Answers that several conversations
 * share are trained in the first of them.
 */
export function chainsOf(traces: readonly Trace[]): readonly Chain[] {
  const parents = traces.map((trace, index) =>
    traces.slice(0, index).findLastIndex(earlier => continues(trace, earlier)),
  )
  const trained = new Set<number>()
  return traces.flatMap((_, leaf) => {
    if (parents.includes(leaf)) return []
    const path: number[] = []
    for (let node = leaf; node >= 0; node = parents[node]!) path.unshift(node)
    return [chainOf(traces, path, trained)]
  })
}

function continues({ answer }: Trace, { answer: earlier }: Trace): boolean {
  const { prompt } = answer.tokens
  const { prompt: before, sampled } = earlier.tokens
  const end = before.length + sampled.length
  if (prompt.length <= end) return false
  return (
    before.every((id, index) => prompt[index] === id) &&
    sampled.every((id, index) => prompt[before.length + index] === id)
  )
}

function chainOf(traces: readonly Trace[], path: readonly number[], trained: Set<number>): Chain {
  const { prompt, sampled } = traces[path.at(-1)!]!.answer.tokens
  const ids = [...prompt, ...sampled]
  const mask = ids.map(() => 0)
  const logprobs = ids.map(() => 0)
  for (const node of path) {
    const { tokens } = traces[node]!.answer
    const isNew = !trained.has(node)
    trained.add(node)
    for (let index = 0; index < tokens.sampled.length; index++) {
      const at = tokens.prompt.length + index
      mask[at] = isNew && tokens.logprobs ? 1 : 0
      logprobs[at] = tokens.logprobs?.[index] ?? 0
    }
  }
  return { nodes: path.map(node => traces[node]!), ids, mask, logprobs }
}
