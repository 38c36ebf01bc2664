import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import * as mathematics from './index.ts'

const page = readFileSync(
  new URL('../../../docs/reference/mathematics.md', import.meta.url),
  'utf8',
)
const everything: Readonly<Record<string, unknown>> = mathematics
const exported = Object.keys(everything)

/** The names that stand in backticks on the page, calls without their arguments, foreign names aside. */
function namesOn(text: string): ReadonlySet<string> {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '')
  const names = [...prose.matchAll(/`([a-zA-Z][a-zA-Z0-9]*)(?:\([^`]*\))?`/g)]
  return new Set(names.map(found => found[1]!).filter(name => name !== 'undefined'))
}

/** Fields, parameters, types and option words of the sources: what a page may name besides functions. */
function wordsOfSources(): ReadonlySet<string> {
  const files = readdirSync('src/base/math', { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts') && !file.includes('.test.'))
    .map(file => join('src/base/math', file))
  const text = files.map(file => readFileSync(file, 'utf8')).join('\n')
  const patterns = [/readonly (\w+)/g, /'([\w-]+)'/g, /(?:interface|type) (\w+)/g, /^ {2,}(\w+):/gm]
  return new Set(patterns.flatMap(pattern => [...text.matchAll(pattern)].map(found => found[1]!)))
}

describe('espalier/math', () => {
  it('exports every function that its page names', () => {
    const words = wordsOfSources()
    const unknown = [...namesOn(page)].filter(name => !exported.includes(name) && !words.has(name))
    expect(unknown).toEqual([])
  })

  it('is named on its page, function by function', () => {
    const named = namesOn(page)
    const functions = exported.filter(name => typeof everything[name] === 'function')
    expect(functions.length).toBeGreaterThan(60)
    expect(functions.filter(name => !named.has(name))).toEqual([])
  })
})
