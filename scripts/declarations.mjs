// Keeps only the declarations that an entry reaches: the others describe modules that nobody can load.
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

const specifiers = /(?:from |import\()["'](\.[^"']+)["']|^import ["'](\.[^"']+)["']/gm

/** Deletes the declarations of a folder that none of its entries names, directly or by others. */
export function keepReachable(folder, entries) {
  const reached = new Set()
  const waiting = entries.map(entry => join(folder, `${entry}.d.ts`))
  while (waiting.length > 0) {
    const file = waiting.pop()
    if (reached.has(file)) continue
    if (!existsSync(file)) throw new Error(`${file} is named by an entry and was not made`)
    reached.add(file)
    for (const [, named, bare] of readFileSync(file, 'utf8').matchAll(specifiers))
      waiting.push(join(dirname(file), (named ?? bare).replace(/\.(?:ts|js)$/, '.d.ts')))
  }
  for (const file of readdirSync(folder, { recursive: true }).map(name => join(folder, name)))
    if (file.endsWith('.d.ts') && !reached.has(file)) rmSync(file)
  removeEmpty(folder)
}

function removeEmpty(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeEmpty(join(folder, entry.name))
  if (readdirSync(folder).length === 0) rmdirSync(folder)
}
