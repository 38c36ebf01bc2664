import { mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { draftOf, removeDrafts, writeWhole } from './whole-file.ts'

const scratch = (): string => mkdtempSync(join(tmpdir(), 'espalier-whole-'))

it('H7: a whole file replaces a link at its place and follows none', async () => {
  const folder = scratch()
  const path = join(folder, 'run.json')
  writeFileSync(join(folder, 'theirs'), 'theirs')
  for (const name of ['run.json', 'run.json.next']) symlinkSync('theirs', join(folder, name))
  await writeWhole(path, 'ours', { isSynced: true })
  expect(readFileSync(path, 'utf8')).toBe('ours')
  expect(readFileSync(join(folder, 'theirs'), 'utf8')).toBe('theirs')
})

it('a refused write leaves no draft, and drafts of killed writers can be removed', async () => {
  const folder = scratch()
  await expect(writeWhole(join(folder, 'none', 'file'), 'x')).rejects.toThrow('ENOENT')
  await expect(writeWhole(folder, 'x')).rejects.toThrow()
  expect(readdirSync(folder)).toEqual([])
  for (const name of ['own.draft', 'file']) writeFileSync(join(folder, name), '')
  writeFileSync(draftOf(join(folder, 'file')), 'half')
  await removeDrafts(folder)
  expect(readdirSync(folder).sort()).toEqual(['file', 'own.draft'])
})
