import { setImmediate as tick } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { type Lease, openPool, type PoolOptions } from './pool.ts'

const signal = new AbortController().signal

interface Box {
  readonly number: number
  isBroken: boolean
}

function boxes(options: Partial<PoolOptions<Box>> = {}) {
  const alive = new Set<Box>()
  let made = 0
  let most = 0
  const pool = openPool<Box>({
    size: 2,
    async open() {
      const box = { number: made++, isBroken: false }
      alive.add(box)
      most = Math.max(most, alive.size)
      await tick()
      return box
    },
    async close(box) {
      await tick()
      alive.delete(box)
    },
    ...options,
  })
  return { pool, alive, most: () => most }
}

const renew = (): void => {}
const giveBack = (lease: Lease<Box>): PromiseLike<void> => lease[Symbol.asyncDispose]()

async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await tick()
}

describe('a pool', () => {
  it('opens no more than its size, and serves whoever waits in order', async () => {
    const { pool, most } = boxes({ renew })
    const [first, second] = await Promise.all([pool.take({ signal }), pool.take({ signal })])
    const order: string[] = []
    const takeAs = async (name: string): Promise<Lease<Box>> => {
      const lease = await pool.take({ signal })
      order.push(name)
      return lease
    }
    const [third, fourth] = [takeAs('third'), takeAs('fourth')]
    await settle()
    expect(order).toEqual([])
    expect(pool.counts).toMatchObject({ leased: 2, waiting: 2 })
    await giveBack(second)
    expect((await third).member).toBe(second.member)
    await giveBack(first)
    await fourth
    expect(order).toEqual(['third', 'fourth'])
    expect(most()).toBe(2)
  })

  it('keeps members warm, and uses each once where they cannot be renewed', async () => {
    const { pool, alive } = boxes({ size: 3, warm: 1 })
    await settle()
    expect(pool.counts).toMatchObject({ ready: 1, leased: 0, opened: 1 })
    const lease = await pool.take({ signal })
    await settle()
    expect(pool.counts).toMatchObject({ ready: 1, leased: 1, opened: 2 })
    await giveBack(lease)
    await settle()
    expect(alive.has(lease.member)).toBe(false)
    expect(pool.counts).toMatchObject({ ready: 1, leased: 0, opened: 2, closed: 1, broken: 0 })
  })

  it('replaces members that are broken: found so, said so, or not renewable', async () => {
    const { pool } = boxes({
      size: 1,
      isHealthy: box => !box.isBroken,
      renew(box) {
        if (box.number === 2) throw new Error('stuck')
      },
    })
    const taken: number[] = []
    for (const spoil of ['found', 'said', 'stuck', 'fine', 'fine']) {
      const lease = await pool.take({ signal })
      taken.push(lease.member.number)
      if (spoil === 'found') lease.member.isBroken = true
      if (spoil === 'said') lease.condemn()
      await giveBack(lease)
      await settle()
    }
    expect(taken).toEqual([0, 1, 2, 3, 3])
    expect(pool.counts).toMatchObject({ ready: 1, opened: 4, closed: 3, broken: 3 })
  })

  it('tells whoever waits that opening failed, and does not warm up without end', async () => {
    const open = vi.fn(() => Promise.reject(new Error('no room on the host')))
    const { pool } = boxes({ size: 2, warm: 2, open })
    await settle()
    const tries = open.mock.calls.length
    expect(tries).toBeLessThanOrEqual(2)
    await expect(pool.take({ signal })).rejects.toThrow('no room on the host')
    await settle()
    expect(open.mock.calls.length).toBeLessThanOrEqual(tries + 4)
    expect(pool.counts).toMatchObject({ leased: 0, waiting: 0, moving: 0 })
  })

  it('lets waiters go, and keeps for others what was opened for them', async () => {
    const { pool } = boxes({ size: 1 })
    const stop = new AbortController()
    const gone = pool.take({ signal: stop.signal })
    stop.abort(new Error('the rollout died'))
    await expect(gone).rejects.toBe(stop.signal.reason)
    await settle()
    expect(pool.counts).toMatchObject({ ready: 1, waiting: 0, leased: 0 })
    expect((await pool.take({ signal })).member.number).toBe(0)
  })

  it('closes everything, after its leases, and refuses later ones', async () => {
    const { pool, alive } = boxes({ size: 2, warm: 2, renew })
    const lease = await pool.take({ signal })
    const closing = pool[Symbol.asyncDispose]()
    await settle()
    expect([...alive]).toEqual([lease.member])
    await giveBack(lease)
    await Promise.all([closing, pool[Symbol.asyncDispose]()])
    expect(alive.size).toBe(0)
    await expect(pool.take({ signal })).rejects.toThrow('The pool was closed.')
  })

  it('refuses a size that holds nobody', () => {
    expect(() => boxes({ size: 0 })).toThrow('A pool of 0 members has none.')
  })
})

it('leaks nothing, whatever becomes of the rollouts that use it', async () => {
  const fate = fc.constantFrom('fine', 'dies', 'aborts', 'breaks', 'condemns')
  await fc.assert(
    fc.asyncProperty(
      fc.array(fate, { maxLength: 30 }),
      fc.integer({ min: 1, max: 4 }),
      fc.boolean(),
      async (fates, size, isRenewed) => {
        const { pool, alive, most } = boxes({
          size,
          warm: 1,
          isHealthy: box => !box.isBroken,
          ...(isRenewed && { renew }),
        })
        const inUse = new Set<Box>()
        const rollouts = fates.map(async (fate, index) => {
          const stop = new AbortController()
          if (fate === 'aborts') queueMicrotask(() => stop.abort(new Error('stopped')))
          await using lease = await pool.take({ signal: stop.signal })
          expect(inUse.has(lease.member)).toBe(false)
          inUse.add(lease.member)
          for (let turn = 0; turn < index % 3; turn++) await tick()
          inUse.delete(lease.member)
          if (fate === 'breaks') lease.member.isBroken = true
          if (fate === 'condemns') lease.condemn()
          if (fate === 'dies') throw new Error('died')
        })
        await Promise.allSettled(rollouts)
        expect(pool.counts.leased).toBe(0)
        await pool[Symbol.asyncDispose]()
        expect(alive.size).toBe(0)
        expect(most()).toBeLessThanOrEqual(size)
        expect(pool.counts).toMatchObject({ ready: 0, moving: 0, waiting: 0 })
        expect(pool.counts.opened).toBe(pool.counts.closed)
      },
    ),
    { seed: 1, numRuns: process.env.ESPALIER_SOAK ? 2000 : 60 },
  )
})
