import { join } from 'node:path'
import { readPlain } from '../../../base/core/files/plain-file.ts'
import { replaceFile } from '../../store/run-folder.ts'

const fileOf = (folder: string): string => join(folder, 'trackers.json')

async function readAll(folder: string): Promise<Record<string, string>> {
  return JSON.parse((await readPlain(fileOf(folder))) ?? '{}') as Record<string, string>
}

/** The id of a run at a tracker, so that a resumed run goes on there; undefined if it was never told. */
export async function readKept(folder: string, tracker: string): Promise<string | undefined> {
  return (await readAll(folder))[tracker]
}

/** Remembers the id of a run at a tracker, in its folder. */
export async function keep(folder: string, tracker: string, id: string): Promise<void> {
  const all = { ...(await readAll(folder)), [tracker]: id }
  await replaceFile(fileOf(folder), `${JSON.stringify(all)}\n`)
}
