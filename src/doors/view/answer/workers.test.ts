import { expect, it } from 'vitest'
import { makeCrew } from './workers.ts'

const worker = (id: string, more = {}) => ({
  ...{ id, host: 'box', process: 7, concurrency: 4, running: 3, done: 30, refused: 1 },
  ...{ sampled: 1200, leaving: false, seconds: 60, silent: 2, refusal: null, ...more },
})

it('tells load, throughput and the last heartbeat of workers, and who is gone', () => {
  const crew = makeCrew()
  crew.hear({ time: '2026-01-01T00:00:00Z', workers: [worker('a'), worker('b')] })
  crew.hear({ time: '2026-01-01T00:00:10Z', workers: [worker('b', { refusal: 'it differs' })] })
  expect(crew.reports).toBe(2)
  expect(crew.rows(null).map(({ id, isGone, refusal }) => [id, isGone, refusal])).toEqual([
    ['b', false, 'it differs'],
    ['a', true, undefined],
  ])
  expect(crew.rows(null)[1]).toMatchObject({
    name: 'box:7',
    running: 3,
    concurrency: 4,
    perMinute: 30,
    tokensPerSecond: 20,
    silent: 2,
    time: '2026-01-01T00:00:00Z',
  })
})

it('passes over what is no worker', () => {
  const crew = makeCrew()
  crew.hear({ workers: [null, 7, { host: 'x' }, worker('a', { done: 'many' })] })
  crew.hear({ workers: 'none' })
  expect(crew.rows(null).map(({ id, done }) => [id, done])).toEqual([['a', 0]])
})

it('takes from the report whom no event told of', () => {
  const crew = makeCrew()
  crew.hear({ workers: [] })
  expect(crew.rows({ workers: [worker('a')] }).map(({ id }) => id)).toEqual(['a'])
  expect([crew.rows({}), crew.rows(null)]).toEqual([[], []])
})
