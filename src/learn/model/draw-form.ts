import type { Call } from '../../base/core/call.ts'
import type { Form } from '../../base/core/policy.ts'
import { random, seedOf } from '../../base/math/random.ts'
import { fitOf } from '../../engine/policies/form/fit.ts'
import { type Drawn, type DrawRequest, tokenizerOf } from './draw.ts'
import type { EmbeddedModel } from './model.ts'

/** Candidates that are looked at first: a form mostly allows one of the likeliest. */
const firstLooked = 256

interface Candidate {
  readonly id: number
  readonly logprob: number
}

/**
 * Draws a text of a form, token by token, from what is left of the model's distribution if only tokens count that the
 * form allows. Log-probabilities are those of the whole distribution, which is what a trainer computes; top-p, top-k
 * and min-p cut nothing here.
 */
export async function drawInForm(
  model: EmbeddedModel,
  request: DrawRequest & { readonly form: Form },
  { signal }: Call,
): Promise<Drawn> {
  const { prompt, maxTokens, form, sampling, stopIds, session, watch } = request
  const { decode } = tokenizerOf(model)
  const ids: number[] = []
  const logprobs: number[] = []
  const entropies: number[] = []
  const numbers = random(seedOf(request.seed, 'form'))
  const { begun = '' } = form
  let [version, cachedTokens] = [0, 0]
  let finish: Drawn['finish'] = { kind: 'length' }
  const all = new Int32Array(prompt.length + maxTokens)
  all.set(prompt)
  const textOf = (tokens: readonly number[]): string => begun + decode(Int32Array.from(tokens))
  let text = begun
  /** A token that says nothing, or a part of a character, would go on for ever. */
  const allows = (id: number): boolean => {
    const next = textOf([...ids, id])
    if (next.length <= text.length || next.endsWith('\uFFFD')) return false
    const fit = fitOf(form, next)
    return fit.canGrow || fit.isWhole
  }
  while (ids.length < maxTokens) {
    text = textOf(ids)
    const { isWhole } = fitOf(form, text)
    const asked = {
      prompt: all.subarray(0, prompt.length + ids.length),
      maxTokens: 1,
      temperature: sampling.temperature,
      stop: stopIds,
      seed: request.seed,
      ...(session !== undefined && { session }),
    }
    const look = async (width: number): Promise<Candidate | undefined> => {
      const step = await model.sample({ ...asked, topLogprobs: width }, { signal })
      version = step.version
      cachedTokens = ids.length === 0 ? step.cachedTokens : cachedTokens
      entropies[ids.length] = step.entropies[0]!
      const found = step.topLogprobs?.[0] ?? []
      return inDrawnOrder(found, sampling.temperature, numbers).find(({ id }) =>
        stopIds.includes(id) ? isWhole : allows(id),
      )
    }
    const { vocabulary } = model.shape
    const chosen = (await look(Math.min(firstLooked, vocabulary))) ?? (await look(vocabulary))
    if (!chosen) throw new Error('no token of the vocabulary goes on in the form that is asked for')
    all[prompt.length + ids.length] = chosen.id
    ids.push(chosen.id)
    logprobs.push(chosen.logprob)
    if (stopIds.includes(chosen.id)) {
      finish = { kind: 'stop' }
      break
    }
    const guard = watch?.({ ids: Int32Array.from(ids) })
    if (guard === undefined) continue
    finish = { kind: 'guard', guard }
    break
  }
  return {
    ids: Int32Array.from(ids),
    logprobs: Float32Array.from(logprobs),
    entropies: Float32Array.from(entropies.slice(0, ids.length)),
    finish,
    version,
    cachedTokens,
  }
}

/** Candidates in an order in which the first that is allowed is drawn from all that are: by their perturbed log-probabilities. */
function inDrawnOrder(
  candidates: readonly Candidate[],
  temperature: number,
  numbers: () => number,
): readonly Candidate[] {
  if (temperature === 0) return candidates.slice().sort((a, b) => b.logprob - a.logprob)
  const keyed = candidates.map(each => ({
    each,
    key: each.logprob - Math.log(-Math.log(Math.max(numbers(), Number.MIN_VALUE))),
  }))
  return keyed.sort((a, b) => b.key - a.key).map(({ each }) => each)
}
