import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { differences, fingerprintOf } from './fingerprint.ts'

function writeParts(answer: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-test-'))
  writeFileSync(join(folder, 'world.ts'), "export { answer } from './answer.js'\n")
  writeFileSync(join(folder, 'answer.ts'), `export const answer = ${answer}\n`)
  return `${join(folder, 'world.ts')}#world`
}

it("[S1] covers the user's own files with all that they import, and says what differs", () => {
  const there = fingerprintOf({ environment: writeParts(1) })
  const same = fingerprintOf({ environment: writeParts(1) })
  const other = fingerprintOf({ environment: writeParts(2) })
  const digest = (print: object): string => Object.values(print).at(-1)
  expect(digest(same)).toBe(digest(there))
  expect(digest(other)).not.toBe(digest(there))
  expect(differences({ espalier: '1', more: 'x' }, { espalier: '2' })).toEqual([
    'espalier is 2 here and 1 at the coordinator',
    'more is missing here and x at the coordinator',
  ])
  expect(differences(there, { ...there })).toEqual([])
})
