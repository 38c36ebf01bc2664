import type { VersionRange } from '../../../base/core/segment.ts'
import type { ReadPassage, ReadPath, ReadSpan } from '../reader.ts'

/** A sequence as most trainers keep it: a prompt, a response, which tokens are the policy's. */
export interface TokenRow {
  readonly prompt: Int32Array
  readonly response: Int32Array
  /** 1 if the response's token is trained. */
  readonly mask: Uint8Array
  /** Of the response; absent if there are none. */
  readonly logprobs?: Float32Array
  /** What each trained token of the response is worth; absent if the file does not say. */
  readonly advantages?: ArrayLike<number>
  readonly version?: number
}

/**
 * The path of a row. Such rows do not say who put a token there: what is trained or has a
 * log-probability was sampled, the rest was observed.
 */
export function toPath(row: TokenRow): ReadPath {
  const { prompt, response, mask, logprobs, advantages, version = 0 } = row
  const ids = new Int32Array(prompt.length + response.length)
  ids.set(prompt)
  ids.set(response, prompt.length)
  const all = new Float32Array(ids.length)
  const isSampled = Uint8Array.from(mask, (bit, token) =>
    bit === 1 || (logprobs !== undefined && logprobs[token] !== 0) ? 1 : 0,
  )
  isSampled.forEach((bit, token) => {
    if (bit === 1) all[prompt.length + token] = logprobs?.[token] ?? Number.NaN
  })
  const range = { from: version, to: version }
  const spans: ReadSpan[] = []
  if (prompt.length > 0)
    spans.push({ start: 0, end: prompt.length, origin: 'prompt', version: range })
  for (let token = 0; token < response.length; token++) {
    const origin = isSampled[token] === 1 ? 'sampled' : 'observed'
    extend(spans, { at: prompt.length + token, origin, version: range })
  }
  if (!advantages) return { ids, logprobs: all, spans }
  const passages = runsOfMask(mask, token => advantages[token]!, prompt.length)
  return { ids, logprobs: all, spans, passages }
}

/** The trained tokens of a row as its trajectory alone passes through them; the mask begins `at` some tokens. */
export function runsOfMask(
  mask: Uint8Array,
  advantageAt: (token: number) => number,
  at = 0,
): NonNullable<ReadPath['passages']> {
  const runs: { start: number; end: number; value: readonly ReadPassage[] }[] = []
  mask.forEach((bit, token) => {
    if (bit === 0) return
    const advantage = advantageAt(token)
    const last = runs.at(-1)
    const start = at + token
    if (last?.end === start && last.value[0]!.advantage === advantage) last.end++
    else runs.push({ start, end: start + 1, value: [{ advantage, share: 1 }] })
  })
  return runs
}

function extend(
  spans: ReadSpan[],
  { at, origin, version }: { at: number; origin: ReadSpan['origin']; version: VersionRange },
): void {
  const last = spans.at(-1)
  if (last && last.origin === origin) spans[spans.length - 1] = { ...last, end: at + 1 }
  else spans.push({ start: at, end: at + 1, origin, version })
}

/** Rows that are one sequence with different tokens trained become one again. */
export function mergeRows(rows: readonly TokenRow[]): TokenRow {
  const [first, ...rest] = rows as readonly [TokenRow, ...TokenRow[]]
  if (rest.length === 0) return first
  const trains = (token: number): TokenRow | undefined => rows.find(row => row.mask[token] === 1)
  return {
    ...first,
    mask: first.mask.map((_, token) => (trains(token) ? 1 : 0)),
    ...(first.advantages && {
      advantages: Array.from(first.mask, (_, token) => trains(token)?.advantages?.[token] ?? 0),
    }),
  }
}

/** One call of a policy: all it was given, and what it sampled. */
export interface StepTokens {
  readonly prompt: Int32Array
  readonly response: Int32Array
  readonly logprobs?: Float32Array
  /** What each token of the response is worth; absent if the file does not say. */
  readonly advantages?: ArrayLike<number>
  readonly version?: number
}

/** The paths of calls in sequence: a call that goes on from the last extends it, else one begins. */
export function joinSteps(steps: readonly StepTokens[]): readonly ReadPath[] {
  const paths: StepTokens[][] = []
  for (const step of steps) {
    const current = paths.at(-1)
    const last = current?.at(-1)
    if (current && last && continues(last, step)) current.push(step)
    else paths.push([step])
  }
  return paths.map(stepsToPath)
}

function continues(last: StepTokens, next: StepTokens): boolean {
  const { prompt, response } = last
  const length = prompt.length + response.length
  if (next.prompt.length < length) return false
  return (
    prompt.every((id, index) => next.prompt[index] === id) &&
    response.every((id, index) => next.prompt[prompt.length + index] === id)
  )
}

function stepsToPath(steps: readonly StepTokens[]): ReadPath {
  const last = steps.at(-1)!
  const ids = new Int32Array(last.prompt.length + last.response.length)
  ids.set(last.prompt)
  ids.set(last.response, last.prompt.length)
  const logprobs = new Float32Array(ids.length)
  const spans: ReadSpan[] = []
  const passages = steps.flatMap(({ prompt, response, advantages }) =>
    advantages
      ? runsOfMask(new Uint8Array(response.length).fill(1), at => advantages[at]!, prompt.length)
      : [],
  )
  let read = 0
  for (const { prompt, response, logprobs: own, version = 0 } of steps) {
    const range = { from: version, to: version }
    if (prompt.length > read) {
      const origin = read === 0 ? 'prompt' : 'observed'
      spans.push({ start: read, end: prompt.length, origin, version: range })
    }
    const end = prompt.length + response.length
    if (own) logprobs.set(own, prompt.length)
    else logprobs.fill(Number.NaN, prompt.length, end)
    if (response.length > 0)
      spans.push({ start: prompt.length, end, origin: 'sampled', version: range })
    read = end
  }
  return { ids, logprobs, spans, ...(passages.length > 0 && { passages }) }
}
