import { describe, expect, it } from 'vitest'
import { ownFiles, reasonToStay, threadOptions } from './spreading.ts'

const options = { policy: 'scripted:answers.jsonl' } as const

describe('a run', () => {
  it('spreads where all that its attempts are made of is named', () => {
    const filters = [{ name: 'mine', judge: () => new Map() }]
    const listen = (): void => {}
    const named = { ...options, reward: ['./reward.ts#score'], filters, listen }
    expect(reasonToStay({ environment: 'calculator', options: named })).toBeUndefined()
    expect(threadOptions(named)).toEqual({ ...options, reward: ['./reward.ts#score'] })
    expect(ownFiles({ environment: './shop.ts#shop', options: named })).toEqual([
      './shop.ts#shop',
      './reward.ts#score',
    ])
  })

  it.each([
    ['an environment that is an object', {}, {}],
    ['reward', 'calculator', { reward: { one: () => 1 } }],
    ['record', 'calculator', { record: 'cassette.jsonl' }],
    ['traces', 'calculator', { traces: 'http://localhost:4318' }],
    ['adaptive', 'calculator', { adaptive: true }],
    [
      'instruments',
      'calculator',
      { instruments: [<Context>(context: Context): Context => context] },
    ],
    ['seats', 'calculator', { seats: ['guest=past'] }],
  ])('stays in one thread for %s', (what, environment, more) => {
    const reason = reasonToStay({ environment, options: { ...options, ...more } })
    expect(reason).toContain(what.split(' ').at(-1) === 'object' ? 'environment' : what)
  })
})
