import { describe, expect, it } from 'vitest'
import {
  formatNumber,
  formatProbability,
  formatSeconds,
  formatShort,
  formatSigned,
} from './format.ts'
import { hrefTo, readRoute } from './route.ts'

describe('numbers', () => {
  it('have the digits that count', () => {
    expect([0, 0.6234, 12.34, 123.4, 12345, -0.5, 2.4e-5].map(formatNumber)).toEqual([
      '0',
      '0.623',
      '12.3',
      '123',
      '12,345',
      '−0.5',
      '2.4e−5',
    ])
    expect([null, undefined, Number.NaN].map(formatNumber)).toEqual(['–', '–', '–'])
    expect([49_083, 1_234_567, 512].map(formatShort)).toEqual(['49.1 k', '1.2 M', '512'])
  })

  it('say their sign, and nothing has none', () => {
    expect([0.5, -0.5, 0, -0.001].map(value => formatSigned(value))).toEqual([
      '+0.50',
      '−0.50',
      '0.00',
      '0.00',
    ])
  })

  it('are times and probabilities that people read', () => {
    expect([0.0000042, 0.0042, 0.42, 4.2, 420, 42_000].map(formatSeconds)).toEqual([
      '4 µs',
      '4.2 ms',
      '420 ms',
      '4.2 s',
      '7 min',
      '11.7 h',
    ])
    expect([0, Math.log(0.0123), Math.log(1e-6), null].map(formatProbability)).toEqual([
      '100.0 %',
      '1.2 %',
      '1.0e-6',
      '–',
    ])
  })
})

describe('addresses', () => {
  it('lead back to what they were made of, whatever that is', () => {
    const params = { id: '1/0/desk ä&b=c#d?e', text: '100 %', none: '' }
    const route = readRoute(hrefTo(['run', 'a/b c', 'group'], params))
    expect(route).toEqual({
      path: ['run', 'a/b c', 'group'],
      params: { id: params.id, text: params.text },
    })
    expect(readRoute('')).toEqual({ path: [], params: {} })
    expect(readRoute('#/run/%E0%A4%A').path).toEqual(['run', '%E0%A4%A'])
  })
})
