import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCommand } from '../../../test/command-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-init-'))

it('says what to do next as it can be pasted, whatever the folder is called', async () => {
  const { code, stderr } = await runCommand(['init', join(folder, "a b/ü's")])
  expect(code).toBe(0)
  expect(stderr).toContain(`next  cd '${folder}/a b/ü'\\''s' && `)
  const plain = await runCommand(['init', join(folder, 'pears')])
  expect(plain.stderr).toContain(`next  cd ${folder}/pears && `)
})

it('is misused with a folder below a file', async () => {
  writeFileSync(join(folder, 'file'), '')
  const { code, stderr } = await runCommand(['init', join(folder, 'file/x')])
  expect([code, stderr]).toEqual([2, expect.stringContaining('is a file, not a folder')])
})
