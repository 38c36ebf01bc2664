// A hash of the sources that `dist/` was built from. npm builds a package again whenever it links it, as the
// first `npx espalier` of a checkout does; with the hash, an unchanged checkout is not built twice.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const stampFile = 'dist/.built-from'

const settings = ['package-lock.json', 'tsconfig.json', 'tsconfig.build.json']
const builders = ['build', 'build-kernels', 'build-viewer', 'bundle', 'declarations'].map(
  name => `scripts/${name}.mjs`,
)

function* filesBelow(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* filesBelow(path)
    else if (!/\.(test|test-d|conformance)\.tsx?$/.test(path)) yield path
  }
}

/** The number of the sources as they are now. */
export function stampOf() {
  const hash = createHash('sha256')
  const sources = ['packages/text/src', 'src', 'viewer'].flatMap(folder => [...filesBelow(folder)])
  for (const file of [...settings, ...builders, ...sources.sort()]) {
    const content = readFileSync(file)
    hash.update(`${file}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

/** Whether all that a build makes is there and was made from these sources. */
export function isBuilt() {
  const isWhole = existsSync(stampFile) && existsSync('packages/text/dist/index.js')
  return isWhole && readFileSync(stampFile, 'utf8') === stampOf()
}

/** Written last, so that a half-finished build never counts as whole. */
export function keepStamp(stamp) {
  writeFileSync(stampFile, stamp)
}
