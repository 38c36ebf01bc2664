import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

declare const __filename: string

/** This file as it runs; a CommonJS bundle has no `import.meta.url`. */
const here: string = import.meta.url ?? pathToFileURL(__filename).href

/** Whether this program runs from its TypeScript sources. */
export const isSource: boolean = here.endsWith('.ts')

/**
 * The folder of the installed package: its models, integrations and built files lie below it. A program that
 * bundled this code elsewhere finds the package it was bundled from.
 */
export const packageFolder: URL = findPackage()

function findPackage(): URL {
  for (let folder = new URL('./', here); ; folder = new URL('../', folder)) {
    if (isPackage(folder)) return folder
    if (folder.pathname === '/' || /^\/[A-Za-z]:\/$/.test(folder.pathname)) break
  }
  try {
    return new URL('./', pathToFileURL(createRequire(here).resolve('espalier/package.json')))
  } catch {
    return new URL('./', here)
  }
}

function isPackage(folder: URL): boolean {
  const file = new URL('package.json', folder)
  return existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).name === 'espalier'
}

/** A file that the build makes. What is started by its file, `cli/main.js` say, is always the built one. */
export function builtFile(path: string): URL {
  return new URL(`dist/${path}`, packageFolder)
}
