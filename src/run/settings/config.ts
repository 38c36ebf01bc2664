import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { keepSecret, keepSecretsIn } from '../../base/core/process/secrets.ts'
import { checkSettings, shownValue } from './check-settings.ts'
import type { Config } from './define-config.ts'
import { openNamed } from './open-named.ts'
import { placeAgent } from './place-agent.ts'
import {
  flagOf,
  type SettingName,
  type Settings,
  type SettingsInput,
  settings,
  withDefaults,
} from './settings.ts'
import { importFile } from './user-part.ts'

/** Config files that are looked for in the working folder, in this order. */
const configNames = ['espalier.config.ts', 'espalier.config.toml', 'espalier.config.json'] as const

/** Where settings come from; later ones win: defaults, config, profile, flags. */
export interface SettingSources {
  readonly flags: SettingsInput
  /** @default the first of `configNames` that exists */
  readonly config?: string | undefined
  readonly profile?: string | undefined
}

/** Settings after all sources were laid over each other. */
export interface ResolvedSettings {
  readonly values: Settings
  /** Where each value came from, in words. */
  readonly origins: Readonly<Record<SettingName, string>>
}

/** Lays defaults, the config file, a profile and flags over each other. */
export async function resolveSettings(sources: SettingSources): Promise<ResolvedSettings> {
  const path = sources.config ?? configNames.find(name => existsSync(name))
  const config = path === undefined ? {} : await readConfig(path)
  const { profiles = {}, $schema: _schema, ...base } = config
  const chosen = profileOf(checkProfiles(profiles, path), sources.profile, path)
  const layers: [string, SettingsInput][] = [
    [path ?? 'config', checkSettings(base, path === undefined ? 'config' : placesIn(path))],
    [`${path} profile ${sources.profile}`, chosen],
    ['flag', sources.flags],
  ]
  const merged: Record<string, unknown> = {}
  const origins = Object.fromEntries(Object.keys(settings).map(name => [name, 'default']))
  for (const [origin, layer] of layers) {
    // A flag that is there and undefined takes back what a file says.
    for (const [name, value] of Object.entries(layer)) {
      merged[name] = value
      origins[name] = origin
    }
  }
  await placeAgent({ merged, origins })
  const values = withDefaults(merged as SettingsInput)
  keepSecretsIn(values)
  keepSecret(process.env[values.keyVariable])
  refuseIdle(sources.flags, values)
  return {
    values,
    origins: origins as Record<SettingName, string>,
  }
}

/** Flags that change nothing unless something else is set, and what that is. */
const conditions: readonly {
  readonly name: SettingName
  readonly needs: string
  isMet(values: Settings): boolean
}[] = [
  { name: 'branch', needs: '--strategy tree', isMet: ({ strategy }) => strategy === 'tree' },
  { name: 'leaves', needs: '--strategy tree', isMet: ({ strategy }) => strategy === 'tree' },
  { name: 'stepHistory', needs: '--strategy step', isMet: ({ strategy }) => strategy === 'step' },
  {
    name: 'split',
    needs: 'tasks that the environment makes, --tasks N',
    isMet: ({ tasks }) => typeof tasks !== 'string',
  },
  {
    name: 'threads',
    needs: 'a run without --cluster, which has workers in place of threads',
    isMet: ({ cluster }) => cluster === undefined,
  },
  { name: 'onTime', needs: '--max-seconds', isMet: ({ maxSeconds }) => maxSeconds !== undefined },
  { name: 'klIn', needs: '--kl-penalty', isMet: ({ klPenalty }) => klPenalty > 0 },
  {
    name: 'judge',
    needs: '--reward judge',
    isMet: ({ reward = [] }) => reward.some(name => /^judge(?::|$)/.test(name)),
  },
]

/** Refuses a flag that would be ignored; in a config file it may be meant for another profile. */
function refuseIdle(flags: SettingsInput, values: Settings): void {
  for (const { name, needs, isMet } of conditions) {
    if (flags[name] === undefined || isMet(values)) continue
    throw new SettingError(`--${flagOf(name)} changes nothing here: it needs ${needs}`)
  }
}

/** Checks every profile, whichever is chosen: a mistake is told where it is made, not where it is first used. */
function checkProfiles(
  profiles: unknown,
  path: string | undefined,
): Readonly<Record<string, SettingsInput>> {
  if (path === undefined) return {}
  const checked: Record<string, SettingsInput> = {}
  for (const [name, values] of Object.entries(
    objectAt(`${placesIn(path)('profiles')}: profiles`, profiles),
  )) {
    const place = placesIn(path, name)
    checked[name] = checkSettings(objectAt(`${place(name)}: profiles.${name}`, values), place)
  }
  return checked
}

function objectAt(place: string, value: unknown): Readonly<Record<string, unknown>> {
  if (isPlainObject(value)) return value
  throw new SettingError(
    `${place}: ${shownValue(value)} is not possible: profiles are objects with settings, by name`,
  )
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function profileOf(
  profiles: Readonly<Record<string, SettingsInput>>,
  name: string | undefined,
  path: string | undefined,
): SettingsInput {
  if (name === undefined) return {}
  if (!Object.hasOwn(profiles, name)) {
    const known = Object.keys(profiles)
    const hint = known.length > 0 ? `It has: ${known.join(', ')}.` : 'It has none.'
    throw new SettingError(
      path === undefined
        ? `no config file to find profile "${name}" in`
        : `${path} has no profile "${name}". ${hint}`,
    )
  }
  return profiles[name]!
}

/** Where a config file writes a setting: its line, as far as that can be seen from its text. */
function placesIn(path: string, profile?: string): (name: string) => string {
  const lines = readFileSync(path, 'utf8').split('\n')
  const lineOf = (name: string, from: number): number =>
    lines.findIndex((line, index) => index >= from && isKey(line, name))
  const start = profile === undefined ? 0 : Math.max(0, lineOf(profile, lineOf('profiles', 0)))
  return name => {
    const line = lineOf(name, start)
    const place = line < 0 ? path : `${path}:${line + 1}`
    return profile === undefined ? place : `${place} (profile ${profile})`
  }
}

/** `name = 1`, `"name": 1`, `name: 1`, `[name]`, `[some.name]`. */
function isKey(line: string, name: string): boolean {
  const [key = ''] = line.split(/[=:]/, 1)
  return key.split(/[^\w$-]+/).includes(name)
}

/** Reads a config file by its ending. */
export async function readConfig(path: string): Promise<Config> {
  if (!existsSync(path)) throw new SettingError(`no config file ${path}`)
  const config = await parseConfig(path)
  if (isPlainObject(config)) return config as Config
  throw new SettingError(`${path} does not hold an object with settings`)
}

async function parseConfig(path: string): Promise<unknown> {
  if (/\.[cm]?[jt]s$/.test(path)) {
    const module = await importFile(path)
    const value = Object.keys(module).includes('default') ? module.default : undefined
    if (value === undefined)
      throw new SettingError(
        `${path} has no default export: write export default defineConfig({ … })`,
      )
    return value
  }
  const bytes = await openNamed(`config ${path}`, () => readFile(path, 'utf8'))
  const text = bytes.replace(/^\uFEFF/, '')
  if (!/\.(?:toml|json)$/.test(path)) {
    throw new SettingError(`config ${path}: a config file ends with .ts, .toml or .json`)
  }
  try {
    if (path.endsWith('.json')) return JSON.parse(text)
    const { parse } = await import('smol-toml')
    return parse(text)
  } catch (cause) {
    const message = (cause as Error).message.split('\n', 1)[0]!
    throw new SettingError(`${path}${lineOfError(cause, text)}: ${message}`, { cause })
  }
}

/** The line that a parser stopped at: TOML's says it, JSON's says how many characters it read. */
function lineOfError(cause: unknown, text: string): string {
  const { line, message } = cause as { readonly line?: number; readonly message: string }
  const position = /at position (\d+)/.exec(message)?.[1]
  if (line !== undefined) return `:${line}`
  return position === undefined ? '' : `:${text.slice(0, Number(position)).split('\n').length}`
}
