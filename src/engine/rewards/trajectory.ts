import { isDeepStrictEqual } from 'node:util'
import type { RewardFunction } from '../../base/core/reward.ts'
import type { CallRecord } from '../../base/core/tool.ts'

/**
 * Which calls are meant: those of tools whose name fits. `*` stands for any text, `?` for any
 * character, and upper and lower case are the same, in `name` as in `pattern`.
 */
export type WhichCalls = { readonly name: string } | { readonly pattern: string }

interface Bounds {
  readonly min?: number
  readonly max?: number
}

type Arguments = Readonly<Record<string, unknown>>

type Plain =
  | {
      readonly type: 'trajectory:tool-used'
      /** A list names tools that all have to be used. */
      readonly value: string | readonly string[] | (WhichCalls & Bounds)
    }
  | {
      readonly type: 'trajectory:tool-sequence'
      readonly value:
        | readonly Step[]
        | { readonly steps: readonly Step[]; readonly mode?: SequenceMode }
    }
  | {
      readonly type: 'trajectory:tool-args-match'
      readonly value: WhichCalls &
        ({ readonly args: unknown } | { readonly arguments: unknown }) & {
          /** Whether further arguments may be there. @default 'partial' */
          readonly mode?: 'partial' | 'exact'
          /** Arguments that are ignored if they have this value. */
          readonly defaults?: Arguments
          /** Arguments that are ignored; `*` and `?` as in names. */
          readonly ignore?: string | readonly string[]
        }
    }
  | {
      readonly type: 'trajectory:step-count'
      readonly value: Partial<Record<'name' | 'pattern', string>> & Bounds
    }

type Step = string | WhichCalls

/** `in_order`: in this order, other calls may come between; `exact`: these calls and no others. */
type SequenceMode = 'in_order' | 'exact'

/** An assertion with `not-` before its name: 1 if it does not hold. */
type Negated = Plain extends infer Each
  ? Each extends Plain
    ? { readonly type: `not-${Each['type']}`; readonly value: Each['value'] }
    : never
  : never

/** promptfoo's assertions about a trajectory; each is 1 if it holds and 0 if it does not. */
export type TrajectoryAssertion = Plain | Negated

/** The names of the assertions, as promptfoo writes them behind `trajectory:`. */
export const trajectoryAssertions = [
  'tool-used',
  'tool-sequence',
  'tool-args-match',
  'step-count',
] as const

/** An assertion of promptfoo's about the calls of a trajectory, as a reward. */
export function assertion(asserted: TrajectoryAssertion): RewardFunction {
  const isNot = asserted.type.startsWith('not-')
  const plain = { ...asserted, type: asserted.type.replace(/^not-/, '') } as Plain
  // A negated list forbids all of its tools; it is not enough that one is unused.
  const holds =
    isNot && plain.type === 'trajectory:tool-used' && isNames(plain.value)
      ? anyUsed(plain.value)
      : checkOf(plain)
  return ({ calls }) => Number(holds(calls) !== isNot)
}

type Check = (calls: readonly CallRecord[]) => boolean

function checkOf(asserted: Plain): Check {
  switch (asserted.type) {
    case 'trajectory:tool-used':
      return usedCheck(asserted.value)
    case 'trajectory:tool-sequence': {
      const { value } = asserted
      return 'steps' in value ? sequenceCheck(value.steps, value.mode) : sequenceCheck(value)
    }
    case 'trajectory:tool-args-match':
      return argumentsCheck(asserted.value)
    case 'trajectory:step-count':
      return countCheck(asserted.value)
    default:
      throw new TypeError(
        `there is no assertion ${String((asserted as { type: unknown }).type)}; known: ${trajectoryAssertions.map(name => `trajectory:${name}`).join(', ')}`,
      )
  }
}

type Names = string | readonly string[]

function isNames(value: unknown): value is Names {
  return typeof value === 'string' || Array.isArray(value)
}

function matchersOf(names: Names): readonly Check[] {
  const list = typeof names === 'string' ? [names] : names
  if (list.length === 0) throw new TypeError('trajectory:tool-used names no tool')
  return list.map(name => {
    const fits = matcherOf(name)
    return calls => calls.some(fits)
  })
}

function anyUsed(names: Names): Check {
  const used = matchersOf(names)
  return calls => used.some(isUsed => isUsed(calls))
}

function usedCheck(value: Names | (WhichCalls & Bounds)): Check {
  if (isNames(value)) {
    const used = matchersOf(value)
    return calls => used.every(isUsed => isUsed(calls))
  }
  const fits = matcherOf(value)
  const { min = 1, max } = value
  return calls => isWithin(calls.filter(fits).length, { min, ...(max !== undefined && { max }) })
}

function sequenceCheck(steps: readonly Step[], mode: SequenceMode = 'in_order'): Check {
  if (steps.length === 0) throw new TypeError('trajectory:tool-sequence has no steps')
  const fits = steps.map(matcherOf)
  if (mode === 'exact') {
    return calls =>
      calls.length === fits.length && fits.every((isFit, index) => isFit(calls[index]!))
  }
  return calls => {
    let next = 0
    for (const call of calls) if (fits[next]?.(call)) next++
    return next === fits.length
  }
}

function argumentsCheck(
  value: Extract<Plain, { type: 'trajectory:tool-args-match' }>['value'],
): Check {
  const fits = matcherOf(value)
  const { mode = 'partial', defaults = {}, ignore = [] } = value
  const ignored = typeof ignore === 'string' ? [ignore] : ignore
  const isIgnored = ([key]: Entry): boolean =>
    ignored.some(named => named === key || (/[*?]/.test(named) && isLike(key, named)))
  const isDefault = ([key, given]: Entry): boolean =>
    Object.hasOwn(defaults, key) && isDeepStrictEqual(given, defaults[key])
  const expected = without('args' in value ? value.args : value.arguments, isIgnored)
  return calls =>
    calls.filter(fits).some(({ input }) => {
      const given = without(input, entry => isIgnored(entry) || isDefault(entry))
      return mode === 'exact' ? isDeepStrictEqual(given, expected) : isPart(expected, given)
    })
}

function countCheck(value: Extract<Plain, { type: 'trajectory:step-count' }>['value']): Check {
  const { name, pattern, ...bounds } = value
  if (bounds.min === undefined && bounds.max === undefined) {
    throw new TypeError('trajectory:step-count needs min or max')
  }
  const which = pattern ?? name
  const fits = which === undefined ? () => true : matcherOf(which)
  return calls => isWithin(calls.filter(fits).length, bounds)
}

function matcherOf(which: Step): (call: CallRecord) => boolean {
  const named = typeof which === 'string' ? which : 'pattern' in which ? which.pattern : which.name
  if (!named) throw new TypeError('an assertion about calls needs a name or a pattern')
  return ({ tool }) => isLike(tool, named)
}

/**
 * Whether a name matches a pattern. Only the last star is ever retried, so that patterns with many stars
 * stay fast.
 */
function isLike(name: string, pattern: string): boolean {
  const [given, wanted] = [name.toLowerCase(), pattern.toLowerCase()]
  let star = -1
  let behind = 0
  let place = 0
  for (let at = 0; at < given.length; ) {
    const sign = wanted[place]
    if (sign === '*') {
      star = place++
      behind = at
    } else if (sign === '?' || sign === given[at]) {
      place++
      at++
    } else if (star >= 0) {
      place = star + 1
      at = ++behind
    } else return false
  }
  return /^\**$/.test(wanted.slice(place))
}

function isWithin(count: number, { min = 0, max = Number.POSITIVE_INFINITY }: Bounds): boolean {
  return count >= min && count <= max
}

type Entry = readonly [key: string, value: unknown]

/** An object without some of its fields; anything else as it is. */
function without(value: unknown, isLeftOut: (entry: Entry) => boolean): unknown {
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).filter(entry => !isLeftOut(entry)))
}

/** Whether `whole` contains everything in `part`; lists must have equal length. */
function isPart(part: unknown, whole: unknown): boolean {
  if (Array.isArray(part)) {
    const isAsLong = Array.isArray(whole) && whole.length === part.length
    return isAsLong && part.every((each, index) => isPart(each, whole[index]))
  }
  if (!isObject(part)) return isDeepStrictEqual(part, whole)
  if (!isObject(whole)) return false
  return Object.entries(part).every(
    ([key, value]) => Object.hasOwn(whole, key) && isPart(value, whole[key]),
  )
}

function isObject(value: unknown): value is Arguments {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
