import type { z } from 'zod'
import { didYouMean } from '../names/nearest.ts'
import { SettingError } from '../names/setting-error.ts'
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
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue
    if (!Object.hasOwn(settings, name)) {
      const hint = didYouMean(name, Object.keys(settings)) || ' espalier --help config lists them.'
      throw new SettingError(`${placeOf(name)}: no setting called "${name}".${hint}`)
    }
    checked[name] = checkSetting(name as SettingName, value, `${placeOf(name)}: ${name}`)
  }
  return checked as SettingsInput
}

/** Checks one value. */
export function checkSetting(name: SettingName, value: unknown, from: string): unknown {
  const { schema, argument, help } = settings[name] as Setting
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const problems = result.error.issues.map(describeIssue)
  const wanted = argument ? ` (expected ${argument === 'JSON' ? `JSON. ${help}` : argument})` : ''
  throw new SettingError(
    `${from}: ${JSON.stringify(value)} is not possible${wanted}: ${problems.join('; ')}`,
  )
}

/** What is wrong with a value; of one that may be several things, what is wrong with each. */
function describeIssue(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    return issue.errors.map(issues => issues.map(describeIssue).join('; ')).join(', or ')
  }
  return `${issue.path.length > 0 ? `${issue.path.join('.')}: ` : ''}${issue.message}`
}
