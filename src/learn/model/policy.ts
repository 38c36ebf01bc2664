import type { Call } from '../../base/core/call.ts'
import type {
  Policy,
  PolicyCapabilities,
  SampleRequest,
  TokenSample,
} from '../../base/core/policy.ts'
import { sampled } from '../../base/core/segment.ts'
import { draw, tokenizerOf } from './draw.ts'
import { drawInForm } from './draw-form.ts'
import { EmbeddedWeights } from './inside.ts'
import { copyModel, type EmbeddedModel, openModel } from './model.ts'
import { isByteToken } from './vocabulary.ts'

/** Options of an embedded policy. */
export interface EmbeddedPolicyOptions {
  /** The folder its tokenizer and template lie in, for whoever renders for it. */
  readonly folder?: string
  /** Seconds on a clock that never runs backwards; samples are recorded as taking none without it. */
  readonly clock?: () => number
  /** Whether disposing of the policy ends the model too. @default true */
  readonly ownsModel?: boolean
  /** Called once if an opening consists of words that the model does not know. */
  readonly warn?: (message: string) => void
}

/** The policy that runs inside, with the model behind it: trainers change its weights. */
export interface EmbeddedPolicy extends Policy {
  readonly model: EmbeddedModel
  readonly inside: EmbeddedWeights
}

/** Whether a policy samples from a model that the embedded trainer can change. */
export function isEmbedded(policy: Policy): policy is EmbeddedPolicy {
  return policy.inside instanceof EmbeddedWeights
}

/** A policy that samples from an embedded model; its version is the model's. */
export function embeddedPolicy(
  model: EmbeddedModel,
  options: EmbeddedPolicyOptions = {},
): EmbeddedPolicy {
  const { folder, clock = () => 0, ownsModel = true, warn } = options
  const name = folder === undefined ? 'embedded' : `embedded:${folder}`
  // A pretrained model knows every word.
  let isChecked = warn === undefined || model.base !== undefined
  return {
    name,
    capabilities,
    model,
    inside: new EmbeddedWeights(model, {
      async reopen(checkpoint) {
        const opened = await openModel({ folder: checkpoint }, { device: model.wanted })
        return embeddedPolicy(opened, { ...options, folder: checkpoint, ownsModel: true })
      },
      async copy() {
        const copy = await copyModel(model)
        // Threads that wait for each other in every token would wait for those of the trainer.
        await copy.useThreads(Math.ceil(copy.threads / 2))
        return embeddedPolicy(copy, { ...options, ownsModel: true })
      },
    }),
    async sample(request, call) {
      if (!isChecked && request.key.turn === 0) {
        isChecked = true
        const problem = strangeWords(model, request.prompt.ids)
        if (problem)
          warn?.(`${problem} to ${name}: \`espalier teach\` makes a model that knows them.`)
      }
      return await sample(request, call, { model, clock })
    },
    async score(ids, from, { temperature }, call) {
      checkScored(ids.length, from)
      const before = model.version()
      const { logprobs } = await model.score(ids, from, { temperature }, call)
      const version = { from: before, to: model.version() }
      return { logprobs, basis: basisAt(temperature), version }
    },
    async describe() {
      return { context: model.shape.context, ...(folder !== undefined && { model: folder }) }
    },
    async [Symbol.asyncDispose]() {
      if (ownsModel) await model[Symbol.asyncDispose]()
    },
  }
}

const capabilities: PolicyCapabilities = {
  ids: true,
  logprobs: true,
  basis: 'tempered',
  topLogprobs: 256,
  entropies: true,
  score: true,
  several: false,
  abort: true,
  seed: true,
  version: true,
  stream: true,
  forms: 'any',
}

/** If a larger share of an opening is spelled in bytes, a warning is given. */
const bearableBytes = 0.2

/** In words, the share of an opening that is spelled in bytes; undefined if it is small. */
function strangeWords(model: EmbeddedModel, opening: Int32Array): string | undefined {
  const tokenizer = tokenizerOf(model)
  const bytes = opening.filter(id => isByteToken(tokenizer.tokenOf(id))).length
  if (bytes <= bearableBytes * opening.length) return undefined
  return `${Math.round((100 * bytes) / opening.length)} % of the opening are bytes, not words,`
}

/** Greedy tokens have the log-probabilities of temperature 1. */
function basisAt(temperature: number): 'tempered' | 'raw' {
  return temperature === 0 ? 'raw' : 'tempered'
}

function checkScored(length: number, from: number): void {
  if (Number.isInteger(from) && from >= 1 && from <= length) return
  throw new RangeError(`Scoring ${length} tokens must begin at place 1 to ${length}, got ${from}.`)
}

async function sample(
  request: SampleRequest,
  call: Call,
  { model, clock }: { readonly model: EmbeddedModel; readonly clock: () => number },
): Promise<TokenSample> {
  const started = clock()
  const prompt = request.prompt.ids
  const { form } = request
  const drawn = form
    ? await drawInForm(model, { ...request, prompt, form }, call)
    : await draw(model, { ...request, prompt }, call)
  const { ids, logprobs, entropies, top, finish, version, cachedTokens } = drawn
  return {
    kind: 'tokens',
    segment: sampled({
      ids,
      logprobs,
      entropies,
      basis: basisAt(request.sampling.temperature),
      version: { from: version, to: version },
      ...(top && { top }),
    }),
    finish,
    usage: {
      prompt: prompt.length,
      sampled: ids.length,
      cached: cachedTokens,
      seconds: clock() - started,
    },
  }
}
