import { describe, expect, it } from 'vitest'
import { batchOf } from '../../../test/fixtures/math-batch.ts'
import { spreadAdvantages } from './advantage.ts'
import { advantageNamed, advantageNames, lossNamed, lossNames } from './registry.ts'

describe('the registry', () => {
  it('knows every name it lists, and answers an unknown one with those', () => {
    expect(advantageNames.map(name => advantageNamed(name).kind)).toContain('node')
    for (const name of lossNames) expect(lossNamed(name)).toBeTypeOf('function')
    expect(() => lossNamed('gppo')).toThrow(
      `No loss called "gppo". Known: ${lossNames.join(', ')}.`,
    )
    expect(() => advantageNamed('constructor')).toThrow(
      `No advantage called "constructor". Known: ${advantageNames.join(', ')}.`,
    )
  })

  it('an option left undefined keeps its default', () => {
    const entries = [1, 0].map((reward, trajectory) => ({ group: 'g', trajectory, reward }))
    const estimator = advantageNamed('grpo')
    if (estimator.kind !== 'trajectory') throw new Error('grpo is about trajectories')
    expect(estimator.compute(entries, { epsilon: undefined })).toEqual(estimator.compute(entries))
  })
})

describe('spreadAdvantages', () => {
  it('gives every row of a trajectory its advantage, and context none', () => {
    const batch = batchOf([
      { trajectory: 1, mask: [0, 1] },
      { trajectory: 0, mask: [1] },
      { trajectory: 1, mask: [1] },
    ])
    expect(Array.from(spreadAdvantages(batch, [2, 3]))).toEqual([0, 3, 2, 3])
    expect(() => spreadAdvantages(batch, [2])).toThrow(
      'Trajectory 1 has trained tokens but no advantage',
    )
  })
})
