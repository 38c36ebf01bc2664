import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { showSignals, signals, signalTasks } from '../../../test/signals.ts'
import { isHeldOut } from '../../base/core/group.ts'
import { openRunReader } from '../../run/store/store.ts'
import { openEmbedded } from '../model/embedded.ts'
import type { StepRecord } from './steps/step-record.ts'
import { teach } from './teach.ts'
import { train } from './train.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-training-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const options = {
  steps: 4,
  tasksPerStep: 4,
  group: 3,
  heldOut: 4,
  learningRate: 1e-3,
  checkpointEvery: 1,
  limits: { newTokens: 12, turns: 3 },
  seed: 2,
  reward: {
    length: ({ trajectory }: { trajectory: { usage: { sampled: number } } }) =>
      trajectory.usage.sampled,
  },
} as const

const tasks = signalTasks(40, 1)
const weightsOf = (run: string): Buffer =>
  readFileSync(join(folder, run, 'checkpoints/000004/model.safetensors'))

it('an interrupted training run ends with the same weights, bit for bit; one that rolls ahead learns too', async () => {
  const taught = join(folder, 'taught')
  await using _first = await teach(signals, signalTasks(60, 1), {
    show: showSignals(1, 0.25),
    seed: 1,
    epochs: 2,
    shape: { width: 32, layers: 1, heads: 2, hidden: 32, context: 64 },
    threads: 1,
    out: taught,
  })
  const run = async (out: string, more: object = {}): Promise<readonly StepRecord[]> => {
    await using policy = await openEmbedded(taught, { threads: 1 })
    const records: StepRecord[] = []
    const onStep = (record: StepRecord): void => void records.push(record)
    await train(signals, tasks, { ...options, policy, out: join(folder, out), onStep, ...more })
    return records
  }
  const whole = await run('whole')
  expect(whole.at(-1)!.version).toBeGreaterThan(0)
  const stop = new AbortController()
  const onStep = ({ step }: StepRecord): void => {
    if (step === 2) stop.abort(new Error('cut'))
  }
  await expect(run('cut', { signal: stop.signal, onStep })).rejects.toThrow('cut')
  const rest = await run('cut', { resumes: true })
  expect(rest.map(({ step }) => step)).toEqual([3, 4].slice(-rest.length))
  expect(weightsOf('cut').equals(weightsOf('whole'))).toBe(true)
  const ahead = await run('ahead', { maxStaleness: 2 })
  expect(ahead.some(({ staleness }) => staleness.most > 0)).toBe(true)
  expect(ahead.every(({ staleness, unscored }) => staleness.most <= 2 && unscored === 0)).toBe(true)
})

it('[T5] single turns are learned with the ratio to what they were sampled with, and measured at a temperature of their own', async () => {
  const out = join(folder, 'single')
  const records: StepRecord[] = []
  const more = {
    policy: 'embedded',
    steps: 1,
    tasksPerStep: 4,
    heldOut: 4,
    limits: { newTokens: 24, turns: 6 },
    seed: 2,
    singleTurn: true,
    stepHistory: 1,
    importance: ['token'],
    evaluateTemperature: 0.5,
    onStep: (record: StepRecord): void => void records.push(record),
  }
  await expect(train('desk', 40, more)).rejects.toThrow('--proximal recompute')
  await train('desk', 40, { ...more, proximal: 'recompute', out })
  // The new prompts are not those it was sampled from: ratios are not 1 before anything is learned.
  expect(records[0]!.metrics.mismatchKl).toBeGreaterThan(1e-4)
  expect(records[0]!.metrics.importanceMean).not.toBe(1)
  await using reader = await openRunReader(out)
  const temperatures = new Map<boolean, number>()
  for await (const { group } of reader.groups())
    for (const { tree } of group.members)
      temperatures.set(isHeldOut(group), tree.sampling.temperature)
  expect([...temperatures].sort()).toEqual([
    [false, 1],
    [true, 0.5],
  ])
})
