import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCommand } from '../../../../test/command-line.ts'
import { dicePolicy, openByteRenderer } from '../../../../test/rolling.ts'
import { calculator } from '../../../engine/environments/built-in/calculator.ts'
import { elsewhere } from '../../../engine/environments/elsewhere.ts'
import { makeEstimate } from '../../../engine/weigh/estimate.ts'
import { rollIntoRun } from '../../../run/run/open-run-folder.ts'
import { openRunReader } from '../../../run/store/store.ts'
import { train, trainOn } from '../train.ts'
import type { TrainOptions } from '../train-options.ts'
import type { StepRecord } from './step-record.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-stored-'))
const at = (name: string): string => join(folder, name)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function run(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(words)
  expect(code, stderr).toBe(0)
  return stdout + stderr
}

const rolling = ['--policy', 'embedded', '--environment', 'desk', '--threads', '1']
beforeAll(async () => {
  await run('roll', ...rolling, '--tasks', '10', '--group', '4', '--out', at('rolled'))
})

const options = {
  policy: 'embedded',
  from: at('rolled'),
  tasksPerStep: 4,
  heldOut: 4,
  checkpointEvery: 1,
  learningRate: 1e-3,
} as const

async function learn(more: Partial<TrainOptions> = {}) {
  const records: StepRecord[] = []
  const onStep = (record: StepRecord): void => void records.push(record)
  const trained = await train('desk', 4, { ...options, onStep, ...more })
  return { ...trained, records }
}

describe('learning from a stored run', () => {
  it('ends when its groups are used up, and says that it is off-policy', async () => {
    const told: string[] = []
    const more = { proximal: 'recompute', importance: ['token'], out: at('learned') } as const
    const { records, from } = await learn({ ...more, tell: line => void told.push(line) })
    expect(records.map(({ groups, offPolicy }) => [groups, offPolicy])).toEqual([
      [4, true],
      [4, true],
      [2, true],
    ])
    expect(from).toMatchObject({ run: at('rolled'), groups: 10, trajectories: 40 })
    expect(records.map(({ staleness }) => staleness.most)).toEqual([0, 1, 2])
    // The first step learns with the weights that sampled; later ones are weighed against them.
    expect(records.map(({ metrics }) => metrics.mismatchKl! > 0)).toEqual([false, true, true])
    expect(records[2]!.metrics.importanceMean).not.toBe(1)
    const [{ ledger }] = records.slice(-1) as [StepRecord]
    expect(ledger.learned + ledger.heldOut).toBe(ledger.sampled)
    expect(told.join('\n')).toMatch(
      /off-policy: 3 steps from 10 groups .*--importance token weighs/,
    )
    const report = JSON.parse(readFileSync(at('learned/report.json'), 'utf8'))
    expect(report.training.from).toEqual(from)
    expect((await learn({ steps: 2 })).records).toHaveLength(2)
  })

  it('ends with the same weights, bit for bit, if it was interrupted', async () => {
    const stop = new AbortController()
    const onStep = ({ step }: StepRecord): void => {
      if (step === 1) stop.abort(new Error('cut'))
    }
    const weightsOf = (out: string): Buffer =>
      readFileSync(at(`${out}/checkpoints/000003/model.safetensors`))
    await learn({ out: at('whole') })
    await expect(learn({ out: at('cut'), onStep, signal: stop.signal })).rejects.toThrow('cut')
    const { records } = await learn({ out: at('cut'), resumes: true })
    expect(records.map(({ step }) => step)).toEqual([2, 3])
    expect(weightsOf('cut').equals(weightsOf('whole'))).toBe(true)
  })

  it('keeps the steps it took if it fails, though its folder holds no attempts', async () => {
    const onStep = ({ step }: StepRecord): void => {
      if (step === 2) throw new Error('broken')
    }
    const { heldOut: _, ...unmeasured } = options
    const out = at('failed')
    const failing = trainOn(elsewhere, undefined, { ...unmeasured, onStep, out })
    await expect(failing).rejects.toThrow('broken')
    const { steps } = await trainOn(elsewhere, undefined, { ...unmeasured, out, resumes: true })
    expect(steps).toBe(3)
  })

  it('does not learn from tasks that are held out', async () => {
    await using reader = await openRunReader(at('rolled'))
    const tasks = reader.tasks().map(({ data }) => data as object)
    const trained = await train('desk', tasks, { ...options, heldOut: 3 })
    expect(trained.from?.groups).toBe(7)
  })

  it('takes converted turns that were scored behind their new prompts', async () => {
    const words = ['convert', at('rolled'), '--to', 'steps', '--step-history', '0', '--json']
    const { distance } = JSON.parse(
      (await run(...words, '--policy', 'embedded', '--out', at('scored'))).split('\n')[0]!,
    )
    expect(distance.tokens).toBeGreaterThan(100)
    // The weights are those that sampled; only prompts differ.
    expect(distance.k3).toBeGreaterThan(1e-5)
    expect(distance.far).toBeLessThan(0.5)
    const correction = { proximal: 'recompute', importance: ['token'] } as const
    const { records } = await learn({ from: at('scored'), ...correction })
    expect(records[0]!.metrics.mismatchKl).toBeGreaterThan(1e-5)
    expect(records[0]!.metrics.importanceMean).not.toBe(1)
    const rows = ['--to', 'jsonl', '--importance', 'token', '--out', at('rows.jsonl')]
    await run('export', at('scored'), ...rows)
    const [row] = readFileSync(at('rows.jsonl'), 'utf8').split('\n')
    expect(JSON.parse(row!)).toMatchObject({ basis: 'tempered', importance: expect.anything() })
    expect(JSON.parse(row!).proximalLogprobs).toHaveLength(JSON.parse(row!).logprobs.length)
    await run('convert', at('rolled'), '--to', 'steps', '--out', at('bare'))
    await expect(learn({ from: at('bare') })).rejects.toThrow(
      /40 of its 40 .* no log-prob.*--policy/,
    )
  })

  it('refuses what nothing can be learned from, before anything is begun', async () => {
    const out = at('refused')
    const refused = (more: Partial<TrainOptions>, reason: RegExp) =>
      expect(learn({ out, ...more })).rejects.toThrow(reason)
    await refused({ from: at('nothing') }, /nothing is not a run: there is no such folder/)
    await refused({ maxStaleness: 1 }, /--max-staleness 1 is for attempts that are rolled/)
    const renderer = await openByteRenderer({ toolFormat: 'hermes' })
    const environment = calculator()
    const parts = {
      environment,
      renderer,
      policy: dicePolicy(renderer),
      estimate: makeEstimate('grpo'),
    }
    const record = { out: at('bytes'), kind: 'roll', config: {} }
    for await (const _ of rollIntoRun(2, { ...parts, group: 2 }, record));
    await refused({ from: at('bytes') }, /another tokenizer/)
    const reward = { broken: () => Promise.reject(new Error('no')) }
    const unscored = { out: at('unscored'), kind: 'roll', config: {} }
    for await (const _ of rollIntoRun(1, { ...parts, reward, group: 2 }, unscored));
    await refused({ from: at('unscored') }, /none of its 2 trajectories has a reward/)
  })

  it('needs no environment, and no other source beside it', async () => {
    const words = ['train', '--from', at('rolled'), '--policy', 'embedded', '--tasks-per-step', '8']
    expect(await run(...words, '--out', at('alone'))).toMatch(/learned from \d+ tokens in 2 steps/)
    const both = await runCommand([...words, '--gateway', '--out', at('both')])
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('--from and --gateway')])
    const planned = await runCommand([...words, '--dry-run', '--out', at('both')])
    expect(planned.stderr).toContain('with --from nothing is')
  })
})
