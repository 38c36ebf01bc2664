import { realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { missingPackage } from '../../base/core/names/missing-package.ts'
import { javascriptPrelude } from './javascript-prelude.ts'
import { pythonPrelude } from './python-prelude.ts'

/** The languages that have an interpreter. */
const languages = ['python', 'javascript'] as const

/** A language that code can be written in. */
export type Language = (typeof languages)[number]

/** Where the interpreter of a language is, and what its child may read. */
export interface Installed {
  /** The module to import. */
  readonly module: string
  /** The folder that it lies in, with a separator at its end. */
  readonly folder: string
  /** The only folder that the child may read. */
  readonly readable: string
  readonly prelude: string
}

const packages = { python: 'pyodide', javascript: 'quickjs-emscripten' } as const

/** Finds the package that runs a language; if it is missing, says the line that installs it. */
export function findInstalled(
  language: Language,
  resolve: (name: string) => string = createRequire(import.meta.url).resolve,
): Installed {
  const name = packages[language]
  let file: string
  try {
    file = realpathSync(resolve(name))
  } catch (cause) {
    throw missingPackage(`Running ${language}`, name, cause)
  }
  const folder = `${dirname(file)}${sep}`
  if (language === 'python') {
    const module = pathToFileURL(`${folder}pyodide.mjs`).href
    return { module, folder, readable: folder, prelude: pythonPrelude }
  }
  // It also loads other packages of the same node_modules.
  const end = file.indexOf(`${sep}node_modules${sep}`) + `${sep}node_modules${sep}`.length
  const readable = file.slice(0, end)
  const module = pathToFileURL(file).href
  return { module, folder, readable, prelude: javascriptPrelude }
}
