import { createHash } from 'node:crypto'
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { codeUnder, digestOfFiles } from './digests.ts'

const relativeImport = /(?:from|import|require)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g
const packageImport = /(?:from|import|require)\s*\(?\s*['"]((?:@[\w.-]+\/)?[\w-][\w.-]*)[^'"]*['"]/g
const endings = ['', '.ts', '.mts', '.js', '.mjs', '.json', '/index.ts', '/index.js']

/** A file and all that it imports by a relative path. */
export function codeOf(start: string): readonly string[] {
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

/**
 * The packages that files import by name: the version of each, and a digest of its own code and of the
 * versions that it depends on. Espalier itself, and what is not installed, is left out.
 */
export function packagesOf(files: readonly string[]): Readonly<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const file of files) {
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(packageImport)) {
      const folder = own.test(name) || isBuiltin(name) ? undefined : packageAt(dirname(file), name)
      if (folder) found[`the package ${name}`] ??= printOf(folder)
    }
  }
  return found
}

const own = /^(?:@espalier\/|espalier$)/

function packageAt(from: string, name: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name)
    if (existsSync(join(found, 'package.json'))) return realpathSync(found)
    if (folder === dirname(folder)) return undefined
  }
}

function printOf(folder: string): string {
  const versions = [...versionsUnder(folder)].sort()
  const hash = createHash('sha256').update(digestOfFiles(codeUnder(folder), folder))
  return `${readPackage(folder).version} (${hash.update(versions.join()).digest('hex').slice(0, 12)})`
}

/** The versions of all that a package depends on. */
function versionsUnder(folder: string, seen: Set<string> = new Set()): Set<string> {
  for (const name of Object.keys(readPackage(folder).dependencies ?? {})) {
    const found = packageAt(folder, name)
    if (!found || own.test(name)) continue
    const named = `${name}@${readPackage(found).version}`
    if (seen.has(named)) continue
    seen.add(named)
    versionsUnder(found, seen)
  }
  return seen
}

interface PackageFile {
  readonly version?: string
  readonly dependencies?: Readonly<Record<string, string>>
}

function readPackage(folder: string): PackageFile {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageFile
}
