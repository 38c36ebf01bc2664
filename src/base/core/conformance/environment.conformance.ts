import { describe, expect, it } from 'vitest'
import { type CheckOptions, checkEnvironment } from '../../../engine/environments/check.ts'
import type { Environment } from '../environment.ts'

/**
 * The suite that every environment passes: what `espalier check` runs, as a test. The checks
 * themselves are plain functions in `environments/check.ts`, so that both can use them.
 */
export function environmentConformance<Data>(
  environment: Environment<Data>,
  options: CheckOptions<Data>,
): void {
  describe(`environment ${environment.name}`, () => {
    it('keeps every promise that rolling, forking and scoring rely on', async () => {
      const results = await checkEnvironment(environment, options)
      expect(results.filter(result => result.kind === 'failed')).toEqual([])
    })
  })
}
