import { ExactMatch, Levenshtein } from 'autoevals'
import { describe, expect, it } from 'vitest'
import type { TaskId, TrajectoryId } from '../../base/core/ids.ts'
import type { RewardInput } from '../../base/core/reward.ts'
import { plainTrajectory } from '../../base/core/trajectory.ts'
import { random, seedOf } from '../../base/math/random.ts'
import { makeReward } from './registry.ts'
import { scorer } from './scorer.ts'
import { assertion, type TrajectoryAssertion } from './trajectory.ts'

const call = { signal: new AbortController().signal }
const used = (tool: string, input: unknown = {}) => ({
  turn: 0,
  id: '1',
  tool,
  input,
  output: '',
  seconds: 0,
})
const calls = [used('look'), used('sell', { pears: 3, to: 'Ann' }), used('look')]
const outcome = { kind: 'completed' } as const
const input: RewardInput = {
  task: { id: 't' as TaskId, data: { question: 'How many?', expected: 'three' } },
  messages: [],
  answer: 'there',
  calls,
  report: undefined,
  outcome,
  trajectory: plainTrajectory({ id: 't' as TrajectoryId, outcome }),
  seat: '',
}

describe('scorer', () => {
  it('refuses what cannot score, and quotes a text that is given as a score', async () => {
    expect(() => scorer(undefined as never)).toThrow('A scorer is a function, or an object with')
    await expect(scorer(() => '1')(input, call)).rejects.toThrow(
      'the scorer gave the text "1", not',
    )
  })

  it('takes the scorers of autoevals as they are', async () => {
    expect(await scorer(ExactMatch)(input, call)).toBe(0)
    expect(await scorer(Levenshtein)(input, call)).toBeCloseTo(0.6)
    const three = scorer(ExactMatch, { output: () => 'three' })
    expect(await three(input, call)).toBe(1)
  })

  it('takes evalite’s objects, functions and Mastra’s scorers, and asks them what they expect', async () => {
    const asked: unknown[] = []
    const note = (what: { input: unknown; output: unknown; expected: unknown }): number => {
      asked.push([what.input, what.output, what.expected])
      return 0.5
    }
    const mastra = { run: async (what: never) => ({ score: note(what), reason: 'so' }) }
    for (const each of [note, { name: 'n', scorer: note }, mastra]) {
      expect(await scorer(each)(input, call)).toBe(0.5)
    }
    expect(asked).toEqual(Array.from({ length: 3 }, () => ['How many?', 'there', 'three']))
  })

  it('refuses what is no score, and says what it was', async () => {
    const broken = scorer(() => ({ score: null, error: 'no key' }))
    await expect(broken(input, call)).rejects.toThrow(
      'the scorer gave null, not a finite number (no key)',
    )
  })
})

describe('assertion', () => {
  it.each<[TrajectoryAssertion, number]>([
    [{ type: 'trajectory:tool-used', value: 'look' }, 1],
    [{ type: 'trajectory:tool-used', value: ['look', 'buy'] }, 0],
    [{ type: 'trajectory:tool-used', value: { name: 'look', min: 3 } }, 0],
    [{ type: 'trajectory:tool-used', value: { pattern: 's*l', max: 1 } }, 1],
    [{ type: 'trajectory:tool-sequence', value: ['look', 'look'] }, 1],
    [{ type: 'trajectory:tool-sequence', value: ['sell', 'sell'] }, 0],
    [{ type: 'trajectory:tool-sequence', value: { steps: ['look', 'sell'], mode: 'exact' } }, 0],
    [{ type: 'trajectory:tool-args-match', value: { name: 'sell', args: { pears: 3 } } }, 1],
    [
      {
        type: 'trajectory:tool-args-match',
        value: { name: 'sell', args: { pears: 3 }, mode: 'exact' },
      },
      0,
    ],
    [{ type: 'trajectory:step-count', value: { min: 1, max: 3 } }, 1],
    [{ type: 'trajectory:step-count', value: { max: 2 } }, 0],
  ])('%j is %d', async (asserted, expected) => {
    expect(await assertion(asserted)(input, call)).toBe(expected)
  })

  it('[H6] patterns of tool names fit as globs do, in time that no number of stars multiplies', async () => {
    const count = async (pattern: string, tool: string): Promise<number> => {
      const which = assertion({ type: 'trajectory:tool-used', value: { pattern } })
      return Number(await which({ ...input, calls: [used(tool)] }, call))
    }
    const draw = random(seedOf('globs'))
    const text = (letters: string): string =>
      Array.from(
        { length: Math.floor(draw() * 7) },
        () => letters[Math.floor(draw() * letters.length)],
      ).join('')
    for (let round = 0; round < 3000; round++) {
      const [pattern, tool] = [text('ab**.') || '*', text('ab.')]
      const same = new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '.*')}$`).test(
        tool,
      )
      expect([pattern, tool, await count(pattern, tool)]).toEqual([pattern, tool, Number(same)])
    }
    expect(await count(`${'*a'.repeat(40)}*b`, 'a'.repeat(5000))).toBe(0)
  })

  it.each([
    ['trajectory:tool-used,name=look,max=1', 0],
    ['trajectory:tool-sequence,steps=look+sell', 1],
    ['trajectory:tool-args-match,name=sell,args=pears=3+to=Ann,mode=exact', 1],
    ['trajectory:step-count,max=3', 1],
  ])('%s is opened by name', async (name, expected) => {
    expect(await makeReward(name)(input, call)).toBe(expected)
  })

  it('says what a name lacks', () => {
    expect(() => makeReward('trajectory:tool-used')).toThrow('trajectory:tool-used needs name=…')
    expect(() => makeReward('trajectory:goal-success,goal=x')).toThrow('needs a speaker')
    expect(() => makeReward('trajectory:tool-use,name=x')).toThrow('it has no "tool-use"')
  })
})
