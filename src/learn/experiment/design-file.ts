import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { describeCause } from '../../base/core/failure.ts'
import { nearFile } from '../../base/core/names/near-file.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { importFile } from '../../run/settings/user-part.ts'
import { type ExperimentDesign, readDesign } from './design.ts'

/** Reads an experiment's file: TOML, JSON, or TypeScript with an export called `experiment`. */
export async function readDesignFile(file: string): Promise<ExperimentDesign> {
  return readDesign(await readValue(file), file)
}

async function readValue(file: string): Promise<unknown> {
  const ending = extname(file)
  try {
    if (/^\.[cm]?[jt]s$/.test(ending)) return await exportOf(file)
    const text = await readFile(file, 'utf8')
    if (ending === '.json') return JSON.parse(text)
    if (ending === '.toml') return (await import('smol-toml')).parse(text)
  } catch (cause) {
    if (cause instanceof SettingError) throw cause
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT')
      throw new SettingError(`${file}: no such file.${nearFile(file)}`, { cause })
    throw new SettingError(`${file}: ${describeCause(cause)}`, { cause })
  }
  throw new SettingError(`${file}: an experiment is a .toml, .json or .ts file`)
}

async function exportOf(file: string): Promise<unknown> {
  const { experiment } = (await importFile(file)) as { readonly experiment?: unknown }
  if (experiment === undefined)
    throw new SettingError(`${file}: it has no export called "experiment"`)
  return experiment
}
