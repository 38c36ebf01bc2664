import fc from 'fast-check'
import { expect, it } from 'vitest'
import { BLOCK } from '../kernels/layout.ts'
import { type CacheNode, PrefixCache } from './prefix-cache.ts'

const runs = process.env.ESPALIER_SOAK ? 3000 : 150

/** Puts a whole sequence into the cache, as if it had been computed. */
function compute(cache: PrefixCache, tokens: Int32Array): CacheNode[] {
  const match = cache.match(tokens, tokens.length)
  cache.acquire(match.path)
  const path = [...match.path]
  for (let start = path.length * BLOCK; start < tokens.length; start += BLOCK) {
    const node = cache.add(path.at(-1), tokens[start]!)
    const part = tokens.subarray(start, start + BLOCK)
    node.tokens.set(part)
    node.known = part.length
    node.filled = part.length
    path.push(node)
  }
  return path
}

function commonPrefix(a: Int32Array, b: Int32Array): number {
  let at = 0
  while (at < Math.min(a.length, b.length) && a[at] === b[at]) at++
  return at
}

const sequence = fc
  .array(fc.nat(1), { minLength: 1, maxLength: 4 * BLOCK })
  .map(tokens => Int32Array.from(tokens))

it('finds the longest common beginning of everything computed, while there is space', () => {
  fc.assert(
    fc.property(fc.array(sequence, { maxLength: 12 }), sequence, (known, wanted) => {
      const cache = new PrefixCache(100)
      for (const tokens of known) cache.release(compute(cache, tokens))
      const match = cache.match(wanted, wanted.length)
      const longest = known.reduce((most, one) => Math.max(most, commonPrefix(one, wanted)), 0)
      expect(match.tokens).toBe(longest)
      expect(match.pending).toBe(false)
      expect(match.path).toHaveLength(Math.floor(longest / BLOCK))
      expect(match.partial?.tokens ?? 0).toBe(longest % BLOCK)
      expect(cache.available).toBe(100)
    }),
    { seed: 1, numRuns: runs },
  )
})

it('never hands out a block twice, never forgets one that is stood on, and loses none', () => {
  const action = fc.record({ tokens: sequence, hold: fc.boolean(), drop: fc.nat(3) })
  fc.assert(
    fc.property(fc.array(action, { maxLength: 40 }), actions => {
      const cache = new PrefixCache(24)
      const held: { path: CacheNode[]; tokens: Int32Array }[] = []
      for (const { tokens, hold, drop } of actions) {
        if (held.length > 3) cache.release(held.splice(drop, 1)[0]!.path)
        const path = compute(cache, tokens)
        if (hold) held.push({ path, tokens })
        else cache.release(path)
        const nodes = new Set(held.flatMap(one => one.path))
        expect(new Set([...nodes].map(node => node.block)).size).toBe(nodes.size)
        expect(cache.available).toBe(24 - nodes.size)
        for (const one of held) {
          expect(cache.match(one.tokens, one.tokens.length).tokens).toBe(one.tokens.length)
        }
      }
      for (const { path } of held) cache.release(path)
      cache.clear()
      expect(cache.available).toBe(24)
    }),
    { seed: 1, numRuns: runs },
  )
})

it('asks to wait for what another sequence is computing, unless that one gives up', () => {
  const cache = new PrefixCache(10)
  const tokens = Int32Array.from({ length: BLOCK }, (_, at) => at)
  const node = cache.add(undefined, 0)
  node.tokens.set(tokens)
  node.known = BLOCK
  expect(cache.match(tokens, BLOCK)).toMatchObject({ pending: true, tokens: 0 })
  node.filled = BLOCK - 1
  expect(cache.match(tokens, BLOCK)).toMatchObject({ pending: false, tokens: BLOCK - 1 })
  node.filled = 0
  node.known = 0
  cache.release([node])
  expect(cache.match(tokens, BLOCK)).toMatchObject({ pending: false, tokens: 0 })
  expect(cache.available).toBe(10)
})

it('forgets what was unused longest, and says so when everything is in use', () => {
  const cache = new PrefixCache(2)
  cache.release(compute(cache, Int32Array.of(1)))
  cache.release(compute(cache, Int32Array.of(2)))
  compute(cache, Int32Array.of(3))
  expect(cache.match(Int32Array.of(1), 1).tokens).toBe(0)
  expect(cache.match(Int32Array.of(2), 1).tokens).toBe(1)
  compute(cache, Int32Array.of(4))
  expect(() => compute(cache, Int32Array.of(5))).toThrow('every block is in use')
})
