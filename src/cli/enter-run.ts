import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { checkSettings } from '../run/settings/check-settings.ts'
import {
  type SettingName,
  type Settings,
  type SettingsInput,
  withDefaults,
} from '../run/settings/settings.ts'
import { type RunManifest, readManifest } from '../run/store/run-folder.ts'
import type { Invocation } from './command.ts'

/** A run that a command goes back to. */
export interface EnteredRun {
  /** Its folder. */
  readonly run: string
  readonly manifest: RunManifest
  /** The settings it was begun with, overridden by the current flags. */
  readonly values: Settings
  /** The folder in which the command was called. */
  readonly calledIn: string
  /** A path as it was meant there, which means the same here, and in hints. */
  meantThere(path: string): string
}

/**
 * What a run says for itself alone: where keys are sent, what is written besides it, and who is told. Other commands
 * do so only if they are told to, since somebody else may have made the run.
 */
export const ofTheRunAlone: readonly SettingName[] = [
  ...(['hub', 'record', 'results', 'sinks', 'metrics', 'metricsPort'] as const),
  ...(['track', 'traces', 'notify', 'cluster', 'segments'] as const),
]

/**
 * Reads a run's settings and changes to the folder that their relative paths start from. If that is another
 * one, paths of what is read and written are absolute, so that hints work where the command was called.
 */
export async function enterRun(
  { positionals: words, flags, terminal }: Invocation,
  { resumes = false }: { readonly resumes?: boolean } = {},
): Promise<EnteredRun> {
  const [given] = words as readonly [string]
  const calledIn = process.cwd()
  const manifest = await readManifest(given)
  const { config, directory } = manifest
  const moves = directory !== undefined && existsSync(directory) && resolve(directory) !== calledIn
  const meantThere = (path: string): string => (moves ? resolve(calledIn, path) : path)
  const said = checkSettings(config, `${given}/run.json`) as SettingsInput
  const left = resumes ? [] : ofTheRunAlone.map(name => [name, undefined])
  const begun: SettingsInput = { ...said, ...Object.fromEntries(left) }
  if (moves) process.chdir(directory)
  const { out: _out, ...others } = flags
  if (moves && Object.keys(others).length > 0) {
    terminal.tell(
      `files that settings name are looked for in ${directory}, where the run was begun`,
    )
  }
  const values = withDefaults({ ...begun, ...flags })
  return { run: meantThere(given), manifest, values, calledIn, meantThere }
}
