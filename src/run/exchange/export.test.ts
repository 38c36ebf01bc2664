import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { toExport } from '../../../test/export-runs.ts'
import { writeTo } from '../../../test/memory-output.ts'
import { dicePolicy, openByteRenderer } from '../../../test/rolling.ts'
import {
  addCredit,
  creditDifference,
  rllmPrecomputed,
  slimeByMetadata,
  type TokenCredit,
  tinkerSum,
  trlAsync,
  verifiersBranches,
  verlEspalier,
} from '../../../test/trainer-formulas.ts'
import type { Filter, Group } from '../../base/core/group.ts'
import { calculator } from '../../engine/environments/built-in/calculator.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { groupRows } from '../rows/row-record.ts'
import { rollIntoRun } from '../run/open-run-folder.ts'
import { type RollParts, rollGroups } from '../run/roll-groups.ts'
import { readStrategy } from '../settings/open-strategy.ts'
import { formatNamed, formats } from '../sinks/formats/registry.ts'
import { readManifest } from '../store/run-folder.ts'
import { parquetRows } from '../tasks/parquet-rows.ts'
import { reportRun } from '../watch/run-report.ts'
import { exportRun } from './export.ts'

const renderer = await openByteRenderer()
const scratch = mkdtempSync(join(tmpdir(), 'espalier-export-'))
const tasks = Array.from({ length: 6 }, (_, id) => ({
  id,
  prompt: `${id} + 1`,
  answer: String(id + 1),
}))

const parts = (more: Partial<RollParts> = {}): RollParts => ({
  environment: calculator(),
  policy: dicePolicy(renderer),
  renderer,
  estimate: makeEstimate('grpo'),
  group: 4,
  limits: { turns: 5 },
  reward: { turns: ({ trajectory }) => trajectory.turns.length },
  seed: 5,
  ...more,
})

async function rollTo(name: string, config: object = {}, more: Partial<RollParts> = {}) {
  const out = join(scratch, name)
  const record = { out, kind: 'roll', config: { ...config } }
  for await (const _ of rollIntoRun(tasks, parts(more), record));
  return out
}

const read = (file: string): readonly Record<string, unknown>[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as Record<string, unknown>)

const run = await rollTo('run')

/** Drops trajectories of one turn. */
const shortOnes: Filter = {
  name: 'short',
  judge: ({ members }) =>
    new Map(
      members
        .filter(({ trajectory }) => trajectory.turns.length === 1)
        .map(({ trajectory }) => [trajectory.id, { reason: 'one turn', from: 'loss' }]),
    ),
}

/** Which tokens of a written row are in the loss. */
function maskOf(to: string, line: Record<string, unknown>): readonly number[] {
  const names = { trl: 'env_mask', verl: 'response_mask', slime: 'loss_mask' }
  if (to !== 'tinker') return line[names[to as keyof typeof names] ?? 'mask'] as number[]
  const { advantages } = line.loss_fn_inputs as { advantages: { data: number[] } }
  return advantages.data.map(value => Number(value !== 0))
}

async function readTable(file: string): Promise<readonly Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = []
  for await (const row of parquetRows(file)) rows.push({ ...row })
  return rows
}

describe('export of a run', () => {
  it.each(formats.map(({ name }) => name))('writes %s, with the lines that load it', async to => {
    const out = join(scratch, `rows.${to}`)
    const { rows, loading } = await exportRun(run, { to, out })
    expect(rows).toBeGreaterThan(0)
    expect(loading.join('\n')).toMatch(/\S/)
    expect(existsSync(out)).toBe(true)
    expect(existsSync(`${out}.partial`)).toBe(false)
  })

  it('writes the same bytes twice, in the order of tasks, members and rows', async () => {
    const files = ['a', 'b'].map(name => join(scratch, name))
    for (const out of files) await exportRun(run, { to: 'jsonl', out })
    const [first, second] = files.map(file => readFileSync(file, 'utf8'))
    expect(first).toBe(second)
    const places = read(files[0]!).map(({ task, member, row }) => [task, member, row].join('/'))
    expect(places).toEqual([...places].sort())
  })

  it('selects by a condition and by rank, and counts what it left out', async () => {
    const out = join(scratch, 'best')
    const { rows, leftOut } = await exportRun(run, {
      to: 'jsonl',
      out,
      where: 'turns >= 2',
      best: 1,
    })
    const lines = read(out)
    expect(rows).toBe(lines.length)
    expect(new Set(lines.map(({ group }) => group)).size).toBe(lines.length)
    expect(leftOut.where! + leftOut.best! + lines.length).toBe(24)
  })

  it.each(['jsonl', 'parquet', 'trl', 'verl', 'slime', 'tinker'])(
    '[D1] %s has no token of what --include adds in the loss, and counts what the file holds',
    async to => {
      const mixed = await rollTo(
        `mixed-${to}`,
        {},
        {
          filters: [shortOnes],
          reward: {
            turns: ({ trajectory }) => {
              if (trajectory.turns.length === 2) throw new Error('no reward for two')
              return trajectory.turns.length
            },
          },
        },
      )
      const only = await exportRun(mixed, { to, out: join(scratch, `only-${to}`) })
      const out = join(scratch, `mixed-rows-${to}`)
      const all = await exportRun(mixed, { to, out, include: ['failed', 'filtered'] })
      expect(all.rows).toBeGreaterThan(only.rows)
      expect(all.leftOut).toEqual({})
      expect(all.form!.trained).toBe(only.form!.trained)
      expect(all.form!.tokens).toBeGreaterThan(only.form!.tokens)
      const lines = to === 'parquet' ? await readTable(out) : read(out)
      expect(lines).toHaveLength(all.rows)
      const sums = lines.map(line => maskOf(to, line).reduce((sum, bit) => sum + bit, 0))
      expect(sums.reduce((sum, each) => sum + each, 0)).toBe(all.form!.trained)
      if (to !== 'jsonl' && to !== 'parquet') return
      const untrained = lines.filter(({ advantage }) => (advantage ?? null) === null)
      expect(untrained.length).toBeGreaterThan(0)
      const tokens = lines.reduce((sum, { ids }) => sum + (ids as readonly number[]).length, 0)
      expect(all.form!.tokens).toBe(tokens)
    },
  )

  it('[D1] counts attempts that sampled nothing, which have no row', async () => {
    let asked = 0
    const dice = dicePolicy(renderer)
    const policy = {
      ...dice,
      sample: ((...call) => {
        if (asked++ % 7 === 0) throw new Error('the server is gone')
        return dice.sample(...call)
      }) as typeof dice.sample,
    }
    const broken = await rollTo('broken', {}, { policy })
    const written = { to: 'jsonl', out: join(scratch, 'broken.jsonl') }
    const { leftOut } = await exportRun(broken, written)
    const { lost, rows } = await exportRun(broken, { ...written, include: ['failed'] })
    const silent = lost.find(({ what }) => what.includes('sampled nothing'))!
    expect(silent.count).toBeGreaterThan(0)
    expect(rows + silent.count).toBe(24)
    expect(leftOut.failed).toBeGreaterThanOrEqual(silent.count)
  })

  it('says that trl-sft trains on what --include adds, since it has no mark for it', async () => {
    const filtered = await rollTo('filtered', {}, { filters: [shortOnes] })
    const out = join(scratch, 'filtered.sft')
    const { lost } = await exportRun(filtered, { to: 'trl-sft', out, include: ['filtered'] })
    expect(lost.map(({ what }) => what)).toContain(
      'that trajectories failed or were filtered: TRL trains on them like the others',
    )
    expect(lost.map(({ what }) => what).join()).not.toContain('another trajectory of the tree')
  })

  it('names the file that cannot be written, as it was named, and why', async () => {
    const within = join(scratch, 'a-file')
    await exportRun(run, { to: 'jsonl', out: within })
    await expect(exportRun(run, { to: 'jsonl', out: join(within, 'rows') })).rejects.toThrow(
      `${join(within, 'rows')} cannot be written: a part of the path is a file`,
    )
    const nowhere = { to: 'jsonl' } as unknown as Parameters<typeof exportRun>[1]
    await expect(exportRun(run, nowhere)).rejects.toThrow('out is missing: name the file')
  })

  it('leaves a file alone that is no export', async () => {
    const out = join(scratch, 'tasks.jsonl')
    writeFileSync(out, '{"prompt":"1 + 1"}\n')
    await expect(exportRun(run, { to: 'trl', out })).rejects.toThrow(
      /tasks.jsonl is there already and no export of Espalier's/,
    )
    const sinks = [{ to: 'trl', out }]
    await expect(rollTo('over-tasks', { sinks })).rejects.toThrow(/is there already/)
    expect(readFileSync(out, 'utf8')).toBe('{"prompt":"1 + 1"}\n')
    expect(existsSync(`${out}.partial`)).toBe(false)
  })

  it('carries sampled ids and log-probabilities to ART, and says of which turns it does not', async () => {
    const { lost } = await exportRun(run, { to: 'art', out: join(scratch, 'art') })
    const words = lost.map(({ what }) => what).join()
    expect(words).not.toContain('tokens and log-probabilities')
    expect(words).not.toContain('token ids of turns')
  })

  it('leaves no file where a format refuses to begin', async () => {
    const out = join(scratch, 'tinker-grpo')
    await expect(exportRun(run, { to: 'tinker', out, loss: 'grpo' })).rejects.toThrow(/sums over/)
    expect([existsSync(out), existsSync(`${out}.partial`)]).toEqual([false, false])
  })

  it('leaves no file where a format refuses the run', async () => {
    const { strategy, environment } = await readStrategy(
      { strategy: 'tree', branch: 'fixed', leaves: 3, stepHistory: 1, topLogprobs: 0 },
      { environment: calculator(), renderer },
    )
    const trees = await rollTo('trees', {}, { group: 2, strategy, environment })
    const out = join(scratch, 'refused')
    const once = exportRun(trees, { to: 'skyrl', out, rows: 'once' })
    await expect(once).rejects.toThrow(/holds trees/)
    expect(existsSync(out)).toBe(false)
    expect(existsSync(`${out}.partial`)).toBe(false)
    const { rows, form, notes } = await exportRun(trees, { to: 'slime', out })
    expect(rows).toBeGreaterThan(0)
    expect(form).toMatchObject({ rows: 'paths', loss: 'ppo' })
    expect(form!.trained).toBeGreaterThan(form!.once)
    expect(notes.join()).toMatch(/ignores our advantages/)
    const cheap = await exportRun(trees, { to: 'verl', out, rows: 'once' })
    expect(cheap.form!.trained).toBe(form!.once)
    expect(cheap.notes.join()).toMatch(/shared by trajectories.*exact while ratios are 1/)
    await expect(exportRun(trees, { to: 'verl', out, rows: 'once', loss: 'gspo' })).rejects.toThrow(
      /gspo has a quantity per sequence.*--rows paths/,
    )
    await expect(exportRun(trees, { to: 'trl-sft', out, rows: 'paths' })).rejects.toThrow(
      /no rows that a policy loss/,
    )
    await expect(exportRun(trees, { to: 'verl', out, loss: 'gpso' })).rejects.toThrow(
      /No loss called/,
    )
  })

  it('says at once, in the report and in every format when log-probabilities are not the tempered ones', async () => {
    const cut = await rollTo('cut', {}, { sampling: { topP: 0.9 } })
    const problem = /drawn with top-p 0.9/
    const { untempered } = await reportRun(cut)
    expect(Object.keys(untempered).join()).toMatch(problem)
    const out = join(scratch, 'cut.rows')
    for (const to of ['jsonl', 'verl', 'tinker']) {
      const { notes, lost } = await exportRun(cut, { to, out })
      expect(notes.join()).toMatch(problem)
      expect(lost.some(({ what }) => /not the tempered ones/.test(what))).toBe(to !== 'jsonl')
    }
    expect((await exportRun(run, { to: 'verl', out })).notes.join()).not.toMatch(/tempered/)
  })

  it('says which formats there are', async () => {
    const asked = exportRun(run, { to: 'tlr', out: join(scratch, 'x') })
    await expect(asked).rejects.toThrow(/No format called "tlr". Known: jsonl, parquet, trl/)
  })
})

describe('[T5] what trainers train of a rolled run', () => {
  const ways = {
    slime: slimeByMetadata,
    verl: verlEspalier,
    trl: trlAsync,
    rllm: rllmPrecomputed,
    verifiers: verifiersBranches,
    tinker: tinkerSum,
  }

  it.each([
    ['chain', undefined],
    ['step', undefined],
    ['tree', 'fixed'],
    ['tree', 'tree-rl'],
    ['tree', 'tree-grpo'],
  ] as const)(
    'strategy %s %s: every token once, with the credit of the run',
    async (name, branch) => {
      const opened = await readStrategy(
        { strategy: name, branch, leaves: 4, stepHistory: 2, topLogprobs: 0 },
        { environment: calculator(), renderer },
      )
      const groups: Group[] = []
      for await (const group of rollGroups(tasks, parts({ ...opened, group: 2 })))
        groups.push(group)
      const ours: TokenCredit = new Map()
      for (const { row } of groups.flatMap(group => groupRows(group))) {
        const values = [...row.advantages].map((value, token) => value * row.weights[token]!)
        addCredit(ours, [...row.ids], values)
      }
      expect(ours.size).toBeGreaterThan(50)
      for (const [format, formula] of Object.entries(ways)) {
        const { lines } = await writeTo(formatNamed(format), groups.map(toExport))
        expect(creditDifference(formula(lines), ours)).toBeLessThan(1e-5)
      }
    },
  )
})

/** Linux's disk that takes no byte. */
const fullDisk = '/dev/full'

describe('live sinks', () => {
  it('write while the run goes on what an export writes after it', async () => {
    const out = join(scratch, 'live.jsonl')
    const live = await rollTo('live', { sinks: [{ to: 'jsonl', out }] })
    const later = join(scratch, 'later.jsonl')
    await exportRun(live, { to: 'jsonl', out: later })
    const sorted = (file: string): readonly string[] =>
      readFileSync(file, 'utf8').split('\n').sort()
    expect(sorted(out)).toEqual(sorted(later))
  })

  it('are whole after a run was interrupted and resumed', async () => {
    const out = join(scratch, 'resumed.jsonl')
    const folder = join(scratch, 'resumed')
    const config = { sinks: [{ to: 'jsonl', out }] }
    let groups = 0
    for await (const _ of rollIntoRun(tasks, parts(), { out: folder, kind: 'roll', config })) {
      if (++groups === 2) break
    }
    const record = { out: folder, kind: 'roll', config, resumes: true }
    for await (const _ of rollIntoRun(tasks, parts(), record));
    const trajectories = read(out).map(({ trajectory }) => trajectory)
    expect(new Set(trajectories).size).toBe(24)
    expect(trajectories.length).toBe(24)
  })

  it.skipIf(!existsSync(fullDisk))('are whole before their run counts as finished', async () => {
    const folder = join(scratch, 'full')
    const config = { sinks: [{ to: 'parquet', out: fullDisk }] }
    const rolling = (async () => {
      for await (const _ of rollIntoRun(tasks, parts(), { out: folder, kind: 'roll', config }));
    })()
    await expect(rolling).rejects.toThrow(/the disk is full/)
    expect((await readManifest(folder)).status).toBe('stopped')
  })

  it('refuse an unknown format before anything is rolled', async () => {
    await expect(rollTo('wrong', { sinks: [{ to: 'nothing', out: 'x' }] })).rejects.toThrow(
      /No format called "nothing"/,
    )
  })
})
