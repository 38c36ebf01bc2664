import { existsSync } from 'node:fs'
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
  const ours = fileURLToPath(
    new URL(import.meta.url.endsWith('.ts') ? '../index.ts' : '../index.js', import.meta.url),
  )
  const jiti = createJiti(import.meta.url, {
    alias: { espalier: ours },
    sourceMaps: true,
    fsCache: false,
  })
  return await jiti.import(file)
}
