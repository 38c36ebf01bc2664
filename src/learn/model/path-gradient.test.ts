import { describe, expect, it } from 'vitest'
import { floatDifference } from '../../../test/gradient-bound.ts'
import { lossNames } from '../../base/math/registry.ts'

describe('[T5] the embedded model, in float32', () => {
  it.each(lossNames)(
    'has the gradient of full paths from rows that hold tokens once: %s',
    async loss => {
      const { trees, largest, once, paths } = await floatDifference(loss, 12)
      expect(trees).toBeGreaterThan(8)
      expect(paths).toBeGreaterThan(once)
      expect(largest).toBeLessThan(2e-6)
    },
  )
})
