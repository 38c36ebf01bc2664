import type { Call } from '../../base/core/call.ts'
import type { RewardFunction, RewardInput } from '../../base/core/reward.ts'

/** What scorers of other frameworks get. */
export interface Scored {
  /** What the task asked: its `input`, `prompt` or `question`, else all of its data. */
  readonly input: unknown
  /** The result: the text that an agent returned, else the policy's last words. */
  readonly output: unknown
  /** The right result: the task's `expected` or `answer`. */
  readonly expected: unknown
}

/**
 * A scorer in one of the usual shapes: a function of `{ input, output, expected }` (evalite, autoevals,
 * Braintrust), an object with one (evalite), or one with `run` (Mastra). It gives a number or an
 * object with a `score`.
 */
export type ScorerLike =
  | ((asked: never) => unknown)
  | { readonly scorer: (asked: never) => unknown }
  | { run(asked: never): unknown }

/** Where a scorer's fields come from, if not from the usual ones. */
export type ScorerFields = { readonly [Name in keyof Scored]?: (input: RewardInput) => unknown }

/** A scorer of another framework as a reward, unchanged. */
export function scorer(scored: ScorerLike, fields: ScorerFields = {}): RewardFunction {
  if (!isScorer(scored)) {
    throw new TypeError('A scorer is a function, or an object with a function scorer or run.')
  }
  const ask = askerOf(scored)
  return async (input, call) => {
    const usual = fieldsOf(input)
    const asked = {
      input: fields.input ? fields.input(input) : usual.input,
      output: fields.output ? fields.output(input) : usual.output,
      expected: fields.expected ? fields.expected(input) : usual.expected,
    }
    return scoreIn(await ask({ ...input, ...asked, groundTruth: asked.expected }, call))
  }
}

/** Whether something a file exports can score: a function, or an object of a known shape. */
export function isScorer(value: unknown): value is ScorerLike {
  if (typeof value === 'function') return true
  if (typeof value !== 'object' || value === null) return false
  return (
    typeof Reflect.get(value, 'scorer') === 'function' ||
    typeof Reflect.get(value, 'run') === 'function'
  )
}

type Ask = (asked: RewardInput & Scored & { groundTruth: unknown }, call: Call) => unknown

function askerOf(scored: ScorerLike): Ask {
  // Pass both arguments; a foreign scorer reads only the first.
  if (typeof scored === 'function')
    return (asked, call) => Reflect.apply(scored, null, [asked, call])
  if ('scorer' in scored) return askerOf(scored.scorer)
  return asked => scored.run(asked as never)
}

function fieldsOf({ task: { data }, report, answer }: RewardInput): Scored {
  const field = (...names: readonly string[]): unknown =>
    names.map(name => (isRecord(data) ? data[name] : undefined)).find(value => value !== undefined)
  return {
    input: field('input', 'prompt', 'question') ?? data,
    output: typeof report === 'string' ? report : answer,
    expected: field('expected', 'answer'),
  }
}

function scoreIn(result: unknown): number {
  const score = isRecord(result) ? result.score : result
  if (typeof score === 'boolean') return Number(score)
  if (typeof score === 'number' && Number.isFinite(score)) return score
  const reason = isRecord(result) && result.error ? ` (${String(result.error)})` : ''
  const given = typeof score === 'string' ? `the text ${JSON.stringify(score)}` : String(score)
  throw new TypeError(`the scorer gave ${given}, not a finite number${reason}`)
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
