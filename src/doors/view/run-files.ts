import { readdirSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import type { Json } from '../../base/core/ids.ts'
import { type RunManifest, readManifest, runPaths } from '../../run/store/run-folder.ts'

/** What `run.json` says; one without settings cannot be shown. */
export async function readWholeManifest(folder: string): Promise<RunManifest> {
  const manifest = await readManifest(folder)
  const missing = (['config', 'versions'] as const).filter(
    name => !isRecord(manifest[name] as Json),
  )
  if (missing.length === 0) return manifest
  const { manifest: path } = runPaths(folder)
  throw new Error(`${path} has no ${missing.join(' and no ')}: it is not what espalier wrote`)
}

/** The report of a run; null before its end. */
export async function readReport(folder: string): Promise<Json> {
  try {
    return JSON.parse(await readFile(runPaths(folder).report, 'utf8')) as Json
  } catch {
    return null
  }
}

/** A folder relative to the working directory, if it lies in it. */
export function shownFolder(folder: string): string {
  const from = relative('.', folder)
  return from !== '' && !from.startsWith('..') ? from : resolve(folder)
}

/** The policies a fork can be continued with: the run's own, then its checkpoints, newest first. */
export function policiesOf(folder: string, { config }: RunManifest): readonly string[] {
  const own = Array.isArray(config.policy) ? config.policy : [config.policy]
  const named = own.filter(each => typeof each === 'string')
  const { checkpoints } = runPaths(folder)
  return [...named, ...foldersIn(checkpoints).map(each => `embedded:${resolve(checkpoints, each)}`)]
}

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter(each => statSync(join(folder, each)).isDirectory())
      .sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
  } catch {
    return []
  }
}

/** A setting as a line of text. */
export function wordsOf(value: Json): string {
  return Array.isArray(value) ? value.join(', ') : String(value)
}

/** Whether a piece of JSON has fields. */
export function isRecord(value: Json): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
