import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { connectionOf } from '../../src/doors/cluster/address.ts'
import { openDatabase } from '../../src/doors/cluster/database.ts'
import type { TestServer } from './cluster.ts'

/** A connection to the server that can be cut. */
async function openWay(to: number) {
  const sockets = new Set<Socket>()
  const way = createServer(socket => {
    const there = connect(to, '127.0.0.1')
    for (const each of [socket, there]) {
      sockets.add(each)
      each.on('error', () => undefined).on('close', () => sockets.delete(each))
    }
    socket.pipe(there).pipe(socket)
  })
  way.listen(0, '127.0.0.1')
  await once(way, 'listening')
  const { port } = way.address() as AddressInfo
  const cut = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    if (!way.listening) return
    way.close()
    await once(way, 'close')
  }
  return {
    port,
    cut,
    async mend() {
      way.listen(port, '127.0.0.1')
      await once(way, 'listening')
    },
    [Symbol.asyncDispose]: cut,
  }
}

/** What happens to queries while the server is away, with a fake clock instead of real minutes. */
export function describeOutage(server: TestServer): void {
  /** A database behind a connection that is restored when a fake clock says so. */
  async function openBehind(minutes: number, options: { readonly patience?: number } = {}) {
    const way = await openWay(Number(server.url.port))
    const told: string[] = []
    const time = { now: 0 }
    const database = await openDatabase(
      { ...connectionOf(server.url), port: way.port },
      {
        ...options,
        tell: line => told.push(line),
        clock: () => time.now,
        async pause(milliseconds) {
          const before = time.now
          time.now += milliseconds
          const end = minutes * 60_000
          if (before < end && time.now >= end) await way.mend()
        },
      },
    )
    return { way, told, time, database }
  }

  describe('its database', () => {
    it('[P1] is waited for where it is away for a minute, and nobody is lost for that', async () => {
      const { way, told, time, database } = await openBehind(1)
      time.now = 5000
      expect(database.contact()).toBe(5)
      let tell = (): void => {}
      const missed = new Promise<void>(resolve => {
        tell = resolve
      })
      await database.listen('espalier_test', payload => payload ?? tell())
      await way.cut()
      expect(await database.query('SELECT 7 AS seven')).toEqual([{ seven: 7 }])
      expect(time.now).toBeGreaterThanOrEqual(60_000)
      expect(database.contact()).toBe(0)
      expect(told).toEqual([
        expect.stringMatching(/^the database does not answer .*; waiting for it$/),
        'the database answers again',
      ])
      // Whoever listens is told that something may have been missed.
      await missed
      await database[Symbol.asyncDispose]()
      await way[Symbol.asyncDispose]()
    })

    it('is given up after a while, in words without the password', async () => {
      const { way, told, database } = await openBehind(60, { patience: 900 })
      await way.cut()
      const problem = await database.query('SELECT 1').catch((error: Error) => error.message)
      expect(problem).toMatch(/^PostgreSQL: /)
      expect(`${problem} ${told}`).not.toContain(server.url.password)
      await database[Symbol.asyncDispose]()
      await way[Symbol.asyncDispose]()
    })
  })
}
