import { isDeepStrictEqual } from 'node:util'
import type { RewardFunction } from '../core/reward.ts'
import type { CallRecord } from '../core/tool.ts'

/** Which calls are meant: those of a tool, or of tools whose names fit a pattern with `*`. */
interface Which {
  readonly name?: string
  readonly pattern?: string
}

interface Bounds {
  readonly min?: number
  readonly max?: number
}

/** promptfoo's assertions about a trajectory; each is 1 where it holds and 0 where it does not. */
export type TrajectoryAssertion =
  | {
      readonly type: 'trajectory:tool-used'
      readonly value: string | readonly string[] | (Which & Bounds)
    }
  | {
      readonly type: 'trajectory:tool-sequence'
      readonly value:
        | readonly string[]
        | { readonly steps: readonly string[]; readonly mode?: 'in_order' | 'exact' }
    }
  | {
      readonly type: 'trajectory:tool-args-match'
      readonly value: Which & {
        readonly args: Readonly<Record<string, unknown>>
        readonly mode?: 'partial' | 'exact'
      }
    }
  | { readonly type: 'trajectory:step-count'; readonly value: Pick<Which, 'pattern'> & Bounds }

/** The names of the assertions, as promptfoo writes them behind `trajectory:`. */
export const trajectoryAssertions = [
  'tool-used',
  'tool-sequence',
  'tool-args-match',
  'step-count',
] as const

/** An assertion of promptfoo's about the calls of a trajectory, as a reward. */
export function assertion(asserted: TrajectoryAssertion): RewardFunction {
  const holds = checkOf(asserted)
  return ({ calls }) => Number(holds(calls))
}

type Check = (calls: readonly CallRecord[]) => boolean

function checkOf(asserted: TrajectoryAssertion): Check {
  switch (asserted.type) {
    case 'trajectory:tool-used':
      return usedCheck(asserted.value)
    case 'trajectory:tool-sequence': {
      const { value } = asserted
      return 'steps' in value ? sequenceCheck(value.steps, value.mode) : sequenceCheck(value)
    }
    case 'trajectory:tool-args-match': {
      const { args, mode = 'partial', ...which } = asserted.value
      const fits = (input: unknown): boolean =>
        mode === 'exact' ? isDeepStrictEqual(input, args) : isPart(args, input)
      return calls => those(calls, which).some(({ input }) => fits(input))
    }
    case 'trajectory:step-count': {
      const { min, max, ...which } = asserted.value
      return calls =>
        isWithin(those(calls, which).length, { min: min ?? 0, ...(max !== undefined && { max }) })
    }
    default:
      throw new TypeError(
        `there is no assertion ${String((asserted as { type: unknown }).type)}; known: ${trajectoryAssertions.map(name => `trajectory:${name}`).join(', ')}`,
      )
  }
}

function usedCheck(value: string | readonly string[] | (Which & Bounds)): Check {
  if (typeof value === 'string') return usedCheck([value])
  if (isList(value)) return calls => value.every(name => those(calls, { name }).length > 0)
  return calls => isWithin(those(calls, value).length, value)
}

function isList(value: readonly string[] | Which): value is readonly string[] {
  return Array.isArray(value)
}

/** In order, others may stand between; `exact`: these and no others. */
function sequenceCheck(steps: readonly string[], mode: 'in_order' | 'exact' = 'in_order'): Check {
  if (mode === 'exact')
    return calls =>
      isDeepStrictEqual(
        calls.map(({ tool }) => tool),
        [...steps],
      )
  return calls => {
    let next = 0
    for (const { tool } of calls) if (tool === steps[next]) next++
    return next === steps.length
  }
}

function those(calls: readonly CallRecord[], { name, pattern }: Which): readonly CallRecord[] {
  if (name !== undefined) return calls.filter(({ tool }) => tool === name)
  if (pattern === undefined) return calls
  const parts = pattern.split('*')
  return calls.filter(({ tool }) => fits(tool, parts))
}

/**
 * Whether a name is these parts with anything between them. Each part is taken where it stands first,
 * so that no place is looked at twice, however many stars a pattern has.
 */
function fits(name: string, [first = '', ...rest]: readonly string[]): boolean {
  if (!name.startsWith(first)) return false
  const last = rest.pop()
  if (last === undefined) return name === first
  let at = first.length
  for (const part of rest) {
    const found = name.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}

function isWithin(count: number, { min = 1, max = Number.POSITIVE_INFINITY }: Bounds): boolean {
  return count >= min && count <= max
}

/** Whether all that `part` says is also said by `whole`. */
function isPart(part: unknown, whole: unknown): boolean {
  if (typeof part !== 'object' || part === null || Array.isArray(part)) {
    return isDeepStrictEqual(part, whole)
  }
  if (typeof whole !== 'object' || whole === null) return false
  return Object.entries(part).every(([key, value]) => isPart(value, Reflect.get(whole, key)))
}
