import { expect, it } from 'vitest'
import { makeSentinels } from './open-sentinels.ts'

it('weights that are far from those that sampled are warned of once', () => {
  const warnings: string[] = []
  const messages: string[] = []
  const listen = makeSentinels({ renderer: { decode: () => '' } }, ({ sentinel, message }) => {
    warnings.push(sentinel)
    messages.push(message)
  })
  const turns = { 'mismatchKl/turn-1': 0.01, 'mismatchKl/turn-2': 0.2 }
  const step = (kl: number, share: number): void =>
    listen({
      kind: 'step-end',
      step: 1,
      metrics: { mismatchKl: kl, mismatchEffectiveSampleShare: share, ...turns },
    })
  step(0.001, 0.99)
  listen({ kind: 'step-end', step: 2, metrics: {} })
  expect(warnings).toEqual([])
  step(0.05, 0.99)
  step(0.5, 0.2)
  expect(warnings).toEqual(['engine-mismatch'])
  expect(messages[0]).toContain('most in turn 2 with 0.2000')
})
