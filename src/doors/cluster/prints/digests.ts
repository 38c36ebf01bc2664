import { createHash } from 'node:crypto'
import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import { dirname, extname, join, relative } from 'node:path'

/** Paths are relative to a folder, by default that of the first file: it may lie elsewhere on another machine. */
export function digestOfFiles(files: readonly string[], folder = dirname(files[0] ?? '')): string {
  const hash = createHash('sha256')
  for (const file of files) hash.update(`${relative(folder, file)}\0`).update(contentOf(file))
  return hash.digest('hex')
}

/** A digest of a file, or of a folder with all that is in it. */
export function digestOfPath(path: string): string {
  if (statSync(path).isFile()) return digestOfFiles([path])
  return digestOfFiles(filesUnder(path), path)
}

/** The files below a folder that are code. */
export function codeUnder(folder: string): readonly string[] {
  return filesUnder(folder).filter(file => codeEndings.has(extname(file)))
}

const codeEndings = new Set(['.js', '.mjs', '.cjs', '.ts', '.mts', '.json', '.wasm', '.node'])

/** What others installed, or made anew on each machine. */
const leftOut = new Set(['node_modules', '.git', '__pycache__'])

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true })
    .flatMap(entry => {
      const path = join(folder, entry.name)
      if (leftOut.has(entry.name)) return []
      if (entry.isDirectory()) return filesUnder(path)
      return statSync(path, { throwIfNoEntry: false })?.isFile() ? [path] : []
    })
    .sort()
}

/** Of a longer file, such as the weights of a model, its length, beginning and end stand for it. */
const longest = 64 << 20
const ends = 1 << 20

function contentOf(path: string): Buffer {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size <= longest) return size === 0 ? Buffer.alloc(0) : readFileSync(path)
  const bytes = Buffer.alloc(2 * ends)
  const file = openSync(path, 'r')
  try {
    readSync(file, bytes, 0, ends, 0)
    readSync(file, bytes, ends, ends, size - ends)
  } finally {
    closeSync(file)
  }
  return Buffer.concat([Buffer.from(`${size}`), bytes])
}
