import { existsSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { checkSettings } from '../settings/check-settings.ts'
import { type Settings, type SettingsInput, withDefaults } from '../settings/settings.ts'
import { type RunManifest, readManifest } from '../store/run-folder.ts'
import type { Invocation } from './command.ts'

/** A run that a command goes back to. */
export interface EnteredRun {
  /** Its folder, as seen from here. */
  readonly run: string
  readonly manifest: RunManifest
  /** The settings it was begun with, overridden by the current flags. */
  readonly values: Settings
}

/** Reads a run's settings and changes to the folder that their relative paths start from. */
export async function enterRun({ words, flags }: Invocation): Promise<EnteredRun> {
  const folder = resolve(words[0]!)
  const manifest = await readManifest(words[0]!)
  const { config, directory } = manifest
  if (directory !== undefined && existsSync(directory)) process.chdir(directory)
  const begun = checkSettings(config, `${words[0]}/run.json`) as SettingsInput
  return { run: relative('.', folder), manifest, values: withDefaults({ ...begun, ...flags }) }
}
