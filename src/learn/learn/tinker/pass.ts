import type { Call } from '../../../base/core/call.ts'
import type { ForwardBackwardOutput } from '../../../engine/policies/tinker/messages.ts'
import type { TinkerModel } from '../../../engine/policies/tinker/model.ts'
import type { Passes } from '../../../engine/policies/tinker/passes.ts'
import type { Provenance } from '../../../engine/policies/tinker/provenance.ts'
import type { TinkerServerKind } from '../../../engine/policies/tinker/server-kind.ts'
import type { Datum, TensorData } from '../../../run/sinks/formats/tinker.ts'
import type { ServerLoss } from './losses.ts'

/** Tokens of one request: large batches go in several, whose gradients add up. */
const requestTokens = 100_000

/** What a pass over a batch gave. */
export interface PassSums {
  readonly loss: number
  /** Sum over trained tokens of the log-probability at sampling minus the current one. */
  readonly difference: number
  /** The largest of these differences, of either sign. */
  readonly furthest: number
  readonly tokens: number
  /** The server's own metrics, each combined as its name says. */
  readonly metrics: Readonly<Record<string, number>>
}

/** A model on a server of a kind, and the way to it. */
export interface Learner {
  readonly model: TinkerModel
  readonly passes: Passes
  readonly kind: TinkerServerKind
  /** Which of the server's sequences tokens were sampled as. */
  readonly provenance: Provenance
}

/** Forward and backward over a batch, in as many requests as it needs. */
export async function passOver(
  { model, passes, kind }: Learner,
  { data, loss }: { readonly data: readonly Datum[]; readonly loss: ServerLoss },
  call: Call,
): Promise<PassSums> {
  const chunks = [...inChunks(data)].map(chunk => (kind.evenRows ? evened(chunk) : chunk))
  const usual = chunks.reduce((sum, chunk) => sum + chunk.length, 0) / chunks.length
  const answers: ForwardBackwardOutput[] = []
  let compared = { difference: 0, furthest: 0, tokens: 0 }
  for (const chunk of chunks) {
    const factor = kind.averagesRequests ? chunk.length / usual : 1
    const sent = factor === 1 ? chunk : chunk.map(datum => scaled(datum, factor))
    const pass = { modelId: model.id, seqId: model.next(), data: sent, loss: loss.name }
    const answer = await passes.run({ ...pass, ...(loss.config && { config: loss.config }) }, call)
    answers.push(answer)
    chunk.forEach((datum, index) => {
      compared = add(compared, compare(datum, answer.outputs[index]?.logprobs))
    })
  }
  return { ...compared, loss: lossOf(answers), metrics: combined(answers.map(a => a.metrics)) }
}

/** Data in as many requests as they need. */
export function* inChunks(data: readonly Datum[]): Generator<readonly Datum[]> {
  let chunk: Datum[] = []
  let tokens = 0
  for (const datum of data) {
    const size = datum.model_input.chunks[0]!.tokens.length
    if (chunk.length > 0 && tokens + size > requestTokens) {
      yield chunk
      chunk = []
      tokens = 0
    }
    chunk.push(datum)
    tokens += size
  }
  if (chunk.length > 0) yield chunk
}

/** Adds a row with zero weights if the server accepts only even numbers of rows. */
function evened(chunk: readonly Datum[]): readonly Datum[] {
  return chunk.length % 2 === 0 ? chunk : [...chunk, scaled(chunk.at(-1)!, 0)]
}

function scaled(datum: Datum, factor: number): Datum {
  const advantages = datum.loss_fn_inputs.advantages!
  const data = (advantages.data as Float32Array).map(value => value * factor)
  const own: TensorData = { ...advantages, data }
  return { ...datum, loss_fn_inputs: { ...datum.loss_fn_inputs, advantages: own } }
}

type Compared = Pick<PassSums, 'difference' | 'furthest' | 'tokens'>

function add(sums: Compared, more: Compared): Compared {
  return {
    difference: sums.difference + more.difference,
    furthest: Math.max(sums.furthest, more.furthest),
    tokens: sums.tokens + more.tokens,
  }
}

/** How far the log-probabilities that were learned with are from those that were sampled with. */
function compare(datum: Datum, now: readonly number[] = []): Compared {
  const then = datum.loss_fn_inputs.logprobs!.data
  const advantages = datum.loss_fn_inputs.advantages!.data
  let sums: Compared = { difference: 0, furthest: 0, tokens: 0 }
  for (let token = 0; token < Math.min(now.length, then.length); token++) {
    if (advantages[token] === 0) continue
    const difference = then[token]! - now[token]!
    sums = add(sums, { difference, furthest: Math.abs(difference), tokens: 1 })
  }
  return sums
}

/** The names under which servers report the loss, the most reliable first. */
const lossMetrics = ['loss:sum', 'total_loss:sum', 'pg_loss:sum', 'loss:avg']

/** The loss as the server reports it; SkyRL's JAX server reports it per token only. */
function lossOf(answers: readonly ForwardBackwardOutput[]): number {
  return answers.reduce((sum, { metrics, outputs }) => {
    const name = lossMetrics.find(each => metrics[each] !== undefined)
    if (name !== undefined) return sum + metrics[name]!
    const losses = outputs.flatMap(output => output.elementwise_loss ?? [])
    return sum + losses.reduce((whole, each) => whole + each, 0)
  }, 0)
}

/** Combines the metrics of several answers; the end of a name says how. */
export function combined(
  all: readonly Readonly<Record<string, number>>[],
): Readonly<Record<string, number>> {
  const names = [...new Set(all.flatMap(each => Object.keys(each)))]
  return Object.fromEntries(
    names.map(name => {
      const values = all.flatMap(each => each[name] ?? [])
      const sum = values.reduce((whole, each) => whole + each, 0)
      if (name.endsWith(':sum')) return [name, sum]
      if (name.endsWith(':max')) return [name, Math.max(...values)]
      if (name.endsWith(':min')) return [name, Math.min(...values)]
      return [name, sum / values.length]
    }),
  )
}
