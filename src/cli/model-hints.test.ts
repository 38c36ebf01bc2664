import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { bestModelLines } from './model-hints.ts'

it('a model is measured as training measured it, with everything that attempts depend on', () => {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-best-'))
  writeFileSync(join(folder, 'config.json'), '{}')
  const config = { environment: 'desk', condense: 'keep-last-turns', topP: 0.9, maxTurns: 4 }
  const lines = bestModelLines({ step: 1, success: 1, before: 0, folder }, config)
  const measure = lines.find(line => line.startsWith('measure it'))
  expect(measure).toMatch(/--max-turns 4 --top-p 0.9 --condense keep-last-turns$/)
})
