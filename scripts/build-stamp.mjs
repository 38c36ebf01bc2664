// A hash of the sources that `dist/` was built from. npm builds a package again whenever it links it, as the
// first `npx espalier` of a checkout does; with the hash, an unchanged checkout is not built twice.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const stampFile = 'dist/.built-from'

/** Files that a build makes beside the sources: the kernels and the files of threads. */
export const parts = ['model/wasm', 'policies/transport/thread/built']
const made = new Set(parts.map(part => join('src', part)))

const settings = ['package-lock.json', 'tsconfig.json', 'tsconfig.build.json']
const builders = [
  'build',
  'build-parts',
  'build-viewer',
  'bundle',
  'bundle-groups',
  'bundle-late',
].map(name => `scripts/${name}.mjs`)

function* filesBelow(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) {
      if (!made.has(path)) yield* filesBelow(path)
    } else if (!/\.(test|test-d|conformance)\.tsx?$/.test(path)) yield path
  }
}

/** The number of the sources as they are now. */
export function stampOf() {
  const hash = createHash('sha256')
  const sources = [...filesBelow('src'), ...filesBelow('viewer')].sort()
  for (const file of [...settings, ...builders, ...sources]) {
    const content = readFileSync(file)
    hash.update(`${file}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

/** Whether all that a build makes is there and was made from these sources. */
export function isBuilt() {
  const isWhole = [...made].every(path => existsSync(path)) && existsSync(stampFile)
  return isWhole && readFileSync(stampFile, 'utf8') === stampOf()
}

/** Written last, so that a half-finished build never counts as whole. */
export function keepStamp(stamp) {
  writeFileSync(stampFile, stamp)
}
