import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parse as parseToml } from 'smol-toml'
import {
  checkSettings,
  SettingError,
  type SettingName,
  type Settings,
  type SettingsInput,
  settings,
  withDefaults,
} from './settings.ts'
import { importFile } from './user-part.ts'

/** What a config file holds: settings, and profiles that change some of them. */
export type Config = SettingsInput & {
  readonly profiles?: Readonly<Record<string, SettingsInput>>
}

/** Types a config; write `export default defineConfig({ … })` in `espalier.config.ts`. */
export function defineConfig(config: Config): Config {
  return config
}

/** Config files that are looked for in the working folder, in this order. */
export const configNames = [
  'espalier.config.ts',
  'espalier.config.toml',
  'espalier.config.json',
] as const

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
  const { profiles = {}, ...base } = path === undefined ? ({} as Config) : await readConfig(path)
  const chosen = profileOf(profiles, sources.profile, path)
  const layers: [string, SettingsInput][] = [
    [path ?? 'config', checkSettings(base, path ?? 'config')],
    [`${path} profile ${sources.profile}`, chosen],
    ['flag', sources.flags],
  ]
  const merged: Record<string, unknown> = {}
  const origins = Object.fromEntries(Object.keys(settings).map(name => [name, 'default']))
  for (const [origin, layer] of layers) {
    for (const [name, value] of Object.entries(layer)) {
      if (value === undefined) continue
      merged[name] = value
      origins[name] = origin
    }
  }
  return {
    values: withDefaults(merged as SettingsInput),
    origins: origins as Record<SettingName, string>,
  }
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
  return checkSettings(profiles[name]!, `${path} profile ${name}`)
}

/** Reads a config file by its ending. */
export async function readConfig(path: string): Promise<Config> {
  if (!existsSync(path)) throw new SettingError(`no config file ${path}`)
  const config = await parseConfig(path)
  if (typeof config === 'object' && config !== null && !Array.isArray(config))
    return config as Config
  throw new SettingError(`${path} does not hold an object with settings`)
}

async function parseConfig(path: string): Promise<unknown> {
  if (/\.[cm]?[jt]s$/.test(path)) {
    const { default: value } = await importFile(resolve(path))
    if (value === undefined)
      throw new SettingError(
        `${path} has no default export: write export default defineConfig({ … })`,
      )
    return value
  }
  const text = await readFile(path, 'utf8')
  try {
    return path.endsWith('.toml') ? parseToml(text) : JSON.parse(text)
  } catch (cause) {
    throw new SettingError(`${path}: ${(cause as Error).message}`, { cause })
  }
}
