import { expect, it } from 'vitest'
import { replyOf } from '../../engine/environments/reply.ts'
import { coverageOf } from './coverage.ts'

const shown = (city: string, turns = 1) => ({
  tools: [],
  messages: [
    { role: 'user' as const, content: `the weather of ${city}` },
    ...Array.from({ length: turns }, () => [
      replyOf('', { tool: 'weather', input: { city } }).message,
      { role: 'tool' as const, content: 'rain', tool_call_id: 'a' },
    ]).flat(),
    replyOf('rain').message,
  ],
})

it('situations that differ are counted, and how many the values of calls ask for', () => {
  expect(coverageOf([shown('Rome'), shown('Rome')])).toEqual({
    situations: 2,
    values: 2,
    wanted: 100,
  })
  expect(coverageOf([shown('Rome'), shown('Oslo'), shown('Bonn', 2)])).toEqual({
    situations: 7,
    values: 4,
    wanted: 150,
  })
})
