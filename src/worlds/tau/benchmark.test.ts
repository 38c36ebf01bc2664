import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openCountingPolicy } from '../../../test/counting-policy.ts'
import { openByteRenderer } from '../../../test/rolling.ts'
import type { Environment } from '../../base/core/environment.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import { openEnvironment } from '../../engine/environments/registry.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { exportRun } from '../../run/exchange/export.ts'
import { importRun } from '../../run/exchange/import.ts'
import type { BudgetLimits } from '../../run/run/budget.ts'
import { rollIntoRun } from '../../run/run/open-run-folder.ts'
import { openRunReader } from '../../run/store/store.ts'
import { measureTau, tauBenchmark } from './benchmark.ts'
import { tauFactory } from './factory.ts'
import type { TauReport } from './report.ts'

const renderer = await openByteRenderer()
const scratch = (): string => join(mkdtempSync(join(tmpdir(), 'espalier-tau-')), 'run')

/** Talks for four replies; every call takes as many tokens as it reads messages. */
const speaker: Speaker = {
  name: 'talker',
  say: async messages => ({
    message: {
      role: 'assistant',
      content: messages.length < 8 ? `heard ${messages.length}` : 'bye ###STOP###',
    },
    finish: 'stop',
    usage: { prompt: messages.length, sampled: 2 },
  }),
}

async function evaluateInto(
  out: string,
  {
    budget,
    resumes = false,
    tasks = 1,
  }: { budget?: BudgetLimits; resumes?: boolean; tasks?: number } = {},
): Promise<void> {
  const environment: Environment = await openEnvironment(
    'tau:retail,root=test/fixtures/tau-checkout,speaker=x,price=1/10,agent=act',
    { tau: tauFactory({ openSpeaker: () => speaker }) },
  )
  const length = ({ seed }: { seed: number }): number => 4 + (seed % 9)
  const { policy } = openCountingPolicy({ length, end: renderer.stopIds[0]! })
  const rolling = {
    environment,
    policy,
    renderer,
    estimate: makeEstimate('grpo'),
    group: 4,
    concurrency: 4,
    ...(budget && { budget }),
  }
  for await (const _ of rollIntoRun(tasks, rolling, { out, kind: 'eval', config: {}, resumes }));
}

async function reportsOf(run: string): Promise<readonly TauReport[]> {
  await using reader = await openRunReader(run)
  const reports: TauReport[] = []
  for await (const { group } of reader.groups()) {
    reports.push(...group.members.map(({ trajectory }) => trajectory.report as TauReport))
  }
  return reports
}

it('counts what users took before an interruption, once', async () => {
  const whole = scratch()
  await evaluateInto(whole)
  const cut = scratch()
  await evaluateInto(cut, { budget: { tokens: 60 } })
  expect(await measureTau(cut)).toBeUndefined()
  await evaluateInto(cut, { resumes: true })
  const { user } = (await measureTau(whole))!
  expect(user!.calls).toBeGreaterThan(8)
  expect((await measureTau(cut))!.user).toEqual(user)
  expect(await reportsOf(cut)).toEqual(await reportsOf(whole))
})

it('writes results trial by trial, which an export gives as well, also after they were read back', async () => {
  const run = scratch()
  await evaluateInto(run, { tasks: 2 })
  const [results, exported, again] = ['results', 'exported', 'again'].map(name => `${run}-${name}`)
  await tauBenchmark.writeResults(run, results!)
  await exportRun(run, { to: 'tau-bench', out: exported!, include: ['failed'] })
  await importRun(results!, { from: 'tau-bench', out: `${run}-imported` })
  await exportRun(`${run}-imported`, { to: 'tau-bench', out: again!, include: ['failed'] })
  const text = readFileSync(results!, 'utf8')
  const trials = (JSON.parse(text) as { trial: number }[]).map(({ trial }) => trial)
  expect(trials).toEqual([0, 0, 1, 1, 2, 2, 3, 3])
  expect(readFileSync(exported!, 'utf8')).toBe(text)
  expect(readFileSync(again!, 'utf8')).toBe(text)
})
