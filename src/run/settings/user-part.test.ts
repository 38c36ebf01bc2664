import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import * as ours from '../../index.ts'
import { isUserPart, loadUserPart, splitUserPart } from './user-part.ts'

function file(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'espalier-part-')), 'part.ts')
  writeFileSync(path, text)
  return path
}

describe('a part of the user', () => {
  it('is told from a name by its path or its ending', () => {
    for (const name of ['./a.ts#b', '../a.js', '/x/a.mts#b', 'a.ts'])
      expect(isUserPart(name)).toBe(true)
    for (const name of ['desk', 'tau:retail,root=./dir', 'grpo:scale=none']) {
      expect(isUserPart(name)).toBe(false)
    }
  })

  it('may lie in a folder with a # in its name', () => {
    expect(splitUserPart('./C#/a.ts#b')).toEqual(['./C#/a.ts', 'b'])
    expect(splitUserPart('./C#/a.ts')).toEqual(['./C#/a.ts', undefined])
    expect(splitUserPart('./a#b')).toEqual(['./a', 'b'])
  })

  it('is TypeScript that shares our modules and needs no packages of its own', async () => {
    const path = file(`
import { environment } from 'espalier'
import { z } from 'zod'
enum Kind { One = 1 }
export const same: unknown = environment
export const kind: Kind = Kind.One
export const schema = z.string()
`)
    expect(await loadUserPart(`${path}#same`)).toBe(ours.environment)
    expect(await loadUserPart(`${path}#kind`)).toBe(1)
    expect(await loadUserPart(`${path}#schema`)).toHaveProperty('parse')
  })

  it('that is missing, or fails, is told with its place', async () => {
    const path = file('export const one = 1\nexport const two = 2\n')
    await expect(loadUserPart(`${path}#three`)).rejects.toThrow(
      `${path} has no export "three". It exports: one, two. Write ${path}#NAME.`,
    )
    await expect(loadUserPart('./nowhere.ts#x')).rejects.toThrow(
      /no file \.\/nowhere\.ts \(looked in/,
    )
    const near = file('export const one = 1\n').replace(/\.ts$/, '.tss')
    await expect(loadUserPart(near)).rejects.toThrow(`Did you mean ${near.slice(0, -1)}?`)
    const unread = file('export const one = {{ 1\n')
    await expect(loadUserPart(unread)).rejects.toThrow(`${unread}:1: cannot be read: `)
    const lacking = file('import "no-such-package"\nexport const one = 1\n')
    for (const path of [unread, lacking]) {
      const error = await loadUserPart(path).catch((thrown: Error) => thrown)
      expect(error).toMatchObject({ name: 'SettingError' })
      expect(String(error)).not.toContain('\n')
    }
    await expect(loadUserPart(lacking)).rejects.toThrow("Cannot find module 'no-such-package'")
    const broken = file(
      'interface Shape { side: number }\n\nconst shape = undefined as unknown as Shape\nconsole.log(shape.side)\n',
    )
    await expect(loadUserPart(broken)).rejects.toThrow(`${broken}:4: TypeError: Cannot read`)
  })
})
