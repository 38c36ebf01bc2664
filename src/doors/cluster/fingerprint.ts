import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, extname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isSource, packageFolder } from '../../base/core/process/package-folder.ts'
import { packageVersion } from '../../base/core/process/package-version.ts'
import type { SettingsInput } from '../../run/settings/settings.ts'
import { isUserPart, splitUserPart } from '../../run/settings/user-part.ts'

/** What must be equal on every machine of a run, by the name used in messages. */
export type Fingerprint = Readonly<Record<string, string>>

/** The fingerprint of the code that these settings are rolled with here. */
export function fingerprintOf(config: SettingsInput): Fingerprint {
  const parts = [...userParts(config)].map(name => {
    const [path] = splitUserPart(name)
    return [`the code of ${path}`, digestOfFiles(filesOf(resolve(path)))] as const
  })
  return {
    espalier: packageVersion(),
    "espalier's own code": ownCode(),
    'the major version of Node': process.versions.node.split('.')[0]!,
    ...Object.fromEntries(parts),
  }
}

/** What differs here from there, in words; nothing if nothing does. */
export function differences(there: Fingerprint, here: Fingerprint): readonly string[] {
  return Object.keys({ ...there, ...here })
    .filter(name => there[name] !== here[name])
    .map(
      name => `${name} is ${shown(here[name])} here and ${shown(there[name])} at the coordinator`,
    )
}

const shown = (value: string | undefined): string =>
  value === undefined ? 'missing' : value.length > 12 ? value.slice(0, 12) : value

/** Files of the user's own that settings name, at any depth. */
function userParts(config: unknown): Set<string> {
  if (typeof config === 'string') {
    const isCode = isUserPart(config) && /\.[cm]?[jt]sx?(#|$)/.test(config)
    return new Set(isCode ? [config] : [])
  }
  if (typeof config !== 'object' || config === null) return new Set()
  return new Set(Object.values(config).flatMap(each => [...userParts(each)]))
}

const relativeImport = /(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g
const endings = ['', '.ts', '.mts', '.js', '.mjs', '.json', '/index.ts', '/index.js']

/** A file and all that it imports by a relative path. */
function filesOf(start: string): readonly string[] {
  const found = new Set<string>()
  const waiting = [start]
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file) || !existsSync(file)) continue
    found.add(file)
    for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(relativeImport)) {
      const next = endings.map(ending => resolve(dirname(file), path + ending)).find(isFile)
      // TypeScript may import `x.js` where the source is `x.ts`.
      const source = next ?? [resolve(dirname(file), path.replace(/\.js$/, '.ts'))].find(isFile)
      if (source) waiting.push(source)
    }
  }
  return [...found].sort()
}

const isFile = (path: string): boolean => existsSync(path) && statSync(path).isFile()

/** Paths are relative to the first file, so that the folder may lie elsewhere on another machine. */
function digestOfFiles(files: readonly string[]): string {
  const hash = createHash('sha256')
  for (const file of files) {
    hash
      .update(relative(dirname(files[0]!), file))
      .update('\0')
      .update(readFileSync(file))
  }
  return hash.digest('hex')
}

let own: string | undefined

/** A digest of the program itself: during development two builds of one version may differ. */
function ownCode(): string {
  own ??= digestOfFiles(
    codeUnder(fileURLToPath(new URL(isSource ? 'src/' : 'dist/', packageFolder))),
  )
  return own
}

function codeUnder(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isFile() && ['.js', '.ts', '.wasm'].includes(extname(entry.name)))
    .filter(({ name }) => !/\.(?:test|d)\.ts$|\.test\.js$/.test(name))
    .map(entry => join(entry.parentPath, entry.name))
    .sort()
}
