import { z } from 'zod'
import { didYouMean } from '../../base/core/names/nearest.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { checkSetting, checkValue, shownValue } from './check-settings.ts'
import { isObject, openedParts, otherOptions } from './option-kinds.ts'
import { functionOf, type OptionTaker, runCommands, type Setting } from './setting.ts'
import { defaults, type SettingName, settingNames, settings } from './settings.ts'

type OtherName = keyof typeof otherOptions

/** The functions that take a setting as an option of its own name. */
type FunctionsOf<One> = One extends { readonly functions: readonly (infer Named)[] }
  ? Named
  : One extends { readonly inCode: string }
    ? never
    : One extends { readonly commands: readonly (infer Named)[] }
      ? Named extends keyof typeof functionOf
        ? (typeof functionOf)[Named]
        : never
      : OptionTaker

/** The settings that a function takes as options of their own names. */
export type SettingOptionOf<Taker extends OptionTaker> = {
  [Name in SettingName]: Taker extends FunctionsOf<(typeof settings)[Name]> ? Name : never
}[SettingName]

/** The names of the options that a function takes. */
export type OptionOf<Taker extends OptionTaker> =
  | SettingOptionOf<Taker>
  | {
      [Name in OtherName]: Taker extends (typeof otherOptions)[Name]['functions'][number]
        ? Name
        : never
    }[OtherName]

/** Whether a function takes a setting as an option under its own name. */
export function takesSetting(taker: OptionTaker, name: SettingName): boolean {
  return functionsOf(settings[name]).includes(taker)
}

function functionsOf({
  functions,
  inCode,
  commands = runCommands,
}: Setting): readonly OptionTaker[] {
  if (functions) return functions
  if (inCode !== undefined) return []
  const named: Partial<Record<string, OptionTaker>> = functionOf
  return commands.flatMap(command => named[command] ?? [])
}

/** The functions that take an option; none if there is no such option. */
function takersOf(name: string): readonly OptionTaker[] {
  const other = isOther(name) ? otherOptions[name].functions : []
  return isSetting(name) ? functionsOf(settings[name]) : other
}

const isSetting = (name: string): name is SettingName => Object.hasOwn(settings, name)
const isOther = (name: string): name is OtherName => Object.hasOwn(otherOptions, name)

/** A limit, or infinity if there is none. */
const orNone = (limit: z.ZodType) => limit.or(z.literal(Number.POSITIVE_INFINITY))

/** Options that are objects of values: `limits` holds the settings that stand at `limits.NAME`. */
const groups = ['sampling', 'limits'] as const

/** The settings of such an option, by their names in it. */
export function membersOf(group: (typeof groups)[number]): ReadonlyMap<string, SettingName> {
  const members = settingNames.flatMap(name => {
    const [first, own] = (settings[name] as Setting).inCode?.split('.') ?? []
    return first === group && own !== undefined ? [[own, name] as const] : []
  })
  return new Map(members)
}

function groupSchema(group: (typeof groups)[number]): z.ZodType {
  const shape = [...membersOf(group)].map(([own, name]) => {
    const { schema } = settings[name] as Setting
    return [own, (group === 'limits' ? orNone(schema) : schema).optional()]
  })
  return z.strictObject(Object.fromEntries(shape))
}

/** Whether two sets of names are the same one. */
export type AreSame<One, Other> = [One] extends [Other]
  ? [Other] extends [One]
    ? true
    : false
  : false

/**
 * Holds the options of a library call to what flags and config files are held to: a name that it does not
 * take or an impossible value throws, saying what was possible. Options and their names here have to be the
 * same to compile.
 */
export function checkOptions<Taker extends OptionTaker, Options extends object>(
  taker: Taker,
  options: AreSame<keyof Options, OptionOf<Taker>> extends true ? Options : never,
): void {
  if (!isObject(options) || Array.isArray(options)) {
    throw new SettingError(
      `options: ${shownValue(options)} is not possible: an object that names at least the policy, as in { policy: 'embedded' }`,
    )
  }
  if ((options as { readonly policy?: unknown }).policy === undefined) {
    throw new SettingError(
      "options.policy is missing: a URI such as 'sglang:http://localhost:30000', several of them, or an opened policy",
    )
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue
    checkTaken(taker, name)
    checkOption(name, value)
  }
}

/** Refuses an option that only others take: it would change nothing. */
function checkTaken(taker: OptionTaker, name: string): void {
  const others = takersOf(name)
  if (others.includes(taker)) return
  if (others.length === 0) throw unknownOption(taker, name)
  const who = `${others.join(' and ')} ${others.length > 1 ? 'do' : 'does'}`
  const place = isSetting(name) ? (settings[name] as Setting).inCode : undefined
  throw new SettingError(
    `options.${name}: ${taker} takes no option "${name}"; ${place === undefined ? who : `it is ${place}`}`,
  )
}

function checkOption(name: string, value: unknown): void {
  const from = `options.${name}`
  const group = groups.find(each => each === name)
  if (group) {
    checkValue(groupSchema(group), value, { from })
    return
  }
  if (isSetting(name)) checkNamed(name, value, from)
  if (!isOther(name)) return
  const { fits, wanted } = otherOptions[name]
  if (fits(value)) return
  throw new SettingError(`${from}: ${shownValue(value)} is not possible: it is ${wanted}`)
}

/** An option that has the name of a setting: what the setting may be, or a part that is opened already. */
function checkNamed(name: SettingName, value: unknown, from: string): void {
  // Defaults are right, and need no schema: most options of a command are.
  if (value === defaults[name]) return
  const opened = openedParts[name]
  if (!opened?.fits(value)) checkSetting(name, value, from, opened?.wanted)
}

function unknownOption(taker: OptionTaker, name: string): SettingError {
  const place = isSetting(name) ? (settings[name] as Setting).inCode : undefined
  if (place !== undefined) {
    return new SettingError(`options.${name}: no option called "${name}". It is ${place}.`)
  }
  const known = [...settingNames, ...Object.keys(otherOptions)]
  const hint =
    didYouMean(
      name,
      known.filter(each => takersOf(each).includes(taker)),
    ) || ' Most have the names of settings, which docs/reference/config.md lists.'
  return new SettingError(`options.${name}: no option called "${name}".${hint}`)
}
