import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  type Stats,
} from 'node:fs'
import { type FileHandle, lstat, open } from 'node:fs/promises'
import { SettingError } from '../names/setting-error.ts'

/** A file was named, or lies in a run, that is no plain one: opening it would lead elsewhere, or never end. */
export class OddFileError extends SettingError {
  override name = 'OddFileError'
}

const ways = {
  append: constants.O_RDWR | constants.O_APPEND | constants.O_CREAT,
  read: constants.O_RDONLY,
} as const

/** What a thing in a folder is, in words; undefined for a plain file. */
export function oddnessOf(found: Stats | Dirent): string | undefined {
  if (found.isFile()) return undefined
  if (found.isSymbolicLink()) return 'a link'
  if (found.isDirectory()) return 'a folder'
  if (found.isFIFO()) return 'a named pipe'
  return found.isSocket() ? 'a socket' : 'a device'
}

/** No link is followed; a pipe is opened without waiting for its other end, so that it can be refused. */
const guarded = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/** Opens a file that must be a plain one: no link is followed, and no pipe waited for. */
export async function openPlain(path: string, way: keyof typeof ways): Promise<FileHandle> {
  const handle = await open(path, ways[way] | guarded).catch(async (cause: unknown) => {
    const found = await lstat(path).catch(() => undefined)
    throw (found && refusalOf(path, found)) ?? cause
  })
  const refusal = refusalOf(path, await handle.stat())
  if (!refusal) return handle
  await handle.close()
  throw refusal
}

/** Opens a plain file to read while everything else waits; the caller closes it. */
export function openPlainNow(path: string): number {
  const found = refusalOf(path, lstatSync(path))
  if (found) throw found
  const file = openSync(path, ways.read | guarded)
  const refusal = refusalOf(path, fstatSync(file))
  if (!refusal) return file
  closeSync(file)
  throw refusal
}

function refusalOf(path: string, found: Stats): OddFileError | undefined {
  const odd = oddnessOf(found)
  return odd === undefined ? undefined : new OddFileError(`${path} is ${odd}, not a plain file`)
}

/** The text of a plain file; undefined if there is none. */
export async function readPlain(path: string): Promise<string | undefined> {
  try {
    await using handle = await openPlain(path, 'read')
    return await handle.readFile('utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw cause
  }
}
