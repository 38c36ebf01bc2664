import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { simulateTraining } from '../../../test/simulated-training.ts'
import type { Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { desk } from '../../engine/environments/desk/desk.ts'
import type { Evaluation } from './held-out.ts'
import { train } from './train.ts'

const heldOut = Array.from(
  { length: 8 },
  (_, id): Task => ({
    id: `held-${id}` as TaskId,
    data: id,
  }),
)

/** Held-out tasks take four times as long as training ones, and sixteen attempts may be open. */
async function simulate(evaluateBeside: boolean, evaluateEvery = 4, maxStaleness = 0) {
  const evaluations = new Map<number, Evaluation>()
  const simulated = await simulateTraining({
    tasks: 40,
    learn: 0.2,
    attempt: task => (task.startsWith('held') ? 0.4 : 0.1),
    concurrency: 16,
    plan: {
      steps: 20,
      tasksPerStep: 2,
      maxStaleness,
      heldOut,
      evaluateEvery,
      evaluateBeside,
      onEvaluation: (evaluation, step) => evaluations.set(step, evaluation),
    },
  })
  return { ...simulated, evaluations }
}

describe('evaluations beside training', () => {
  it.each([0, 1])('never stop the trainer, %d steps ahead', async maxStaleness => {
    const beside = await simulate(true, 4, maxStaleness)
    const inTurn = await simulate(false, 4, maxStaleness)
    // Nothing but the start and the end is waited for.
    const without = await simulate(false, 20, maxStaleness)
    expect(inTurn.seconds).toBeGreaterThan(without.seconds + 3.9 * 0.4)
    expect(beside.seconds).toBeLessThan(without.seconds + 0.1)
    expect(beside.training.waited).toBeLessThan(without.training.waited + 0.02)
  })

  it('are of the step that fell due, one after another, and say which weights sampled', async () => {
    const { evaluations, training } = await simulate(true)
    expect([...evaluations.keys()]).toEqual([0, 4, 8, 12, 16, 20])
    const versions = [...evaluations.values()].map(each => each.versions)
    expect(versions[0]).toBeUndefined()
    expect(versions.at(-1)).toBeUndefined()
    // A quarter of the places takes two rounds, in which steps are taken.
    expect(versions[1]).toEqual({ from: 4, to: expect.toSatisfy((to: number) => to > 5) })
    const { sampled, learned, dropped, inFlight, heldOut: measured } = training.ledger
    expect(dropped).toEqual({})
    expect(learned + inFlight + measured).toBe(sampled)
  })

  it('wait for their turn if one is still under way', async () => {
    const { evaluations } = await simulate(true, 1)
    const steps = [...evaluations.keys()]
    expect(steps.slice(0, 2)).toEqual([0, 1])
    expect(steps.length).toBeLessThan(12)
    expect(steps.at(-1)).toBe(20)
  })

  it('find of weights inside what they would in turn: they measure a copy', async () => {
    const measure = async (evaluateBeside: boolean) => {
      const found = new Map<number, Evaluation>()
      const out = join(mkdtempSync(join(tmpdir(), 'beside-')), 'run')
      const { best } = await train(desk(), 64, {
        policy: 'embedded',
        steps: 4,
        tasksPerStep: 4,
        group: 4,
        heldOut: 24,
        evaluateEvery: 2,
        evaluateBeside,
        limits: { turns: 10, newTokens: 24 },
        learningRate: 2e-3,
        out,
        onEvaluation: (evaluation, step) => found.set(step, evaluation),
      })
      expect(existsSync(best.folder!)).toBe(true)
      return [...found].map(([step, { success, meanReward, sampledTokens, versions }]) => {
        expect(versions).toBeUndefined()
        return { step, success, meanReward, sampledTokens }
      })
    }
    expect(await measure(true)).toEqual(await measure(false))
  }, 60_000)
})
