import type { SettingsInput } from './settings.ts'

/** What a config file holds: settings, and profiles that change some of them. */
export type Config = SettingsInput & {
  /** Where editors find the schema of this file. */
  readonly $schema?: string
  readonly profiles?: Readonly<Record<string, SettingsInput>>
}

/** Types a config; write `export default defineConfig({ … })` in `espalier.config.ts`. */
export function defineConfig(config: Config): Config {
  return config
}
