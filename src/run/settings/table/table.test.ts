import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { defaults, type SettingName } from '../settings.ts'

/** The comments of settings that name a literal default, as editors show them. */
function documented(): readonly (readonly [SettingName, string])[] {
  const folder = new URL('./', import.meta.url)
  const files = readdirSync(folder).filter(name => !name.includes('.test.'))
  return files.flatMap(file => {
    const text = readFileSync(new URL(file, folder), 'utf8')
    const found = text.matchAll(/@default ('[^']*'|[\d.]+|true|false) \*\/\n {2}(\w+):/g)
    return [...found].map(([, value, name]) => [name as SettingName, value!] as const)
  })
}

it('the default that a comment names is the default', () => {
  expect(documented().length).toBeGreaterThan(15)
  for (const [name, value] of documented()) {
    const shown =
      typeof defaults[name] === 'string' ? `'${defaults[name]}'` : String(defaults[name])
    expect(`${name} ${value}`).toBe(`${name} ${shown}`)
  }
})
