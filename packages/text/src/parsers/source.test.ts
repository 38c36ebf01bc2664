import { describe, expect, it } from 'vitest'
import { markers } from './markers.ts'
import { type Reader, Source } from './source.ts'

/** Feeds a reader chunk by chunk; undefined stands for the end. */
function feed<Result>(source: Source, reader: Reader<Result>, chunks: readonly string[]): Result {
  let step = reader.next()
  for (const chunk of chunks) {
    source.push(chunk, false)
    if (!step.done) step = reader.next()
  }
  source.end()
  if (!step.done) step = reader.next()
  if (!step.done) throw new Error('the reader still waits')
  return step.value
}

describe('Source', () => {
  it('emits text as soon as it can be no marker', () => {
    const source = new Source()
    const emitted: string[] = []
    const marker = feed(
      source,
      source.until(markers('<end>', '<start>'), text => emitted.push(text)),
      ['a <', 'b <en', 'd', '> c'],
    )
    expect(marker).toBe('<end>')
    expect(emitted).toEqual(['a ', '<b '])
  })

  it('prefers the marker that begins first and is longest, however it arrives', () => {
    for (const chunks of [['x<a|>b'], ['x<a|', '>', 'b'], ['x', '<', 'a', '|', '>b']]) {
      const source = new Source()
      expect(feed(source, source.until(markers('|>', '<a|>', '<a|>b')), chunks)).toBe('<a|>b')
    }
  })

  it('looks for a near marker only as far as it is told', () => {
    const far = new Source()
    expect(feed(far, far.near(markers('>'), 4), ['12345>'])).toBeUndefined()
    expect(far.position).toBe(0)
    const close = new Source()
    expect(feed(close, close.near(markers('>'), 4), ['12', '34>'])).toEqual({
      text: '1234',
      marker: '>',
    })
  })

  it('gives back what was consumed, across chunks', () => {
    const source = new Source()
    function* read(): Reader<string> {
      const collector = source.collect()
      yield* source.until(markers('!'))
      const first = collector.text()
      expect(collector.giveBack()).toBe(true)
      expect(source.position).toBe(0)
      return `${first} ${yield* source.ahead(3)}`
    }
    expect(feed(source, read(), ['ab', 'cd', '!'])).toBe('abcd abc')
  })

  it('refuses to give back again and again', () => {
    const source = new Source()
    source.push('x'.repeat(10_000), false)
    let given = 0
    for (; given < 100; given++) {
      const collector = source.collect()
      source.skip(10_000)
      if (!collector.giveBack()) break
    }
    expect(given).toBeGreaterThan(0)
    expect(given).toBeLessThan(12)
  })

  it('counts markers with control strings only where the tokens arrived', () => {
    const source = new Source(['<|sep|>'])
    source.push('a<|sep|>b', false)
    source.push('<|sep|>', true)
    source.push('c', false)
    source.end()
    const found = source.until(markers('<|sep|>c', '<|sep|>b')).next()
    expect(found).toEqual({ done: true, value: '<|sep|>c' })
    expect(source.controls(0, 100)).toEqual([[9, 16]])
  })
})
