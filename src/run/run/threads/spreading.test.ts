import { describe, expect, it } from 'vitest'
import { ownFiles, reasonToStay, threadOptions, weighingOf } from './spreading.ts'

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

  it('spreads where a seat is played by a model whose folder is called like the past', () => {
    const seats = ['seller=embedded:models/antipasti']
    expect(reasonToStay({ environment: 'deal', options: { ...options, seats } })).toBeUndefined()
  })

  it('is weighed in threads by named filters, but for those that judge by the moment', () => {
    const filters = ['stale-answers']
    const named = { name: 'stale-answers', judge: () => new Map() }
    expect(weighingOf({ ...options, filters }, [named]).isNamed).toBe(true)
    expect(weighingOf({ ...options, filters }, [{ ...named, ofTheMoment: true }]).isNamed).toBe(
      false,
    )
  })
})
