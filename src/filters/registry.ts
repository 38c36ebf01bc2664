import type { Filter } from '../core/group.ts'
import { parsePartName, UnknownPartError } from '../core/part-name.ts'
import { duplicates, equalRewards, failedMembers, stale } from './groups.ts'
import { guarded, malformedCalls, overlong, prematureEnd, toolErrors } from './limits.ts'
import { deadLoops, repetitions } from './loops.ts'
import { messageSanity, tokenSoup } from './sanity.ts'
import { voidTurns } from './void-turns.ts'

/** What filters may need to know of the run. */
export interface FilterNeeds {
  /** The policy version that would consume what is judged now. */
  readonly version: () => number
}

/** Options as they were read: each filter checks the words, numbers are checked here. */
type Values = Record<never, never>

interface FilterFactory {
  readonly about: string
  /** Numbers it takes, by name. */
  readonly numbers: readonly string[]
  /** Whether it can say what a dropped trajectory leaves. */
  readonly hasFrom: boolean
  readonly definitions?: readonly string[]
  open(values: Values, needs: FilterNeeds): Filter
}

/** The filters that can be named. */
export const filterFactories: Readonly<Record<string, FilterFactory>> = {
  'void-turns': {
    about: 'A turn with neither a call nor an answer.',
    numbers: [],
    hasFrom: true,
    definitions: ['general', 'simpletir'],
    open: values => voidTurns(values),
  },
  'dead-loops': {
    about: 'The same call again and again.',
    numbers: ['calls'],
    hasFrom: true,
    open: values => deadLoops(values),
  },
  repetition: {
    about: 'Text that repeats itself or hesitates without end.',
    numbers: ['length', 'share', 'hesitation'],
    hasFrom: true,
    open: values => repetitions(values),
  },
  'premature-end': {
    about: 'Ended before it began.',
    numbers: ['turns'],
    hasFrom: true,
    open: values => prematureEnd(values),
  },
  overlong: {
    about: 'Cut by a limit.',
    numbers: [],
    hasFrom: true,
    open: values => overlong(values),
  },
  guarded: {
    about: 'Stopped by a guard.',
    numbers: [],
    hasFrom: true,
    open: values => guarded(values),
  },
  'equal-rewards': {
    about: 'Groups whose rewards are all equal.',
    numbers: ['spread'],
    hasFrom: false,
    open: values => equalRewards(values),
  },
  duplicates: {
    about: 'The same tokens as a sibling.',
    numbers: [],
    hasFrom: true,
    open: values => duplicates(values),
  },
  'tool-errors': {
    about: 'Most calls went wrong.',
    numbers: ['share', 'calls'],
    hasFrom: true,
    open: values => toolErrors(values),
  },
  'malformed-calls': {
    about: 'Most calls could not be read.',
    numbers: ['share'],
    hasFrom: true,
    open: values => malformedCalls(values),
  },
  stale: {
    about: 'Sampled by weights that are too old.',
    numbers: ['versions'],
    hasFrom: true,
    open: (values, { version }) => stale({ ...values, current: version }),
  },
  'failed-members': {
    about: 'Groups of which too few were scored.',
    numbers: ['least'],
    hasFrom: false,
    open: values => failedMembers(values),
  },
  'message-sanity': {
    about: 'Conversations no trainer should see.',
    numbers: [],
    hasFrom: true,
    open: values => messageSanity(values),
  },
  'token-soup': {
    about: 'Turns that are no language.',
    numbers: [],
    hasFrom: true,
    open: values => tokenSoup(values),
  },
}

/** Opens a filter as it is named on a command line: `void-turns:simpletir,from=loss-and-statistics`. */
export function openFilter(text: string, needs: FilterNeeds): Filter {
  const { name, variant, options } = parsePartName(text)
  const factory = Object.hasOwn(filterFactories, name) ? filterFactories[name] : undefined
  if (!factory) throw new UnknownPartError('filter', name, Object.keys(filterFactories))
  const values: Record<string, unknown> = {}
  if (variant !== undefined)
    values.definition = readWord(name, 'definition', variant, factory.definitions ?? [])
  for (const [key, value] of options) {
    if (key === 'from' && factory.hasFrom) {
      values.from = readWord(name, key, value, ['loss', 'loss-and-statistics'])
    } else values[key] = readNumber(name, factory, { key, value })
  }
  return factory.open(values as Values, needs)
}

function readWord(name: string, key: string, value: string, known: readonly string[]): string {
  if (known.includes(value)) return value
  const possible = known.length > 0 ? `: it is ${known.join(' or ')}` : ''
  throw new Error(`filter "${name}" has no ${key} "${value}"${possible}`)
}

function readNumber(
  name: string,
  { numbers, hasFrom }: FilterFactory,
  { key, value }: { readonly key: string; readonly value: string },
): number {
  if (!numbers.includes(key)) {
    const known = [...numbers, ...(hasFrom ? ['from'] : [])].join(', ') || 'none'
    throw new Error(`filter "${name}" has no option "${key}". Known: ${known}.`)
  }
  const number = Number(value)
  if (value !== '' && Number.isFinite(number)) return number
  throw new Error(`filter "${name}": ${key} must be a number, not "${value}"`)
}
