import { expect, it } from 'vitest'
import { makeSentinels } from './open-sentinels.ts'

it('weights that are far from those that sampled are warned of once', () => {
  const warnings: string[] = []
  const listen = makeSentinels({ renderer: { decode: () => '' } }, ({ sentinel }) =>
    warnings.push(sentinel),
  )
  const step = (kl: number, share: number): void =>
    listen({
      kind: 'step-end',
      step: 1,
      metrics: { mismatchKl: kl, mismatchEffectiveSampleShare: share },
    })
  step(0.001, 0.99)
  listen({ kind: 'step-end', step: 2, metrics: {} })
  expect(warnings).toEqual([])
  step(0.05, 0.99)
  step(0.5, 0.2)
  expect(warnings).toEqual(['engine-mismatch'])
})
