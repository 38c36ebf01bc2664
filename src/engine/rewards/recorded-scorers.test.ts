import { readFileSync } from 'node:fs'
import { ExactMatch, Levenshtein } from 'autoevals'
import { describe, expect, it } from 'vitest'
import { answers, assertions, trajectories } from '../../../test/fixtures/scored-trajectories.ts'
import { rewardInput } from '../../../test/scored.ts'
import { scorer } from './scorer.ts'
import { assertion, type TrajectoryAssertion } from './trajectory.ts'

interface Recorded {
  readonly promptfoo: readonly (readonly number[])[]
  readonly evalite: readonly number[]
  readonly mastra: readonly number[]
  readonly autoevals: Readonly<Record<'ExactMatch' | 'Levenshtein', readonly number[]>>
}

const file = new URL('../../../test/fixtures/scorers.json', import.meta.url)
const recorded = JSON.parse(readFileSync(file, 'utf8')) as Recorded
const call = { signal: new AbortController().signal }

describe('what the packages themselves said (scripts/scorers.ts)', () => {
  it.each(assertions.map((asserted, index) => [asserted, recorded.promptfoo[index]!] as const))(
    'promptfoo: %j is %j',
    async (asserted, said) => {
      const reward = assertion(asserted as TrajectoryAssertion)
      const ours = trajectories.map(calls => reward(rewardInput(calls), call))
      expect(await Promise.all(ours)).toEqual(said)
    },
  )

  it.each([
    ['ExactMatch', ExactMatch],
    ['Levenshtein', Levenshtein],
  ] as const)('autoevals: %s', async (name, scored) => {
    const ours = answers.map(answer => scorer(scored)(rewardInput([], answer), call))
    expect(await Promise.all(ours)).toEqual(recorded.autoevals[name])
  })

  it('evalite and Mastra: the scores of the same scorer', () => {
    expect(recorded.evalite).toEqual([1, 0.6, 0])
    expect(recorded.mastra).toEqual(recorded.evalite)
  })
})
