import type { Filter } from '../../../base/core/group.ts'
import { otherOptions } from '../../settings/option-kinds.ts'
import type { Setting } from '../../settings/setting.ts'
import { settings } from '../../settings/settings.ts'
import { isUserPart } from '../../settings/user-part.ts'
import { isPast, readChoices } from '../open-seats.ts'
import type { RollOptions } from '../roll-options.ts'

/** Who uses an option; see `Setting.usedIn`. */
function userOf(name: string): Setting['usedIn'] | undefined {
  const records: Readonly<Record<string, Pick<Setting, 'usedIn'>>> = {
    ...settings,
    ...otherOptions,
  }
  return Object.hasOwn(records, name) ? records[name]!.usedIn : undefined
}

/** What is to be spread. */
export interface Spreading {
  readonly environment: object | string
  readonly options: RollOptions
}

/** The options that threads open a run with. */
export function threadOptions(options: RollOptions): RollOptions {
  const own = Object.entries(options).filter(([name]) => userOf(name) === 'threads')
  return Object.fromEntries(own) as Partial<RollOptions> as RollOptions
}

/**
 * What threads weigh whole groups with. Filters that are files or objects may remember what they judged, so
 * they stay in one place, and so do those that judge by the moment.
 */
export function weighingOf(
  { advantage, weighting, filters = [] }: RollOptions,
  opened: readonly Filter[],
): {
  readonly isNamed: boolean
  readonly options: Pick<RollOptions, 'advantage' | 'weighting' | 'filters'>
} {
  const isNamed =
    filters.every(filter => typeof filter === 'string' && !isUserPart(filter)) &&
    !opened.some(({ ofTheMoment }) => ofTheMoment)
  const options = {
    ...(advantage !== undefined && { advantage }),
    ...(weighting !== undefined && { weighting }),
    filters,
  }
  return { isNamed, options: isNamed ? options : {} }
}

/** Why a run stays in one thread, in words; undefined if it may use several. */
export function reasonToStay({ environment, options }: Spreading): string | undefined {
  if (typeof environment !== 'string') {
    return 'its environment was given as an object, and a thread opens what it uses by name: give it as ./file.ts#export'
  }
  for (const [name, value] of Object.entries(options)) {
    const owner = userOf(name)
    if (value === undefined || value === false || owner === undefined || owner === 'run') continue
    if (owner === 'one thread' && !isEmptyList(value)) {
      return `${name} is about every sample of the run, and works in one thread`
    }
    if (owner === 'threads' && !isPlain(value)) {
      return `${name} was given as an object or a function, and a thread opens what it uses by name`
    }
  }
  return seatsOfPast(options) ? 'seats that past policies play are drawn in one thread' : undefined
}

/** The user's own files in a run: each thread has its own copy of their module state. */
export function ownFiles({ environment, options }: Spreading): readonly string[] {
  return [environment, Object.values(threadOptions(options))]
    .flat(3)
    .filter(part => typeof part === 'string')
    .filter(isCode)
}

const isCode = (part: string): boolean => isUserPart(part) && /\.[cm]?[jt]sx?(#|$)/.test(part)

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

function isPlain(value: unknown): boolean {
  try {
    structuredClone(value)
    return true
  } catch {
    return false
  }
}

function seatsOfPast({ seats }: RollOptions): boolean {
  return [...readChoices(seats ?? []).values()].some(isPast)
}
