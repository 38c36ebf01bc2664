import { existsSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'
import { describeCause } from '../../base/core/failure.ts'
import { nearFile } from '../../base/core/names/near-file.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { offered } from './offered.ts'

/** A file of the user's own that broke while it was loaded, with its line. */
export class UserCodeError extends Error {}

/** Whether a name means a part of the user's own: `./file.ts#export`; `acp:node agent.js` is a named part with items. */
export function isUserPart(name: string): boolean {
  return /^\.{0,2}\//.test(name) || /^(?:[A-Za-z]:)?[^:]*\.[cm]?[jt]s(#|$)/.test(name)
}

/** The file and the export that a name means; a folder's name may contain a `#` too. */
export function splitUserPart(name: string): readonly [path: string, wanted: string | undefined] {
  const [, path, wanted] =
    /^(.*?\.[cm]?[jt]sx?)(?:#(.*))?$/s.exec(name) ?? /^([^#]*)(?:#(.*))?$/s.exec(name)!
  return [path!, wanted]
}

/** Loads `./file.ts#export`; TypeScript is compiled on the way, on every supported Node. */
export async function loadUserPart(name: string): Promise<unknown> {
  const [path, wanted = 'default'] = splitUserPart(name)
  const file = resolve(path)
  if (!existsSync(file)) {
    throw new SettingError(`no file ${path} (looked in ${dirname(file)}).${nearFile(path)}`)
  }
  if (statSync(file).isDirectory()) {
    throw new SettingError(`${path} is a folder; name a file and what it exports: ./file.ts#NAME`)
  }
  const module = await importFile(path)
  if (wanted in module) return module[wanted]
  const known = Object.keys(module)
  const hint = known.length > 0 ? `It exports: ${known.join(', ')}.` : 'It exports nothing.'
  throw new SettingError(`${path} has no export "${wanted}". ${hint} Write ${path}#NAME.`)
}

/** The line of a file that an error came from, if it came from there. */
function lineIn(file: string, cause: unknown): string {
  const stack = cause instanceof Error ? (cause.stack ?? '') : ''
  const at = stack.indexOf(`${file}:`)
  return at < 0 ? '' : (/^:\d+/.exec(stack.slice(at + file.length))?.[0] ?? '')
}

/** Imports a JavaScript or TypeScript file; what it throws names the file and its line. */
export async function importFile(path: string): Promise<Record<string, unknown>> {
  const file = resolve(path)
  try {
    return await compileAndImport(file)
  } catch (cause) {
    const said = describeCause(cause)
      // The compiler repeats the place on further lines, the loader lists who asked; drop them.
      .replace(/^ParseError: ([^\n]*)[\s\S]*$/, 'cannot be read: $1')
      .replace(/\n+Require stack:[\s\S]*$/, '')
    const Kind = isUnloadable(cause) ? SettingError : UserCodeError
    throw new Kind(`${path}${lineIn(file, cause)}: ${said.trim()}`, { cause })
  }
}

const unloadableCodes = ['ERR_UNKNOWN_FILE_EXTENSION', 'MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND']

/** Whether a file could not be loaded at all, so that none of its code has failed: the wrong file was named. */
function isUnloadable(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false
  const { code = '' } = cause as NodeJS.ErrnoException
  return cause.message.startsWith('ParseError: ') || unloadableCodes.includes(code)
}

async function compileAndImport(file: string): Promise<Record<string, unknown>> {
  const { createJiti } = await import('jiti')
  const jiti = createJiti(import.meta.url, {
    virtualModules: { ...(await ourModules()), ...(await zodFor(file)) },
    sourceMaps: true,
    fsCache: false,
  })
  return await jiti.import(file)
}

/** The user's file gets this same instance of Espalier. */
async function ourModules(): Promise<Record<string, unknown>> {
  const loading = Object.entries(offered().modules).map(
    async ([name, load]) => [name, await load()] as const,
  )
  return Object.fromEntries(await Promise.all(loading))
}

/** A folder without packages of its own, as `espalier init` leaves it, gets our zod. */
async function zodFor(file: string): Promise<Record<string, unknown>> {
  try {
    createRequire(file).resolve('zod')
    return {}
  } catch {
    return { zod: await import('zod') }
  }
}
