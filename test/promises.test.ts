import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')

/** The numbers of all promises, as SPEC.md gives them. */
const promises = [...read('SPEC.md').matchAll(/^- \*\*([A-Z]\d+)\*\*/gm)].map(([, name]) => name!)

/** The names of all tests, each behind the names of what it stands in. */
function testNames(): readonly string[] {
  const files = ['packages', 'src', 'test', 'viewer'].flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(file => /\.(test|conformance)\.tsx?$/.test(file))
      .map(file => join(folder, file)),
  )
  return files.flatMap(file => namesIn(read(file)))
}

function namesIn(text: string): readonly string[] {
  const names: string[] = []
  let around = ''
  // A name is a text behind the opening bracket, or behind the table of `each`.
  for (const line of text.matchAll(/^( *)(describe|it)(?:\.\w+)?\(|^ *\]\)\(/gm)) {
    const name = /^[^'"`\n]*?\n?\s*['"`]([^\n]*)/.exec(text.slice(line.index + line[0].length))
    if (line[2] === 'describe') around = line[1] === '' ? (name?.[1] ?? '') : around
    else names.push(`${around} ${name?.[1] ?? ''}`)
  }
  return names
}

describe('every numbered promise', () => {
  const names = testNames()

  it('is found in the specification', () => {
    expect(promises.length).toBeGreaterThan(20)
    expect(names.length).toBeGreaterThan(1000)
  })

  it.each(promises)('%s has at least three tests that name it', promise => {
    const naming = names.filter(name => new RegExp(`\\b${promise}\\b`).test(name))
    expect(naming.length, naming.join('\n')).toBeGreaterThanOrEqual(3)
  })
})
