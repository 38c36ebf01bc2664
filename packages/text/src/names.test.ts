import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const source = fileURLToPath(new URL('.', import.meta.url))

/** Names that an index gives out, each with the file that it says they are from. */
function exportedBy(index: string): readonly (readonly [name: string, file: string])[] {
  const text = readFileSync(index, 'utf8')
  return [...text.matchAll(/export (?:type )?\{([^}]*)\} from '([^']+)'/g)].flatMap(
    ([, names = '', from = '']) =>
      names
        .split(',')
        .map(name => name.trim().replace(/^type /, ''))
        .filter(name => name !== '')
        .map(name => [name, join(dirname(index), from)] as const),
  )
}

/** Whether a sentence stands before what declares the name, in the file or in one that it passes on. */
function isDescribed(name: string, file: string): boolean {
  const text = readFileSync(file, 'utf8')
  const declared = new RegExp(
    `(\\*/\\n)?export (?:declare |abstract |async )*(?:function\\*?|class|const|type|interface) ${name}\\b`,
  ).exec(text)
  if (declared) return declared[1] !== undefined
  const passed = exportedBy(file).find(([each]) => each === name)
  return passed !== undefined && isDescribed(...passed)
}

const indexes = ['.', ...readdirSync(source)]
  .filter(name => !name.includes('.ts'))
  .map(name => join(source, name, 'index.ts'))

it('every name that the package gives out has a sentence', () => {
  const names = indexes.flatMap(exportedBy)
  expect(names.length).toBeGreaterThan(100)
  expect(names.filter(([name, file]) => !isDescribed(name, file))).toEqual([])
})
