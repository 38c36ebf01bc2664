import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bestModelLines } from './model-hints.ts'

it('a model is measured as training measured it, with everything that attempts depend on', () => {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-best-'))
  writeFileSync(join(folder, 'config.json'), '{}')
  const config = { environment: 'desk', condense: 'keep-last-turns', topP: 0.9, maxTurns: 4 }
  const lines = bestModelLines({ step: 1, success: 1, before: 0, folder }, config)
  const measure = lines.find(line => line.startsWith('measure it'))
  expect(measure).toMatch(/--max-turns 4 --top-p 0.9 --condense keep-last-turns$/)
})

describe('that a measurement flatters', () => {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-best-'))
  writeFileSync(join(folder, 'config.json'), '{}')
  const linesOf = (more: object, best: object = {}) =>
    bestModelLines(
      { step: 1, success: 1, before: 0, folder, ...best },
      { tasks: 'a.jsonl', ...more },
    )

  it('is said where held-out tasks were taken from those that are named, and nowhere else', () => {
    const warned = expect.arrayContaining([expect.stringContaining('were trained on')])
    expect(linesOf({})).toEqual(warned)
    expect(linesOf({ tasks: 200, heldOut: 40 })).toEqual(warned)
    expect(linesOf({ heldOut: 'b.jsonl' })).not.toEqual(warned)
    expect(linesOf({ split: 'train' })).toEqual(warned)
    expect(linesOf({}, { split: 'held-out' })).not.toEqual(warned)
  })
})
