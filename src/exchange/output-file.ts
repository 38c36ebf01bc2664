import { existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { SettingError } from '../names/setting-error.ts'

/** Refuses, before work begins, a file that cannot be written: it is a folder, or its folder does not exist. */
export function checkOutputFile(flag: string, path: string): void {
  refuseFolder(flag, path)
  const folder = dirname(resolve(path))
  if (!existsSync(folder)) throw new SettingError(`${flag} ${path}: there is no folder ${folder}`)
}

/** Refuses a folder where a file is to be written. */
export function refuseFolder(flag: string, path: string): void {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return
  throw new SettingError(`${flag} ${path}: this is a folder; name a file`)
}
