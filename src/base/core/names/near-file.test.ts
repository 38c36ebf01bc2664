import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { expect, it } from 'vitest'
import { nearFile } from './near-file.ts'

it('names a file as it was meant, so that the path can be pasted', () => {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-near-'))
  mkdirSync(join(folder, 'deep'))
  writeFileSync(join(folder, 'deep/triage.ts'), '')
  const deep = relative('.', join(folder, 'deep'))
  expect(nearFile(`${folder}/deep/triag.ts`)).toBe(` Did you mean ${folder}/deep/triage.ts?`)
  expect(nearFile(`./${deep}/triag.ts`)).toBe(` Did you mean ./${deep}/triage.ts?`)
  expect(nearFile(`${folder}/elsewhere/triag.ts`)).toBe('')
  // Where a folder on the way is not there, it is its name that is meant otherwise.
  expect(nearFile(`${folder}/depe/config.json`)).toBe(` Did you mean ${folder}/deep?`)
})
