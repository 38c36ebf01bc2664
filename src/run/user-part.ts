import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createJiti } from 'jiti'

/** Whether a name means a part of the user's own: `./file.ts#export`. */
export function isUserPart(name: string): boolean {
  return /^\.{0,2}\//.test(name) || /\.[cm]?[jt]s(#|$)/.test(name)
}

/** Loads `./file.ts#export`; TypeScript is compiled on the way, on every supported Node. */
export async function loadUserPart(name: string): Promise<unknown> {
  const [path = '', wanted = 'default'] = name.split('#')
  const file = resolve(path)
  if (!existsSync(file)) throw new Error(`no file ${path} (looked in ${dirname(file)})`)
  const module = await importFile(file)
  if (wanted in module) return module[wanted]
  const known = Object.keys(module)
  const hint = known.length > 0 ? `It exports: ${known.join(', ')}.` : 'It exports nothing.'
  throw new Error(`${path} has no export "${wanted}". ${hint} Write ${path}#NAME.`)
}

/** Imports a JavaScript or TypeScript file; errors point to its own lines. */
export async function importFile(file: string): Promise<Record<string, unknown>> {
  const jiti = createJiti(import.meta.url, {
    alias: { ...ourPaths, ...zodFor(file) },
    sourceMaps: true,
    fsCache: false,
  })
  return await jiti.import(file)
}

const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
const pathTo = (name: string): string =>
  fileURLToPath(new URL(`../${name}.${ending}`, import.meta.url))

/** A user's file and the program that runs it share one Espalier. */
const ourPaths = { 'espalier/testing': pathTo('testing'), espalier: pathTo('index') }

/** A folder without packages of its own, as `espalier init` leaves it, gets our zod. */
function zodFor(file: string): Readonly<Record<string, string>> {
  try {
    createRequire(file).resolve('zod')
    return {}
  } catch {
    return { zod: fileURLToPath(import.meta.resolve('zod')) }
  }
}
