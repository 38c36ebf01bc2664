import type { z } from 'zod'
import type { RunCommand, Setting } from './setting.ts'
import { comparison } from './table/comparison.ts'
import { evaluation } from './table/evaluation.ts'
import { learning } from './table/learning.ts'
import { limits } from './table/limits.ts'
import { model } from './table/model.ts'
import { rolled } from './table/rolled.ts'
import { running } from './table/running.ts'
import { sampling } from './table/sampling.ts'
import { trees } from './table/trees.ts'
import { watching } from './table/watching.ts'

/** Every setting of a run: the source of flags, options and their types, help, config keys, their JSON schema and the docs. */
export const settings = {
  ...rolled,
  ...trees,
  ...comparison,
  ...model,
  ...limits,
  ...sampling,
  ...running,
  ...learning,
  ...evaluation,
  ...watching,
} as const satisfies Record<string, Setting>

/** What settings are about, in the order in which help and pages show them. */
const topics: Readonly<Record<string, object>> = {
  Evaluation: evaluation,
  Learning: learning,
  'What is rolled': rolled,
  'Rewards and comparison': comparison,
  'Trees and long contexts': trees,
  'Limits of an attempt': limits,
  Sampling: sampling,
  'Model and server': model,
  Running: running,
  'Watching and keeping': watching,
}

/** The names of all settings. */
export const settingNames = Object.keys(settings) as SettingName[]

/** Settings under their topics, without topics that none of them is about. */
export function byTopic(
  names: readonly SettingName[],
): readonly { readonly topic: string; readonly names: readonly SettingName[] }[] {
  return Object.entries(topics)
    .map(([topic, about]) => ({ topic, names: names.filter(name => Object.hasOwn(about, name)) }))
    .filter(({ names: about }) => about.length > 0)
}

/** The settings that a command takes. */
export function settingsOf(command: RunCommand): readonly SettingName[] {
  return settingNames.filter(name => {
    const { commands } = settings[name] as Setting
    return commands?.includes(command) ?? true
  })
}

/** The name of a setting. */
export type SettingName = keyof typeof settings

/** Settings as they are after defaults, config, profile and flags. */
export type Settings = {
  readonly [Name in SettingName]: (typeof settings)[Name] extends { default: unknown }
    ? Fixed<z.output<(typeof settings)[Name]['schema']>>
    : Fixed<z.output<(typeof settings)[Name]['schema']>> | undefined
}

/** A value whose list nobody changes. */
type Fixed<Value> = Value extends readonly (infer Item)[] ? readonly Item[] : Value

/** Settings as a config or flags give them. */
export type SettingsInput = {
  readonly [Name in SettingName]?: Fixed<z.input<(typeof settings)[Name]['schema']>> | undefined
}

/** The flag of a setting: `maxTurns` is `--max-turns`. */
export function flagOf(name: SettingName): string {
  const { flag } = settings[name] as Setting
  return flag ?? name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
}

/** The flag of a setting as help shows it, with what its value is called; a switch can be turned either way. */
export function shownFlag(name: SettingName): string {
  const { argument } = settings[name] as Setting
  const flag = flagOf(name)
  return argument === undefined ? `--${flag}, --no-${flag}` : `--${flag} ${argument}`
}

/** Settings with every default filled in. */
export function withDefaults(input: SettingsInput): Settings {
  const filled = Object.entries(settings).map(([name, each]) => {
    const given = input[name as SettingName]
    return [name, given === undefined ? (each as Setting).default : given]
  })
  return Object.fromEntries(filled) as Settings
}

/** The default of every setting; defaults are defined nowhere else. */
export const defaults: Settings = withDefaults({})

/** How many tasks an environment makes by default. */
export const defaultTasks = 16

/** The fields that have a value, so that none overwrites a default. */
export function withoutUndefined<T extends object>(
  from: T,
): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const entries = Object.entries(from).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [Name in keyof T]?: Exclude<T[Name], undefined> }
}
