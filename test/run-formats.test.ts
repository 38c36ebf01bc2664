import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { exportRun } from '../src/run/exchange/export.ts'
import { roll } from '../src/run/run/roll.ts'
import { rollOptionsOf } from '../src/run/run/roll-options.ts'
import { type SettingsInput, withDefaults } from '../src/run/settings/settings.ts'
import { readManifest, runFormat, runPaths } from '../src/run/store/run-folder.ts'
import { openRunReader } from '../src/run/store/store.ts'

const fixtures = join(import.meta.dirname, 'fixtures', 'runs')
const formats = Array.from({ length: runFormat }, (_, index) => index + 1)
const scratch = (): string => mkdtempSync(join(tmpdir(), 'espalier-format-'))

type Row = Readonly<Record<string, unknown>>

const rowsIn = (file: string): readonly Row[] =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Row)

async function exported(run: string): Promise<readonly Row[]> {
  const out = join(scratch(), 'rows.jsonl')
  await exportRun(run, { to: 'jsonl', out })
  return rowsIn(out)
}

/** Every field that the old program exported is as it was; further ones may have come since. */
function expectSame(now: readonly Row[], then: readonly Row[], logprobsWithin = 0): void {
  expect(now).toHaveLength(then.length)
  for (const [index, { run: _, logprobs, ...row }] of then.entries()) {
    for (const [field, value] of Object.entries(row)) {
      expect(now[index]![field], `${field} of row ${index}`).toEqual(value)
    }
    const [was, is] = [logprobs, now[index]!.logprobs] as [number[], number[]]
    expect(is).toHaveLength(was.length)
    const furthest = Math.max(...was.map((each, token) => Math.abs(each - is[token]!)))
    expect(furthest, `log-probabilities of row ${index}`).toBeLessThanOrEqual(logprobsWithin)
  }
}

it('has a fixture of every format up to the one that is written', () => {
  expect(readdirSync(fixtures).filter(name => name !== 'README.md')).toEqual(
    formats.map(format => `format-${format}`),
  )
})

describe.each(formats)('[P1] a run folder of format %i', format => {
  const folder = join(fixtures, `format-${format}`)

  it('says its format, opens, and exports what it did then', async () => {
    const run = join(folder, 'finished')
    expect(await readManifest(run)).toMatchObject({ format, kind: 'roll', status: 'finished' })
    await using reader = await openRunReader(run)
    expect([reader.groupCount, reader.treeCount]).toEqual([2, 4])
    expectSame(await exported(run), rowsIn(join(folder, 'finished.jsonl')))
  })

  it('goes on where it was stopped, attempts that were cut among it', async () => {
    const run = join(scratch(), 'run')
    cpSync(join(folder, 'stopped'), run, { recursive: true })
    expect(existsSync(runPaths(run).unfinished)).toBe(true)
    const { config } = await readManifest(run)
    const values = withDefaults({ ...(config as SettingsInput), keep: 4, refill: 5 })
    const options = { ...rollOptionsOf(values), out: run, resumes: true }
    let groups = 0
    for await (const _ of roll(values.environment!, values.tasks!, options)) groups++
    expect(groups).toBeGreaterThan(0)
    expect(await readManifest(run)).toMatchObject({ format: runFormat, status: 'finished' })
    // The model samples on in another order of sums than it had then, or with fused multiplication.
    expectSame(await exported(run), rowsIn(join(folder, 'stopped.jsonl')), 1e-5)
  })
})
