import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keepSecret } from '../../base/core/process/secrets.ts'
import { makeJsonBytes, writeJson } from './json-bytes.ts'
import { shortestFloat32 } from './number.ts'

const text = (write: (json: ReturnType<typeof makeJsonBytes>) => void): string => {
  const json = makeJsonBytes()
  write(json)
  return Buffer.from(json.take()).toString()
}

describe('JSON as bytes', () => {
  it('H4: holds no secret, neither in texts nor in names', () => {
    keepSecret('mirabelles-"of"-mine')
    const said = {
      messages: [{ content: 'it is mirabelles-"of"-mine' }],
      'mirabelles-"of"-mine': 1,
    }
    expect(JSON.parse(text(json => writeJson(json, said)))).toEqual({
      messages: [{ content: 'it is [redacted]' }],
      '[redacted]': 1,
    })
  })

  it('H4: keeps numbers whose digits are those of a secret, and hides it in JSON within a text', () => {
    keepSecret('12345678')
    keepSecret('damsons-"of"-mine')
    const ids = Int32Array.of(12345678)
    const said = { ids, id: 12345678, call: JSON.stringify({ it: 'damsons-"of"-mine 12345678' }) }
    expect(JSON.parse(text(json => writeJson(json, said)))).toEqual({
      ids: [12345678],
      id: 12345678,
      call: '{"it":"[redacted] [redacted]"}',
    })
  })

  it('writes every 32-bit float so that it reads back the same, as short as the string form', () => {
    fc.assert(
      fc.property(fc.array(fc.float({ noNaN: true, noDefaultInfinity: true })), values => {
        const floats = Float32Array.from(values)
        const written = text(json => json.floats(floats))
        expect(Float32Array.from(JSON.parse(written))).toEqual(floats.map(value => value + 0))
        expect(written).toBe(`[${[...floats].map(shortestFloat32).join()}]`)
      }),
      { seed: 1, numRuns: 300 },
    )
  })

  it('writes log-probabilities in at most nine digits', () => {
    const values = Float32Array.from({ length: 5000 }, (_, index) => -Math.log1p(index / 321))
    const written = text(json => json.floats(values))
    expect(Float32Array.from(JSON.parse(written))).toEqual(values.map(value => value + 0))
    for (const word of written.slice(1, -1).split(',')) {
      expect(word.replace(/^-?0\.0*|[-.]/g, '').length).toBeLessThanOrEqual(9)
    }
  })

  it('writes what has no number as null', () => {
    expect(text(json => json.floats(Float32Array.of(Number.NaN, 0, -0.5, 1e-30, 3)))).toBe(
      '[null,0,-0.5,1e-30,3]',
    )
  })

  it('writes integers of every width', () => {
    const ids = Int32Array.of(0, 9, 10, 99, 12345, 2 ** 31 - 1, -5)
    expect(text(json => json.integers(ids))).toBe(JSON.stringify([...ids]))
  })

  it('writes nested values as JSON does', () => {
    const value = {
      a: [1, 'ü"\n', null, { b: Int32Array.of(1, 2) }],
      gone: undefined,
      c: { d: Float64Array.of(0.1, 2) },
      'e"f': true,
    }
    expect(text(json => writeJson(json, value))).toBe(
      '{"a":[1,"ü\\"\\n",null,{"b":[1,2]}],"c":{"d":[0.1,2]},"e\\"f":true}',
    )
    expect(text(json => writeJson(json, {}))).toBe('{}')
  })
})
