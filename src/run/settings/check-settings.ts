import type { z } from 'zod'
import { didYouMean } from '../../base/core/names/nearest.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Setting } from './setting.ts'
import { type SettingName, type SettingsInput, settings } from './settings.ts'

/** Where a setting was written, for errors: one place for all, or one for each. */
export type SettingPlace = string | ((name: string) => string)

/** Checks settings from one place; unknown keys and wrong values say what was possible. */
export function checkSettings(
  values: Readonly<Record<string, unknown>>,
  from: SettingPlace,
): SettingsInput {
  const placeOf = (name: string): string => (typeof from === 'string' ? from : from(name))
  const checked: Record<string, unknown> = {}
  const problems: string[] = []
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue
    try {
      checked[name] = checkNamed(name, value, placeOf(name))
    } catch (error) {
      if (!(error instanceof SettingError)) throw error
      problems.push(error.message)
    }
  }
  // All at once: whoever mends one would only meet the next.
  if (problems.length > 0) throw new SettingError(problems.join('\n'))
  return checked as SettingsInput
}

function checkNamed(name: string, value: unknown, place: string): unknown {
  if (Object.hasOwn(settings, name)) {
    return checkSetting(name as SettingName, value, `${place}: ${name}`)
  }
  const hint = didYouMean(name, Object.keys(settings)) || ' espalier --help config lists them.'
  throw new SettingError(`${place}: no setting called "${name}".${hint}`)
}

/** Checks one value; `or` says in words what else would have been possible. */
export function checkSetting(
  name: SettingName,
  value: unknown,
  from: string,
  or?: string,
): unknown {
  const { schema, argument, help } = settings[name] as Setting
  const wanted = argument ? ` (expected ${argument === 'JSON' ? `JSON. ${help}` : argument})` : ''
  return checkValue(schema, value, { from, wanted, ...(or !== undefined && { or }) })
}

/** Where a value stands, and words for what was possible. */
export interface ValuePlace {
  readonly from: string
  readonly wanted?: string
  readonly or?: string
}

/** Gives the value as a schema reads it, or throws saying what is wrong with it. */
export function checkValue(
  schema: z.ZodType,
  value: unknown,
  { from, wanted = '', or }: ValuePlace,
): unknown {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const keys = keysIn(schema as SchemaParts)
  const problems = result.error.issues.map(issue => describeIssue(issue, keys))
  const more = or === undefined ? '' : `; nor is it ${or}`
  throw new SettingError(
    `${from}: ${shownValue(value)} is not possible${wanted}: ${problems.join('; ')}${more}`,
  )
}

/** Most characters of a value that an error repeats. */
const mostShown = 200

/** A value as an error repeats it: as JSON, as far as JSON can say it. */
export function shownValue(value: unknown): string {
  const plain = plainOf(value)
  // What JSON cannot say is in words, which need no quotes.
  const text = plain === value ? (jsonOf(value) ?? String(value)) : String(plain)
  return text.length > mostShown ? `${text.slice(0, mostShown)}…` : text
}

function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, (_, each: unknown) => plainOf(each))
  } catch {
    return 'an object'
  }
}

function plainOf(value: unknown): unknown {
  if (typeof value === 'function') return 'a function'
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value
}

/** What is wrong with a value; of one that may be several things, what is wrong with each. */
function describeIssue(issue: z.core.$ZodIssue, keys: readonly string[]): string {
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    const ways = issue.errors.map(issues => issues.map(each => describeIssue(each, keys)))
    return ways.map(problems => problems.join('; ')).join(', or ')
  }
  const path = issue.path.length > 0 ? `${issue.path.join('.')}: ` : ''
  return `${path}${issue.message}${issue.code === 'unrecognized_keys' ? hintFor(issue.keys, keys) : ''}`
}

function hintFor([unknown = '']: readonly string[], keys: readonly string[]): string {
  return `.${didYouMean(unknown, keys) || ` Known: ${keys.join(', ')}`}`
}

/** The part of a schema that says what is in it. */
interface SchemaParts {
  readonly shape?: Readonly<Record<string, SchemaParts>>
  readonly options?: readonly SchemaParts[]
  readonly element?: SchemaParts
  unwrap?(): SchemaParts
}

/** The keys of the objects that a schema takes, nested ones too. */
function keysIn({ shape, options, element, unwrap }: SchemaParts): readonly string[] {
  if (shape) return Object.entries(shape).flatMap(([name, field]) => [name, ...keysIn(field)])
  if (Array.isArray(options)) return options.flatMap(keysIn)
  if (element) return keysIn(element)
  return unwrap ? keysIn(unwrap()) : []
}
