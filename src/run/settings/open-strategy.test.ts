import { expect, it } from 'vitest'
import { openByteRenderer } from '../../../test/rolling.ts'
import { calculator } from '../../engine/environments/built-in/calculator.ts'
import { readStrategy, type StrategyOptions } from './open-strategy.ts'

const parts = { environment: calculator(), renderer: await openByteRenderer() }

it.each(['chian', 'forest', 'toString'])(
  'no strategy is called %s, and none is rolled for it',
  async name => {
    const options = { strategy: name } as unknown as StrategyOptions
    await expect(readStrategy(options, parts)).rejects.toThrow(
      `--strategy: "${name}" is not possible (expected chain|tree|step)`,
    )
  },
)
