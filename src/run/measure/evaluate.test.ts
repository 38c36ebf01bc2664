import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { scripted } from '../../testing.ts'
import { evaluate } from './evaluate.ts'

const tasks = ['yes', 'no', 'yes', 'no'].map(answer => ({ prompt: 'Well?', answer }))
/** Every second attempt at a task with the answer "no" counts as right. */
const reward = {
  right: ({ task, trajectory }: { task: { data: unknown }; trajectory: { id: string } }) => {
    const { answer } = task.data as { answer: string }
    return answer === 'yes' ? 1 : Number(trajectory.id.split('/')[1]) % 2
  },
}

describe('evaluate', () => {
  it('measures success, pass@k and pass^k over tasks', async () => {
    const policy = await scripted(['yes'])
    const seen: string[] = []
    const result = await evaluate(singleTurn(), tasks, {
      policy,
      trials: 4,
      reward,
      k: [1, 2, 4, 8],
      onTask: ({ task }) => seen.push(task),
    })
    expect(seen).toHaveLength(4)
    expect(result).toMatchObject({ tasks: 4, trials: 16, unscored: 0 })
    expect(result.success.value).toBeCloseTo(0.75)
    // 2 of 4: C(2, 2) / C(4, 2) = 1/6 fail both, and as many succeed twice.
    expect(result.passAtK[2]!.value).toBeCloseTo((1 + 1 + 5 / 6 + 5 / 6) / 4)
    expect(result.passHatK[2]!.value).toBeCloseTo((1 + 1 + 1 / 6 + 1 / 6) / 4)
    expect(Object.keys(result.passAtK)).toEqual(['1', '2', '4'])
    const { low, high } = result.success
    expect(low).toBeLessThan(0.75)
    expect(high).toBeGreaterThan(0.75)
    expect(result.byTask.map(({ successes }) => successes)).toEqual([4, 2, 4, 2])
  })

  it('counts attempts that failed outside the policy neither way', async () => {
    const policy = await scripted([])
    const result = await evaluate(singleTurn(), tasks, { policy, trials: 2, reward })
    expect(result).toMatchObject({ tasks: 4, trials: 0, unscored: 8, passAtK: {} })
    expect(result.success).toEqual({ value: Number.NaN, low: 0, high: 1, tasks: 0 })
  })

  it('gives nothing, not 0, for what was not scored, also as JSON', async () => {
    const policy = await scripted([])
    const result = await evaluate(singleTurn(), tasks, { policy, reward })
    const { success, meanReward } = JSON.parse(JSON.stringify(result)) as typeof result
    expect(success).toEqual({ value: null, low: 0, high: 1, tasks: 0 })
    expect(meanReward).toEqual({ value: null, low: null, high: null, tasks: 0 })
  })

  it.each([0, -1, 1.5, Number.NaN])(
    'refuses %d trials, of which there would be no success',
    async trials => {
      const policy = await scripted(['yes'])
      await expect(evaluate(singleTurn(), tasks, { policy, trials, reward })).rejects.toThrow(
        `options.trials: ${trials} is not possible`,
      )
    },
  )

  it.each([
    [
      { group: 2 },
      /^options\.group: evaluate takes no option "group"; roll and train and gateway do$/,
    ],
    [{ filters: [] }, /evaluate takes no option "filters"/],
    [{ steps: 3 }, /evaluate takes no option "steps"; train does$/],
    [{ successAt: 'x' }, /^options\.successAt: "x" is not possible/],
    [{ onTask: 5 }, /^options\.onTask: 5 is not possible: it is a function$/],
    [{ k: 2 }, /^options\.k: 2 is not possible/],
  ])('refuses %j, which it could not measure by', async (more, message) => {
    const options = { policy: await scripted(['yes']), reward, ...(more as object) }
    await expect(evaluate(singleTurn(), tasks, options)).rejects.toThrow(message)
  })

  it('kept in a run, it counts what was finished before an interruption', async () => {
    const out = join(mkdtempSync(join(tmpdir(), 'espalier-eval-')), 'run')
    const rest = { trials: 2, reward, out }
    const first = { policy: await scripted(['yes']), budget: { trajectories: 4 } }
    const half = await evaluate(singleTurn(), tasks, { ...rest, ...first })
    expect(half.tasks).toBe(2)
    const whole = await evaluate(singleTurn(), tasks, {
      ...rest,
      policy: await scripted(['yes']),
      resumes: true,
    })
    expect(whole).toMatchObject({ tasks: 4, trials: 8 })
  })
})
