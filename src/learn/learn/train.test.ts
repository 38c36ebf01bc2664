import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { showSignals, signals, signalTasks } from '../../../test/signals.ts'
import type { Group } from '../../base/core/group.ts'
import type { Trainer } from '../../base/core/trainer.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { groupRows } from '../../run/rows/row-record.ts'
import { rollGroups } from '../../run/run/roll-groups.ts'
import { readManifest } from '../../run/store/run-folder.ts'
import { openRunReader } from '../../run/store/store.ts'
import { openEmbedded } from '../model/embedded.ts'
import type { EmbeddedPolicy } from '../model/policy.ts'
import { type AuditedRow, auditRows, auditRun, type Scorer } from './audit.ts'
import { embeddedTrainer, rewardsOf } from './embedded-trainer.ts'
import { oraclePrompts, oracleTokenBonus } from './oracle.ts'
import type { StepRecord } from './steps/step-record.ts'
import { teach } from './teach.ts'
import { rendererOf, train } from './train.ts'

const { signal } = new AbortController()
let folder: string
let taught: EmbeddedPolicy

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'espalier-train-'))
  taught = await teach(signals, signalTasks(300, 1), {
    show: showSignals(1, 0.25),
    seed: 1,
    epochs: 12,
    batch: 16,
    shape: { width: 32, layers: 2, heads: 2, hidden: 64, context: 64 },
    threads: 1,
    out: join(folder, 'taught'),
  })
}, 120_000)

afterAll(async () => {
  await taught[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const small = { steps: 12, tasksPerStep: 12, group: 6, heldOut: 60, learningRate: 1.5e-3 } as const
const limits = { newTokens: 16, turns: 4 }

/** A policy of its own from the taught folder, so that tests do not share weights. */
async function fresh(): Promise<EmbeddedPolicy> {
  return await openEmbedded(join(folder, 'taught'), { threads: 1 })
}

async function rolled(policy: EmbeddedPolicy, count: number): Promise<readonly Group[]> {
  const groups: Group[] = []
  const parts = {
    environment: signals,
    policy,
    renderer: rendererOf(policy),
    estimate: makeEstimate('grpo'),
    group: 4,
    limits,
    seed: 3,
  }
  for await (const group of rollGroups(signalTasks(count, 5), parts)) groups.push(group)
  return groups.sort((a, b) => a.id.localeCompare(b.id))
}

describe('teach', () => {
  it('writes a model folder that opens again and knows how to ask and look', async () => {
    for (const name of [
      'config.json',
      'model.safetensors',
      'tokenizer.json',
      'chat_template.jinja',
    ]) {
      expect(existsSync(join(folder, 'taught', name))).toBe(true)
    }
    await using policy = await fresh()
    const groups = await rolled(policy, 12)
    const members = groups.flatMap(group => group.members)
    const looked = members.filter(({ trajectory }) => trajectory.calls[0]?.tool === 'look')
    expect(looked.length / members.length).toBeGreaterThan(0.9)
    expect(members.every(({ trajectory }) => trajectory.fidelity.kind === 'exact')).toBe(true)
  })

  it('gives the same bytes for the same seed and kernel', async () => {
    const options = {
      show: showSignals(2, 0.5),
      seed: 9,
      epochs: 1,
      shape: { width: 16, layers: 1, heads: 1, hidden: 16, context: 64 },
      kernel: 'plain',
    } as const
    const bytes = await Promise.all(
      [1, 2].map(async threads => {
        const out = join(folder, `same-${threads}`)
        await using _ = await teach(signals, signalTasks(40, 2), { ...options, threads, out })
        return await readFile(join(out, 'model.safetensors'))
      }),
    )
    expect(bytes[0]!.equals(bytes[1]!)).toBe(true)
  })
})

describe('train', () => {
  it('makes a policy better on tasks that it was not trained on, and keeps the run', async () => {
    await using policy = await fresh()
    const out = join(folder, 'run')
    const steps: number[] = []
    const trained = await train(signals, signalTasks(300, 7), {
      ...small,
      policy,
      limits,
      seed: 3,
      out,
      evaluateEvery: 6,
      onStep: ({ step }) => steps.push(step),
    })
    expect(trained.successBefore).toBeGreaterThan(0.2)
    expect(trained.successBefore).toBeLessThan(0.75)
    expect(trained.successAfter).toBeGreaterThan(trained.successBefore + 0.2)
    expect(trained.intervalAfter.low).toBeLessThan(trained.successAfter)
    expect(steps).toEqual(Array.from({ length: 12 }, (_, index) => index + 1))
    expect(await readManifest(out)).toMatchObject({ kind: 'train', status: 'finished' })
    const lines = (await readFile(join(out, 'metrics.jsonl'), 'utf8')).trim().split('\n')
    expect(lines.length).toBe(12)
    const first = JSON.parse(lines[0]!)
    for (const name of ['reward', 'entropy', 'kl', 'gradientNorm', 'loss', 'meanStaleness']) {
      expect(typeof first[name]).toBe('number')
    }
    expect(first.version).toBe(1)
    expect(typeof first.top[0].text).toBe('string')
    for (const name of ['000000', '000006', '000012']) {
      expect(existsSync(join(out, 'checkpoints', name, 'model.safetensors'))).toBe(true)
    }
    await using reader = await openRunReader(out)
    expect(reader.groupCount).toBe(12 * 12 + 3 * 60)
  }, 120_000)

  it('[S1] is a function of its seed', async () => {
    const run = async () => {
      await using policy = await fresh()
      const { successAfter, sampledTokens } = await train(signals, signalTasks(100, 3), {
        ...small,
        steps: 3,
        heldOut: 30,
        policy,
        limits,
        seed: 4,
      })
      return { successAfter, sampledTokens, version: policy.model.version() }
    }
    expect(await run()).toEqual(await run())
  }, 60_000)

  it('learns nothing at a learning rate of 0, and refuses what it cannot train', async () => {
    await using policy = await fresh()
    const before = await policy.score!(Int32Array.of(2, 3, 4), 1, { temperature: 1 }, { signal })
    await train(signals, signalTasks(60, 3), {
      ...small,
      steps: 2,
      heldOut: 12,
      policy,
      limits,
      learningRate: 0,
    })
    const after = await policy.score!(Int32Array.of(2, 3, 4), 1, { temperature: 1 }, { signal })
    expect(after.logprobs).toEqual(before.logprobs)
    await expect(
      train(signals, signalTasks(60, 3), { policy: 'sglang:http://localhost:1' }),
    ).rejects.toThrow('cannot change its weights')
    await expect(train(signals, signalTasks(3, 3), { policy, limits })).rejects.toThrow('too few')
  }, 60_000)

  it.each(['keep', 'overSample', 'trials', 'unfinished', 'port'])(
    'an option that changes nothing in training is refused: %s',
    async name => {
      const options = { policy: taught, [name]: 2 }
      await expect(train(signals, signalTasks(60, 3), options)).rejects.toThrow(
        `options.${name}: train takes no option "${name}"`,
      )
    },
  )
})

describe('the embedded trainer', () => {
  it('starts ratios at 1 from the recorded log-probabilities, and reports what changed most', async () => {
    await using policy = await fresh()
    const trainer = embeddedTrainer(policy.model, { learningRate: 1e-3, epochs: 2, updates: 2 })
    const { metrics, version, measure } = await trainer.step(await rolled(policy, 16), { signal })
    expect(version).toBe(4)
    expect(metrics.updates).toBe(4)
    expect(metrics.maximumStaleness).toBe(0)
    const { top, metrics: moved } = await measure()
    expect(moved.kl).toBeGreaterThan(0)
    expect(top[0]!.kl).toBeGreaterThanOrEqual(top.at(-1)!.kl)
    expect(top[0]!.after).toContain('<|assistant|>')
  })

  it('leaves rows that teach nothing out, and changes nothing if all do, whatever the bonus', async () => {
    await using policy = await fresh()
    await using reference = await fresh()
    const groups = await rolled(policy, 16)
    const trainer = embeddedTrainer(policy.model, {
      entropy: 0.01,
      kl: { penalty: { coefficient: 1 }, reference: reference.model },
    })
    const { metrics } = await trainer.step(groups, { signal })
    expect(metrics.trainedRows).toBeLessThan(metrics.rows!)
    const none = groups.map(group => ({
      ...group,
      members: group.members.map(member => ({ ...member, advantage: 0 })),
    }))
    const idle = await trainer.step(none, { signal })
    expect(idle.metrics.trainedRows).toBe(0)
    expect(idle.version).toBe(1)
  })

  it('is held near a reference by a penalty', async () => {
    const moved = async (coefficient: number): Promise<number> => {
      await using policy = await fresh()
      await using reference = await fresh()
      const trainer = embeddedTrainer(policy.model, {
        learningRate: 2e-3,
        epochs: 6,
        ...(coefficient > 0 && { kl: { penalty: { coefficient }, reference: reference.model } }),
      })
      const { measure } = await trainer.step(await rolled(policy, 16), { signal })
      return (await measure()).metrics.kl!
    }
    expect(await moved(5)).toBeLessThan(0.5 * (await moved(0)))
  }, 60_000)

  it('learns from all tokens but those without a log-probability', async () => {
    await using policy = await fresh()
    const groups = await rolled(policy, 16)
    for (const { members } of groups) {
      for (const { tree } of members) {
        const { logprobs } = tree.nodes.find(({ segment }) => segment.origin === 'sampled')!.segment
        logprobs![0] = Number.NaN
      }
    }
    const trainer = embeddedTrainer(policy.model, { learningRate: 1e-3 })
    const { metrics } = await trainer.step(groups, { signal })
    expect(metrics.trainedRows).toBeGreaterThan(0)
    expect(Object.values(metrics).filter(Number.isNaN)).toEqual([])
    expect(metrics.gradientNorm).toBeGreaterThan(0)
  })

  it('saves and goes on, optimiser and version included', async () => {
    await using policy = await fresh()
    const trainer = embeddedTrainer(policy.model, { learningRate: 1e-3 })
    const groups = await rolled(policy, 8)
    await trainer.step(groups, { signal })
    const checkpoint = join(folder, 'checkpoint')
    await trainer.save(checkpoint, { signal })
    await trainer.step(groups, { signal })
    const ids = groups[0]!.members[0]!.tree.nodes[1]!.segment.ids
    const expected = await policy.score!(ids, 1, { temperature: 1 }, { signal })
    await using other = await fresh()
    const second = embeddedTrainer(other.model, { learningRate: 1e-3 })
    expect(await second.load(checkpoint, { signal })).toEqual({ version: 1 })
    await second.step(groups, { signal })
    const found = await other.score!(ids, 1, { temperature: 1 }, { signal })
    expect(found.logprobs).toEqual(expected.logprobs)
  })

  it('refuses options it does not know', async () => {
    expect(() => embeddedTrainer(taught.model, { learnRate: 1 } as never)).toThrow('"learnRate"')
    expect(() => embeddedTrainer(taught.model, { loss: 'nope' })).toThrow('nope')
  })
})

describe('audit', () => {
  it('agrees to 1e-4 with what was recorded, across versions where checkpoints are kept', async () => {
    const run = join(folder, 'run')
    await using policy = await openEmbedded(join(run, 'checkpoints', '000000'), { threads: 1 })
    const audit = await auditRun(run, policy)
    expect(audit.wrong).toBe(0)
    expect(audit.largest).toBeLessThan(1e-4)
    expect(audit.checked).toBeGreaterThan(100)
    expect(audit.checked).toBeLessThan(audit.tokens)
    expect(Object.keys(audit.unchecked)).toEqual(['no weights of their version at hand'])
  }, 60_000)

  it('finds a mask shifted by one, a lost separator, and foreign weights', async () => {
    await using policy = await fresh()
    const groups = await rolled(policy, 6)
    const rows: readonly AuditedRow[] = groups
      .flatMap(group => groupRows(group))
      .map(({ row, tree }) => ({ row, temperature: tree.sampling.temperature }))
    const scorer: Scorer = {
      version: 0,
      score: async (row, from, temperature) =>
        (await policy.score!(row.ids, from, { temperature }, { signal })).logprobs,
    }
    const check = (changed: readonly AuditedRow[]) =>
      auditRows(changed, [scorer], { tolerance: 1e-4 })
    const right = await check(rows)
    expect(right.wrong).toBe(0)
    expect(right.checked).toBe(right.tokens)

    const shifted = rows.map(({ row, temperature }) => {
      const mask = new Uint8Array(row.mask.length)
      mask.set(row.mask.subarray(0, -1), 1)
      return { row: { ...row, mask }, temperature }
    })
    expect((await check(shifted)).wrong).toBeGreaterThanOrEqual(rows.length)

    const lost = rows.map(({ row, temperature }) => ({ row: withoutSeparator(row), temperature }))
    expect((await check(lost)).wrong).toBeGreaterThan(0)

    await using other = await openEmbedded(join(folder, 'run', 'checkpoints', '000012'))
    const foreign: Scorer = {
      version: 0,
      score: async (row, from, temperature) =>
        (await other.score!(row.ids, from, { temperature }, { signal })).logprobs,
    }
    const wrong = await auditRows(rows, [foreign], { tolerance: 1e-4 })
    expect(wrong.wrong).toBeGreaterThan(0)
    expect(wrong.worst[0]!.trajectory).toMatch(/\//)
  }, 60_000)
})

/** A row without the first token that was observed between two turns. */
function withoutSeparator(row: AuditedRow['row']): AuditedRow['row'] {
  const at = row.origins.find(({ value }) => value === 'observed')?.start ?? row.ids.length - 1
  const cut = <T extends Int32Array | Uint8Array | Float32Array>(values: T): T =>
    values.filter((_, token) => token !== at) as T
  return {
    ...row,
    ids: cut(row.ids),
    mask: cut(row.mask),
    logprobs: cut(row.logprobs),
    versions: [],
  }
}

describe('the oracle bonus', () => {
  it('is given to the tokens of successful trajectories alone, and clipped', async () => {
    await using policy = await fresh()
    const tasks = signalTasks(12, 5)
    const groups = await rolled(policy, 12)
    const bonus = oracleTokenBonus({
      policy,
      renderer: rendererOf(policy),
      promptOf: oraclePrompts(tasks.map(data => ({ id: data.id as never, data }))),
      coefficient: 0.5,
      limit: 2,
    })
    const rows = groups.flatMap(group => groupRows(group))
    const given = await bonus(rows, { signal, rewardOf: rewardsOf(groups) })
    rows.forEach(({ row, member }, index) => {
      const isSolved = 'reward' in member && member.reward.total >= 1
      expect(given[index] !== undefined).toBe(isSolved)
      const values = given[index]?.values ?? new Float64Array(0)
      expect(values.every((value, token) => row.mask[token] === 1 || value === 0)).toBe(true)
      expect(values.every(value => Math.abs(value) <= 1)).toBe(true)
    })
    expect(given.some(each => each?.values.some(value => value !== 0))).toBe(true)
    const trainer = embeddedTrainer(policy.model, { learningRate: 1e-3, bonus })
    const { metrics } = await trainer.step(groups, { signal })
    expect(metrics.trainedRows).toBeGreaterThan(0)
  })
})

describe('schedules', () => {
  const { signal } = new AbortController()

  it('go on in a step that teaches nothing', async () => {
    await using policy = await fresh()
    const groups = await rolled(policy, 2)
    const weighed = (advantage: number): readonly Group[] =>
      groups.map(group => ({
        ...group,
        members: group.members.map((member, index) => ({
          ...member,
          advantage: index === 0 ? advantage : 0,
        })),
      }))
    const entropy = { kind: 'linear', from: 0.05, to: 0.15, steps: 2 } as const
    const trainer = embeddedTrainer(policy.model, { entropy, learningRate: 1e-5 })
    const losses: (number | undefined)[] = []
    for (const batch of [weighed(1), weighed(0), weighed(1)]) {
      losses.push((await trainer.step(batch, { signal })).metrics.entropyLoss)
    }
    expect(losses[1]).toBeUndefined()
    // Three times as much as two steps before, of nearly the same entropy.
    expect(losses[2]! / losses[0]!).toBeCloseTo(3, 0)
  })

  it('that never end are refused as the trainer is opened', async () => {
    await using policy = await fresh()
    const endless = { kind: 'linear', from: 1e-3 } as const
    for (const options of [{ learningRate: endless }, { entropy: endless }]) {
      expect(() => embeddedTrainer(policy.model, options)).toThrow('needs "to" and "steps"')
    }
  })
})

describe('off-policy', () => {
  const { signal } = new AbortController()

  it('measures how far the weights are from what sampled, and weighs against it', async () => {
    await using policy = await fresh()
    const groups = await rolled(policy, 12)
    const trainer = embeddedTrainer(policy.model, {
      learningRate: 0.01,
      proximal: 'recompute',
      importance: ['token', 'staleness:decay=0.5'],
    })
    const first = (await trainer.step(groups, { signal })).metrics
    expect(first.mismatchKl).toBeLessThan(1e-6)
    expect(first.importanceMean).toBeCloseTo(1, 3)
    const second = (await trainer.step(groups, { signal })).metrics
    expect(second.mismatchKl).toBeGreaterThan(100 * first.mismatchKl!)
    expect(second.mismatchEffectiveSampleShare).toBeLessThan(1)
    // One version old.
    expect(second.importanceMean).toBeLessThan(0.7)
    // Ratios start from the weights before the step, so that one update clips nothing.
    expect(second.clippedLow! + second.clippedHigh!).toBe(0)
  })

  it('is corrected for by name, whatever trains: importance weights by ratio reach the loss', async () => {
    const seen: { readonly own: number[]; readonly others: (number | undefined)[] } = {
      own: [],
      others: [],
    }
    const weighing = {
      ...small,
      steps: 1,
      heldOut: 4,
      limits,
      proximal: 'recompute',
      importance: ['token'],
    } as const
    await using policy = await fresh()
    const onStep = ({ metrics }: StepRecord) => seen.own.push(metrics.importanceMean!)
    await train(signals, signalTasks(60, 3), { policy, ...weighing, onStep })
    const trainer: Trainer = {
      ...embeddedTrainer(policy.model),
      async step(groups) {
        const members = groups.flatMap(group => group.members)
        seen.others.push(...members.map(({ importance }) => importance?.factor))
        return { version: 1, metrics: {} }
      },
    }
    await train(signals, signalTasks(60, 3), { policy, ...weighing, trainer })
    expect(seen.own[0]).toBeCloseTo(1, 3)
    expect(new Set(seen.others)).toEqual(new Set([1]))
  })

  it('a teacher and a reference that are the policy itself teach nothing and hold nothing back', async () => {
    await using teacher = await fresh()
    await using policy = await fresh()
    const records: StepRecord[] = []
    await train(signals, signalTasks(60, 3), {
      policy,
      teacher,
      distill: 'alone',
      reference: teacher,
      klPenalty: 0.1,
      ...small,
      steps: 1,
      heldOut: 4,
      entropy: 0,
      limits,
      onStep: record => records.push(record),
    })
    expect(records[0]).toMatchObject({ version: 0, metrics: { trainedRows: 0 } })
  })
})
