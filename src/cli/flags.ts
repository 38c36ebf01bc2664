import { parseArgs } from 'node:util'
import { nearest } from '../base/core/names/nearest.ts'
import { SettingError } from '../base/core/names/setting-error.ts'
import { checkSetting } from '../run/settings/check-settings.ts'
import type { Setting } from '../run/settings/setting.ts'
import { flagOf, type SettingName, type SettingsInput, settings } from '../run/settings/settings.ts'
import { type Command, type Invocation, MisuseError } from './command.ts'

/** Flags that every command has. */
export const commonFlags = {
  json: { help: 'Print JSON on stdout and nothing else there' },
  help: { help: 'Show this help' },
} as const

/** Flags of every command whose settings may come from a config file. */
export const configFlags = {
  config: {
    help: 'A config file (default: espalier.config.ts, .toml or .json here)',
    argument: 'FILE',
  },
  profile: { help: 'A profile of the config file', argument: 'NAME' },
  'no-NAME': {
    help: 'Takes back what the config file sets: a switch is off, a list is empty, the rest is not set',
  },
} as const

/** Whether `--no-NAME` makes sense: for switches, and for what has no value unless it is given one. */
export function isNegatable({ argument, default: value }: Setting): boolean {
  return argument === undefined || value === undefined || isEmpty(value)
}

/** Whether a value is a list or an object without anything in it. */
export function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

/** What was written on the command line, read by the table of settings. */
export type ReadFlags = Pick<
  Invocation,
  'positionals' | 'flags' | 'own' | 'lists' | 'json' | 'config' | 'profile'
> & {
  readonly help: boolean
}

type Values = Record<string, string | boolean | string[] | undefined>

/** Reads the words after a command's name; unknown flags and wrong values throw `MisuseError`. */
export function readFlags(command: Command, argv: readonly string[]): ReadFlags {
  const names = new Map(command.settings.map(name => [flagOf(name), name]))
  const { values, positionals } = parse(command, argv, names)
  checkWords(command, positionals, values.help === true)
  const own: Record<string, string | undefined> = {}
  const lists: Record<string, readonly string[]> = {}
  for (const [name, { isList }] of Object.entries(command.own ?? {})) {
    const value = values[name]
    if ([value].flat().includes('')) throw new MisuseError(`--${name} is empty: give it a value`)
    if (isList) lists[name] = (value as string[] | undefined) ?? []
    else own[name] = value === true ? '' : (value as string | undefined)
  }
  return {
    positionals,
    flags: readSettings(values, names),
    own,
    lists,
    json: values.json === true,
    help: values.help === true,
    config: values.config as string | undefined,
    profile: values.profile as string | undefined,
  }
}

function parse(
  command: Command,
  argv: readonly string[],
  names: ReadonlyMap<string, SettingName>,
): { values: Values; positionals: string[] } {
  const options: Record<string, Option> = {
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  }
  if (command.readsConfig) {
    options.config = { type: 'string' }
    options.profile = { type: 'string' }
  }
  for (const [flag, name] of names) {
    const setting = settings[name] as Setting
    options[flag] = optionOf(setting)
    if (isNegatable(setting)) options[`no-${flag}`] = { type: 'boolean' }
  }
  for (const [flag, own] of Object.entries(command.own ?? {})) options[flag] = optionOf(own)
  refuseUnknown(command, argv, Object.keys(options))
  try {
    return parseArgs({ args: joinNegatives(argv, options), options, allowPositionals: true }) as {
      values: Values
      positionals: string[]
    }
  } catch (error) {
    throw new MisuseError(`${(error as Error).message.split('. ')[0]}`)
  }
}

interface Option {
  readonly type: 'string' | 'boolean'
  readonly multiple?: boolean
  readonly short?: string
}

function optionOf({ argument, isList }: Pick<Setting, 'argument' | 'isList'>): Option {
  return {
    type: argument === undefined ? 'boolean' : 'string',
    ...(isList && { multiple: true }),
  }
}

/** `--fail-below -0.02`: a number after a flag is its value, not another flag. */
function joinNegatives(
  argv: readonly string[],
  options: Readonly<Record<string, Option>>,
): string[] {
  const joined: string[] = []
  for (const word of argv) {
    const flag = joined.at(-1)?.startsWith('--') ? joined.at(-1)!.slice(2) : undefined
    const takesValue = flag !== undefined && options[flag]?.type === 'string'
    if (takesValue && /^-[\d.]/.test(word)) joined[joined.length - 1] = `--${flag}=${word}`
    else joined.push(word)
  }
  return joined
}

function refuseUnknown(command: Command, argv: readonly string[], known: readonly string[]): void {
  for (const word of argv) {
    if (word === '--') return
    const [, dashes, flag] = /^(--?)([a-z][^=]*)/i.exec(word) ?? []
    if (flag === undefined || word === '-h') continue
    if (dashes === '--' && known.includes(flag)) continue
    const near = nearest(flag, known)
    const hint = near
      ? ` Did you mean --${near}?`
      : ` \`espalier ${command.name} --help\` lists them.`
    throw new MisuseError(`espalier ${command.name} has no flag ${dashes}${flag}.${hint}`)
  }
}

function checkWords(command: Command, words: readonly string[], isHelp: boolean): void {
  const [least, most] = command.positionalCount
  if (isHelp || (words.length >= least && words.length <= most)) return
  const problem = words.length < least ? missing(words) : `unexpected "${words[most]}"`
  throw new MisuseError(`${problem}. Usage: espalier ${command.name} ${command.usage}`)
}

function missing(words: readonly string[]): string {
  return words.length === 0 ? 'a word is missing' : `a word is missing behind ${words.join(' ')}`
}

function readSettings(values: Values, names: ReadonlyMap<string, SettingName>): SettingsInput {
  const read: Record<string, unknown> = {}
  for (const [flag, name] of names) {
    const value = values[flag]
    const isNegated = values[`no-${flag}`] === true
    if (isNegated && value !== undefined) {
      throw new MisuseError(`--${flag} and --no-${flag} contradict each other: give one of them`)
    }
    if (value !== undefined) read[name] = readValue(name, value, `--${flag}`)
    // What is there and undefined overrules a config: only the default is left.
    if (isNegated)
      read[name] = (settings[name] as Setting).argument === undefined ? false : undefined
  }
  return read as SettingsInput
}

function readValue(name: SettingName, value: Values[string], from: string): unknown {
  const { isList } = settings[name] as Setting
  if (typeof value === 'boolean') return value
  if (isList) return tryReadings(name, listReadings(value as string[], from), from)
  return tryReadings(name, readings(value as string, from), from)
}

/** The values that a word can mean, most likely first: a number, JSON if it looks like it, a text. */
function readings(word: string, from: string): unknown[] {
  const found: unknown[] = []
  if (word.trim() !== '' && Number.isFinite(Number(word))) found.push(Number(word))
  if (/^\s*[[{]/.test(word)) {
    try {
      found.push(JSON.parse(word))
    } catch (error) {
      throw new SettingError(`${from}: not JSON: ${word}: ${(error as Error).message}`)
    }
  }
  return [...found, word]
}

function listReadings(words: readonly string[], from: string): unknown[] {
  if (words.some(word => /^\s*[[{]/.test(word))) {
    return [words.flatMap(word => readings(word, from)[0])]
  }
  const items = words.flatMap(word => word.split(','))
  const areNumbers = items.every(item => item.trim() !== '' && Number.isFinite(Number(item)))
  return areNumbers ? [items.map(Number), words] : [words]
}

function tryReadings(name: SettingName, values: readonly unknown[], from: string): unknown {
  let first: unknown
  for (const value of values) {
    try {
      return checkSetting(name, value, from)
    } catch (error) {
      // Report the error of the most likely reading.
      first ??= error
    }
  }
  throw first
}
