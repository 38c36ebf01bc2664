import { once } from 'node:events'
import { closeSync, createWriteStream, existsSync, openSync, readSync, statSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { finished } from 'node:stream/promises'
import { StoreError } from '../../base/core/files/store-error.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { withoutSecretsInJson } from '../../base/core/process/secrets.ts'
import type { Output } from '../sinks/format.ts'
import { isRun, runPaths } from '../store/run-folder.ts'

/** Refuses, before work begins, a file that cannot be written: its place is taken, or its folder does not exist. */
export function checkOutputFile(flag: string, path: string): void {
  refuseTaken(flag, path)
  const folder = dirname(resolve(path))
  if (!existsSync(folder)) throw new SettingError(`${flag} ${path}: there is no folder ${folder}`)
}

/** How exports, results and pages of ours begin; what begins otherwise is not written over. */
const beginnings = {
  export:
    /^(PAR1|\[\s*(\]|\{\s*"task_id":)|\{\s*"(run|simulations)":|\{"(prompt_ids|group_index|prompt_token_ids|model_input|trajectories|schema_version)":|\{"(messages|prompt)":\[|\{"input":\{"messages":|\{"version":2,"status":|\{"id":"[^"]*(:\d+","task":|","env":))/,
  page: /^<!doctype html>[\s\S]*<title>Espalier<\/title>/i,
} as const

/** Refuses to write over a file that does not begin as what is to be written there: it may be somebody's only copy. */
export function refuseForeign(flag: string, path: string, kind: keyof typeof beginnings): void {
  refuseTaken(flag, path)
  const head = beginningOf(path)
  if (head === '' || beginnings[kind].test(head)) return
  throw new SettingError(
    `${flag} ${path} is there already and no ${kind} of Espalier's: remove it or choose another file`,
  )
}

/** The first bytes of a file, one character each; empty if there is none. */
function beginningOf(path: string): string {
  if (!existsSync(path) || !statSync(path).isFile()) return ''
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(4096)
    return bytes.toString('latin1', 0, readSync(file, bytes))
  } finally {
    closeSync(file)
  }
}

/** Refuses a folder where a file is to be written, and the files that a run consists of. */
function refuseTaken(flag: string, path: string): void {
  if (existsSync(path) && statSync(path).isDirectory())
    throw new SettingError(`${flag} ${path}: this is a folder; name a file`)
  const folder = dirname(resolve(path))
  if (isRun(folder) && Object.values(runPaths(folder)).includes(resolve(path)))
    throw new SettingError(`${flag} ${path}: this is a file of the run; name another`)
}

/** How a file comes to be: `whole`, in one moment at its end, or `growing`, for readers who follow it. */
export type Appearance = 'whole' | 'growing'

/** A file that is being written. Whatever goes wrong names it. */
export interface OutputFile extends Output {
  /** Writes what is left; a file that appears whole appears now. */
  close(): Promise<void>
  /** Gives up: a file that should have appeared whole leaves nothing. */
  discard(): Promise<void>
}

/** Opens a file to write, and makes its folder if there is none. */
export async function openOutputFile(path: string, appears: Appearance): Promise<OutputFile> {
  const written = appears === 'whole' ? `${path}.partial` : path
  const stream = await naming(path, async () => {
    await mkdir(dirname(resolve(path)), { recursive: true })
    // What a killed export left, or somebody put there, is not written into.
    if (appears === 'whole') await rm(written, { force: true })
    const opened = createWriteStream(written, { flags: appears === 'whole' ? 'wx' : 'w' })
    await once(opened, 'open')
    return opened
  })
  let problem: Error | undefined
  stream.on('error', error => {
    problem = error
  })
  return {
    write: chunk =>
      naming(path, async () => {
        if (problem) throw problem
        const text = typeof chunk === 'string' ? withoutSecretsInJson(chunk) : chunk
        if (!stream.write(text)) await once(stream, 'drain')
      }),
    close: () =>
      naming(path, async () => {
        stream.end()
        await finished(stream)
        if (appears === 'whole') await rename(written, path)
      }),
    async discard() {
      stream.destroy()
      await finished(stream).catch(() => undefined)
      if (appears === 'whole') await rm(written, { force: true })
    },
  }
}

/** Runs work on a file; its failure names the file as the user named it. */
async function naming<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new StoreError(path, { cause: explained(cause as NodeJS.ErrnoException) })
  }
}

/** Reasons for which the system's own message names our temporary file or what we tried, which says nothing to a user. */
const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'its folder takes no new files; choose another --out (ENOENT)',
  EEXIST: 'a part of the path is a file, not a folder; choose another --out (EEXIST)',
  EISDIR: 'this is a folder; name a file (EISDIR)',
}

function explained(cause: NodeJS.ErrnoException): Error {
  const reason = reasons[cause.code ?? '']
  return reason === undefined ? cause : new Error(reason, { cause })
}
