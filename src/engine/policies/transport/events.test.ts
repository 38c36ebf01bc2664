import { describe, expect, it } from 'vitest'
import { readEvents } from './events.ts'

function read(body: Buffer, width: number): readonly string[] {
  const taken: string[] = []
  const take = readEvents('POST /', data => taken.push(data))
  for (let at = 0; at < body.length; at += width) take(body.subarray(at, at + width))
  return taken
}

describe('H6: events', () => {
  it('come once and in order, however the body is cut and its lines end', () => {
    const body = Buffer.from(
      'data: a\r\n\r\n: c\n\ndata:b\ndata: ü🎉\n\nevent: x\ndata: [DONE]\n\ndata: z\n\n',
    )
    for (let width = 1; width <= body.length; width++) {
      expect(read(body, width)).toEqual(['a', 'b\nü🎉', 'z'])
    }
  })

  it('of a stream of many are searched once each', () => {
    const body = Buffer.from('data: 1\n\n'.repeat(20_000))
    let work = 0
    const search = Buffer.prototype.indexOf
    // What lies between the place of a search and what it finds is what it looks at.
    Buffer.prototype.indexOf = function counted(this: Buffer, value: number, from = 0) {
      const found = search.call(this, value, from)
      work += (found < 0 ? this.length : found) - Number(from)
      return found
    } as typeof search
    try {
      expect(read(body, 65_536)).toHaveLength(20_000)
    } finally {
      Buffer.prototype.indexOf = search
    }
    expect(work).toBeLessThan(2 * body.length)
  })

  it('are refused where one of them is too large, at once', () => {
    const take = readEvents('POST /', () => undefined)
    const piece = Buffer.alloc(2 ** 20, 'a')
    take(Buffer.from('data: '))
    expect(() => {
      for (let count = 0; count < 70; count++) take(piece)
    }).toThrow('larger than')
  })
})
