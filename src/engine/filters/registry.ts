import type { Filter } from '../../base/core/group.ts'
import { findPart, type PartShape } from '../../base/core/names/part-options.ts'
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

/** Options as they were read and checked. */
type Values = Record<never, never>

/** From what a dropped trajectory is removed; not an option of filters of whole groups. */
const from = ['loss', 'loss-and-statistics'] as const

interface FilterFactory extends PartShape {
  readonly about: string
  open(values: Values, needs: FilterNeeds): Filter
}

/** The filters that can be named. */
export const filterFactories: Readonly<Record<string, FilterFactory>> = {
  'void-turns': {
    about: 'A turn with neither a call nor an answer.',
    options: { from },
    variants: ['general', 'simpletir'],
    open: values => voidTurns(values),
  },
  'dead-loops': {
    about: 'The same call again and again.',
    options: { calls: 'several', from },
    open: values => deadLoops(values),
  },
  repetition: {
    about: 'Text that repeats itself or hesitates without end.',
    options: { length: 'count', share: 'share', hesitation: 'amount', from },
    open: values => repetitions(values),
  },
  'premature-end': {
    about: 'Ended before it began.',
    options: { turns: 'count', from },
    open: values => prematureEnd(values),
  },
  overlong: {
    about: 'Cut by a limit.',
    options: { from },
    open: values => overlong(values),
  },
  guarded: {
    about: 'Stopped by a guard.',
    options: { from },
    open: values => guarded(values),
  },
  'equal-rewards': {
    about: 'Groups whose rewards, or a part of them, are all equal.',
    options: { spread: 'amount', part: 'text' },
    open: values => equalRewards(values),
  },
  duplicates: {
    about: 'The same tokens as a sibling; changes what is maximised.',
    options: { from },
    open: values => duplicates(values),
  },
  'tool-errors': {
    about: 'Most calls went wrong.',
    options: { share: 'share', calls: 'count', from },
    open: values => toolErrors(values),
  },
  'malformed-calls': {
    about: 'Most calls could not be read.',
    options: { share: 'share', from },
    open: values => malformedCalls(values),
  },
  stale: {
    about: 'Sampled by weights that are too old.',
    options: { versions: 'whole', from },
    open: (values, { version }) => stale({ ...values, current: version }),
  },
  'failed-members': {
    about: 'Groups of which too few were scored.',
    options: { least: 'count' },
    open: values => failedMembers(values),
  },
  'message-sanity': {
    about: 'Conversations no trainer should see.',
    options: { from },
    open: values => messageSanity(values),
  },
  'token-soup': {
    about: 'Turns that are no language.',
    options: { from },
    open: values => tokenSoup(values),
  },
}

/** Opens a filter as it is named on a command line: `void-turns:simpletir,from=loss-and-statistics`. */
export function openFilter(text: string, needs: FilterNeeds): Filter {
  const { factory, variant: definition, values } = findPart('filter', text, filterFactories)
  return factory.open({ ...values, ...(definition !== undefined && { definition }) }, needs)
}
