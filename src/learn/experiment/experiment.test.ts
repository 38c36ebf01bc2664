import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { replaceFile } from '../../run/store/run-folder.ts'
import { type Cell, type CellResult, resultFile } from './cell.ts'
import { readDesign } from './design.ts'
import { readDesignFile } from './design-file.ts'
import { estimateCell } from './estimate.ts'
import { type ExperimentOptions, experiment } from './experiment.ts'

const file = {
  question: 'Are groups of eight better?',
  tokens: 1000,
  seeds: 3,
  settings: { environment: 'desk', policy: 'embedded', tasks: 64 },
  arms: { four: { group: 4 }, eight: { group: 8 } },
}
const read = (change: object = {}) => readDesign({ ...file, ...change }, 'groups.toml')

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'espalier-experiment-test-'))
})

/** Cells that need no model: the larger the group, the better, and a little luck by seed. */
function fakeCells(failing: (cell: Cell) => boolean = () => false) {
  const ran: string[] = []
  const runCell: ExperimentOptions['runCell'] = async (cell, { signal }) => {
    signal.throwIfAborted()
    if (failing(cell)) throw new Error('the server said no')
    ran.push(`${cell.arm}/${cell.seed}`)
    const after = 0.5 + 0.02 * Number(cell.settings.group) + (cell.seed % 7) / 1000
    const step = { tokens: 1050, seconds: 2, success: after, reward: after }
    const result: CellResult = {
      ...{ arm: cell.arm, seed: cell.seed, tokens: 1050, steps: 1, seconds: 2, money: 0 },
      before: { success: 0.5, reward: 0.5 },
      after: {
        success: after + (cell.seed % 3) / (cell.arm === 'eight' ? 200 : 100),
        reward: after,
      },
      curve: [step],
    }
    await replaceFileAt(resultFile(cell), result)
    return result
  }
  return { ran, runCell }
}

async function replaceFileAt(path: string, value: object): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true })
  await replaceFile(path, JSON.stringify(value))
}

const options = (more: Partial<ExperimentOptions>): ExperimentOptions => ({
  out: folder,
  freshness: 5,
  signal: new AbortController().signal,
  jobs: 1,
  ...more,
})

describe('an experiment', () => {
  it('runs every arm with every seed and compares them in pairs', async () => {
    const { ran, runCell } = fakeCells()
    const { result } = await experiment(read(), options({ runCell }))
    expect(ran).toHaveLength(6)
    expect(result.comparisons).toMatchObject([
      { arm: 'eight', against: 'four', pairs: 3, changed: ['group'] },
    ])
    expect(result.seeds.every(({ seed }) => seed >= 1000)).toBe(true)
    const written = JSON.parse(readFileSync(join(folder, 'experiment.json'), 'utf8'))
    expect(written.cells).toHaveLength(6)
    expect(readFileSync(join(folder, 'page.html'), 'utf8')).toContain('<svg')
  })

  it('never runs a finished cell twice, and gives the same table after it was cut short', async () => {
    const whole = fakeCells()
    await experiment(read({ seeds: [11, 12, 13] }), options({ runCell: whole.runCell }))
    const table = readFileSync(join(folder, 'table.md'), 'utf8')
    const other = await mkdtemp(join(tmpdir(), 'espalier-experiment-test-'))
    const cut = new AbortController()
    const first = fakeCells(cell => {
      if (cell.seed === 12) cut.abort(new Error('stopped'))
      return false
    })
    const seeds = { seeds: [11, 12, 13] }
    const begun = options({ out: other, runCell: first.runCell, signal: cut.signal })
    await expect(experiment(read(seeds), begun)).rejects.toThrow('stopped')
    expect(existsSync(join(other, 'table.md'))).toBe(false)
    const second = fakeCells()
    await experiment(read(seeds), options({ out: other, runCell: second.runCell }))
    expect([...first.ran, ...second.ran].sort()).toEqual([...whole.ran].sort())
    expect(readFileSync(join(other, 'table.md'), 'utf8')).toBe(table)
  })

  it('marks seeds and arms that were added after looking, and widens its bounds', async () => {
    const { runCell } = fakeCells()
    const before = await experiment(read(), options({ runCell }))
    const after = await experiment(
      read({ arms: { ...file.arms, sixteen: { group: 16 } } }),
      options({ runCell, moreSeeds: 2, freshness: 6 }),
    )
    expect(before.result.isSequential).toBe(false)
    expect(after.result).toMatchObject({ isSequential: true, missing: 0 })
    expect(after.result.seeds.map(({ look }) => look)).toEqual([0, 0, 0, 1, 1])
    expect(after.result.comparisons.map(each => each.isAddedAfterLooking)).toEqual([false, true])
    expect(readFileSync(join(folder, 'table.md'), 'utf8')).toMatch(
      /2 seeds were added after results/,
    )
  })

  it('refuses to go on with another question, budget or arm than it began with', async () => {
    const { runCell } = fakeCells()
    await experiment(read(), options({ runCell }))
    const again = (change: object) => experiment(read(change), options({ runCell }))
    await expect(again({ tokens: 2000 })).rejects.toThrow(/begun with another budget/)
    await expect(again({ arms: { four: { group: 5 }, eight: { group: 8 } } })).rejects.toThrow(
      /another arm four/,
    )
    await expect(again({ question: 'What?' })).rejects.toThrow(/another question/)
  })

  it('says which cells failed, and tries only them again', async () => {
    const broken = fakeCells(({ arm, seed }) => arm === 'eight' && seed === 12)
    const seeds = { seeds: [11, 12] }
    const { result, failures } = await experiment(read(seeds), options({ runCell: broken.runCell }))
    expect(failures).toEqual([{ arm: 'eight', seed: 12, reason: 'the server said no' }])
    expect(result).toMatchObject({
      missing: 1,
      comparisons: [{ pairs: 1, difference: { low: null } }],
    })
    const mended = fakeCells()
    await experiment(read(seeds), options({ runCell: mended.runCell }))
    expect(mended.ran).toEqual(['eight/12'])
  })

  it('tells an arm that cannot run before anything is rolled', async () => {
    const { ran, runCell } = fakeCells()
    const arms = { ...file.arms, odd: { strategy: 'tree', branch: 'nope' } }
    await expect(experiment(read({ arms }), options({ runCell }))).rejects.toThrow(
      /arm odd: .*nope/,
    )
    const stored = { ...file.arms, odd: { from: join(folder, 'nowhere') } }
    await expect(experiment(read({ arms: stored }), options({ runCell }))).rejects.toThrow(
      /arm odd: .*nowhere is not a run/,
    )
    const elsewhere = { ...file.arms, odd: { policy: 'openai:http://127.0.0.1:9/v1' } }
    await expect(experiment(read({ arms: elsewhere }), options({ runCell }))).rejects.toThrow(
      /arm odd: .*cannot change its weights/,
    )
    expect(ran).toEqual([])
    expect(existsSync(join(folder, 'plan.json'))).toBe(false)
  })

  it('refuses a budget that is too small for one step', async () => {
    const { runCell } = fakeCells()
    const clock = () => 0
    const { signal } = new AbortController()
    await expect(estimateCell(read({ tokens: 1000 }), { signal, clock, runCell })).rejects.toThrow(
      /1000 are too few for one step, which took 1050/,
    )
  })
})

describe('the file of an experiment', () => {
  it.each([
    [{ arms: { four: { group: 4 } } }, /at least two, this has 1/],
    [{ arms: { a: {}, b: {} } }, /arms.b has the same settings as arms.a/],
    [{ arms: { a: {}, b: { temperature: 1 } } }, /arms.b has the same settings as arms.a/],
    [{ arms: { a: {}, b: { group: 3, against: 'c' } } }, /against "c": the other arms are a/],
    [{ arms: { a: {}, b: { grop: 3 } } }, /no setting called "grop". Did you mean "group"/],
    [{ arms: { a: {}, '../b': { group: 3 } } }, /is no name for an arm/],
    [{ settings: { ...file.settings, seed: 1 } }, /seed is decided by the experiment/],
    [{ seconds: 3 }, /tokens, seconds or money; here are tokens and seconds/],
    [{ tokens: undefined }, /here is none/],
    [{ tokens: undefined, money: 3 }, /needs the price/],
    [{ seeds: [1, 1] }, /one stands there twice/],
  ])('%j is refused with its place', (change, reason) => {
    expect(() => read(change)).toThrow(reason)
  })

  it('is read from TOML, JSON and TypeScript alike', async () => {
    const toml = `question = "Are groups of eight better?"\ntokens = 1000\nseeds = 3\n[settings]\nenvironment = "desk"\npolicy = "embedded"\ntasks = 64\n[arms.four]\ngroup = 4\n[arms.eight]\ngroup = 8\n`
    const files = {
      'e.toml': toml,
      'e.json': JSON.stringify(file),
      'e.ts': `export const experiment = ${JSON.stringify(file)}`,
    }
    for (const [name, text] of Object.entries(files)) {
      await writeFile(join(folder, name), text)
      expect(await readDesignFile(join(folder, name))).toEqual(read())
    }
    await expect(readDesignFile(join(folder, 'f.toml'))).rejects.toThrow(/no such file/)
    await writeFile(join(folder, 'broken.toml'), 'question = ')
    await expect(readDesignFile(join(folder, 'broken.toml'))).rejects.toThrow(/broken.toml/)
  })
})
