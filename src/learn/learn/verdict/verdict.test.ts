import type { Message } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import type { Evaluation } from '../held-out.ts'
import { type CourseStep, courseOf } from './course.ts'
import { isSolved, makeStops, usualEvery } from './stops.ts'
import { type Outcome, verdictOf } from './verdict.ts'

const evaluation = (success: number, scored = 100): Evaluation => ({
  success,
  interval: { low: success - 0.1, high: success + 0.1 },
  scored,
  unscored: 0,
  meanReward: success,
  sampledTokens: 0,
  attempts: [],
})

/** An attempt that reads of two copies of a book, and reserves one of this number. */
const reserving = (number: number, isSolved: boolean) => {
  const call = (name: string, input: object) => ({
    role: 'assistant' as const,
    content: null,
    tool_calls: [
      { id: name, type: 'function' as const, function: { name, arguments: JSON.stringify(input) } },
    ],
  })
  const messages: Message[] = [
    { role: 'user', content: 'Dune on paper, please.' },
    call('search', { title: 'Dune' }),
    { role: 'tool', tool_call_id: 'search', content: '12 paper, 34 audio' },
    call('reserve', { number }),
  ]
  return { isSolved, trajectory: { messages } }
}

/** A run of 20 steps whose numbers go from one value to another. */
function course(from: Partial<CourseStep>, to: Partial<CourseStep>) {
  const usual = { success: 0.3, reward: 0.3, trainedRows: 8, entropy: 0.4, kl: 0.01 }
  const [first, last] = [
    { ...usual, ...from },
    { ...usual, ...to },
  ]
  return courseOf(Array.from({ length: 20 }, (_, step) => (step < 16 ? first : last)))
}

const run = (more: Partial<Outcome> & Pick<Outcome, 'course'>): Outcome => ({
  before: evaluation(0.3),
  after: evaluation(0.3),
  best: { step: 0, success: 0.3 },
  tries: 17,
  tasks: 192,
  ...more,
})

describe('what came of a training run', () => {
  it.each([
    [
      'solved',
      run({ course: course({}, { success: 1 }), best: { step: 9, success: 1 } }),
      /It is learned: .* from 30.0 % to 100.0 % \(step 9\)/,
    ],
    [
      'learned',
      run({
        course: course({}, { success: 0.7 }),
        best: { step: 16, success: 0.7 },
        after: evaluation(0.7),
      }),
      /still rising/,
    ],
    [
      'learned',
      run({
        course: course({}, { success: 0.7 }),
        best: { step: 9, success: 0.7 },
        after: evaluation(0.7),
      }),
      /to 70.0 % \(step 9\)\.$/,
    ],
    [
      'by-heart',
      run({ course: course({}, { success: 0.6 }) }),
      /its own 192 tasks success rose .* tried in 17 groups.*more tasks, then fewer steps/,
    ],
    [
      'never-solved',
      run({
        course: course({ success: 0, reward: 0 }, { success: 0, reward: 0 }),
        before: evaluation(0),
        best: { step: 0, success: 0 },
      }),
      /Too hard as it is/,
    ],
    ['no-contrast', run({ course: course({ trainedRows: 0 }, { trainedRows: 0 }) }), /No contrast/],
    ['fell-apart', run({ course: course({}, { entropy: 2 }) }), /from 0.40 to 2.00 nats/],
    [
      'fell-apart',
      run({ course: course({}, { trainedRows: 0 }), after: evaluation(0) }),
      /went from 30.0 % to 0.0 %. The steps were too large. The best weights are those of step 0/,
    ],
    ['collapsed', run({ course: course({}, { entropy: 0.01 }) }), /certain before it was good/],
    ['timid', run({ course: course({ kl: 1e-5 }, { kl: 1e-5 }) }), /steps were too small/],
    ['too-few-steps', run({ course: course({}, { success: 0.4 }), tries: 1 }), /Too early/],
    ['not-learned', run({ course: course({}, {}) }), /demonstrations that choose at random/],
  ] as const)('%s', (finding, outcome, words) => {
    const verdict = verdictOf(outcome)
    expect([verdict.finding, verdict.text]).toEqual([finding, expect.stringMatching(words)])
  })

  it('begins with why it stopped', () => {
    const { text } = verdictOf(run({ course: course({}, {}), stopped: 'idle' }))
    expect(text).toMatch(/^Stopped after step 20, as there was nothing to learn from/)
  })
})

describe('a run ends before its last step', () => {
  it('if so many steps in a row left the weights alone', () => {
    const ended = (patience: number, versions: readonly number[]): readonly boolean[] => {
      const stops = makeStops(patience, 0)
      return versions.map(version => stops.isIdle(version))
    }
    expect(ended(2, [1, 1, 2, 2, 2])).toEqual([false, false, false, false, true])
    expect(ended(0, [0, 0, 0])).toEqual([false, false, false])
  })

  it('if two measurements in a row found all solved, and enough of them', () => {
    expect(isSolved(evaluation(1), evaluation(1))).toBe(true)
    expect(isSolved(evaluation(0.99), evaluation(1))).toBe(false)
    expect(isSolved(evaluation(1, 4), evaluation(1, 4))).toBe(false)
  })
})

it('held-out tasks are measured ten times in a run, within a fifth of the attempts', () => {
  expect(usualEvery(60, { heldOut: 48, perStep: 256 })).toBe(6)
  expect(usualEvery(60, { heldOut: 512, perStep: 256 })).toBe(10)
  expect(usualEvery(4, { heldOut: 4, perStep: 256 })).toBe(1)
})

it('a model that makes up what it should copy is told apart from one that chooses wrongly', () => {
  const textOf = (failing: number, solving = 12): string => {
    const solved = Array.from({ length: 5 }, () => reserving(solving, true))
    const failed = Array.from({ length: 5 }, () => reserving(failing, false))
    const before = { ...evaluation(0.3), attempts: [...solved, ...failed] }
    return verdictOf(run({ before, course: course({}, {}) })).text
  }
  expect(textOf(77)).toMatch(/100.0 % of the failed attempts passed a name or a number/)
  expect(textOf(34)).not.toContain('nothing had said')
  // A number that is right although nobody said it was computed.
  expect(textOf(77, 46)).not.toContain('nothing had said')
})
