import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connectionOf } from '../../src/doors/cluster/address.ts'
import { type Database, openDatabase } from '../../src/doors/cluster/database.ts'
import { makeImageTable } from '../../src/doors/cluster/images/image-table.ts'
import { ImageTaker } from '../../src/doors/cluster/images/take-images.ts'
import { Leasing } from '../../src/doors/cluster/leasing.ts'
import { makePlacing } from '../../src/doors/cluster/placing.ts'
import { isLed, openRunRow } from '../../src/doors/cluster/run-row.ts'
import { migrate, schemaVersion } from '../../src/doors/cluster/schema.ts'
import { imageFacts } from '../../src/engine/rollout/images/keep.ts'
import { makeMemoryStore } from '../../src/engine/rollout/images/memory-store.ts'
import { mostTries, suspectAfter } from '../../src/run/run/served/tries.ts'
import { Canvas } from '../../src/worlds/pictures/canvas.ts'
import { until } from '../until.ts'
import { type TestServer, unopened } from './cluster.ts'

/** The coordinator holds nothing. */
const nothing = { ids: [], parts: [] }

/** Seconds for which the coordinator of these tests was in contact: longer than any lease. */
const contact = 1e6

/** The tables by themselves: who may write what, and what becomes of attempts whose worker is gone. */
export function describeQueue(server: TestServer): void {
  let database: Database
  beforeAll(async () => {
    database = await openDatabase(connectionOf(server.url))
    await migrate(database)
  })
  afterAll(async () => {
    await database.query("DELETE FROM espalier.run WHERE id LIKE 'queue-%'")
    await database.query('DELETE FROM espalier.worker')
    await database[Symbol.asyncDispose]()
  })

  let count = 0
  /** A run of its own with attempts that wait, and its workers. */
  async function openRun(ids: readonly string[]) {
    const run = `queue-${count++}`
    await openRunRow(database, run, 'c').enter(unopened(run))
    const placing = makePlacing(database, run)
    const placed = ids.map(id => ({ id, work: Buffer.from(`work of ${id}`), digest: 'd' }))
    await placing.place(placed)
    /** A worker; for one that should be lost, the lease runs out at once. */
    const enter = async (name: string, lease: number): Promise<Leasing> => {
      const leasing = new Leasing(database, `${run}-${name}-${count++}`)
      await leasing.enter({ host: name, concurrency: 4, lease })
      return leasing
    }
    const stateOf = async (id: string) => {
      const [row] = await database.query<{ state: string; tries: number; reason: string | null }>(
        'SELECT state, tries, reason FROM espalier.attempt WHERE run = $1 AND id = $2',
        [run, id],
      )
      return row
    }
    return { run, placing, placed, enter, stateOf }
  }

  describe('its queue', () => {
    it('[P1] takes nothing from a worker that lost its lease, and a result once', async () => {
      const { run, placing, enter, stateOf } = await openRun(['a', 'b'])
      const slow = await enter('slow', 0)
      const [first] = await slow.claim(run, 1)
      expect(first).toMatchObject({ run, id: 'a', work: Buffer.from('work of a') })
      await placing.reap(contact, 0)
      const quick = await enter('quick', 60)
      const [second] = await quick.claim(run, 1)
      expect([second!.id, await slow.beat(idle)]).toEqual(['a', false])
      expect(await slow.claim(run, 1)).toEqual([])
      await slow.fail(first!, 'broken')
      await slow.giveBack([first!.lease, second!.lease])
      expect(await slow.finish(first!, Buffer.from('late'))).toBe(false)
      // Not even with the number of the other one.
      expect(await slow.finish(second!, Buffer.from('stolen'))).toBe(false)
      expect(await stateOf('a')).toMatchObject({ state: 'leased' })
      const written = ['right', 'again'].map(text => quick.finish(second!, Buffer.from(text)))
      expect(await Promise.all(written)).toEqual([true, false])
      const [over] = await placing.over(nothing, 9)
      expect([over!.id, `${over!.result}`]).toEqual(['a', 'right'])
    })

    it('[P1] brings images to the coordinator once, none that is broken, and no more than it has room for', async () => {
      const { run } = await openRun([])
      const table = makeImageTable(database, run)
      const store = makeMemoryStore()
      const told: string[] = []
      const taker = new ImageTaker({ table, store, tell: line => told.push(line) })
      const bytes = Buffer.from(new Canvas(3, 2, [1, 2, 3]).toPng())
      const facts = imageFacts(bytes)
      const image = { digest: facts.digest, size: bytes.length, bytes, segment: null, offset: null }
      const large = { ...image, digest: 'f'.repeat(64), size: 2 ** 30 }
      expect(await table.lacking([image.digest])).toEqual([image.digest])
      expect([await table.put(image), await table.put(image)]).toEqual([true, false])
      expect(await table.lacking([image.digest])).toEqual([])
      expect(await taker.take()).toBe(true)
      expect(Buffer.from(await store.read(facts))).toEqual(bytes)
      // Its name stays, so that nobody sends it again.
      expect([await table.waiting(9), await table.put(image)]).toEqual([[], false])
      expect(await table.put(large)).toBe(true)
      expect(await table.put({ ...image, digest: '0'.repeat(64) })).toBe(false)
      await expect(taker.take()).rejects.toThrow(`${large.digest} of a worker is broken`)
      expect(told).toEqual([])
    })

    it('wakes as many workers as attempts were placed, of those that want some and take part', async () => {
      const { run, placing, enter } = await openRun(['a'])
      const heard: string[] = []
      const names = ['busy', 'shut', 'first', 'second', 'third', 'fourth']
      const workers: Leasing[] = []
      for (const name of names) {
        const worker = await enter(name, 60)
        await worker.attend(run)
        await database.listen(worker.channel, payload => heard.push(`${name} ${payload === run}`))
        workers.push(worker)
      }
      const [busy, shut, ...idle] = workers
      await Promise.all(idle.map(worker => worker.want(run, 4)))
      await shut!.want(run, 4)
      await shut!.refuse(run, 'other code')
      // It finds as much as it wants, so that it comes again by itself.
      await busy!.want(run, 1)
      expect((await busy!.claim(run, 1)).length).toBe(1)
      const place = (...ids: readonly string[]): Promise<void> =>
        placing.place(ids.map(id => ({ id, work: Buffer.of(), digest: 'd' })))
      await place('b', 'c')
      await until(() => heard.length === 2)
      await place('d')
      await until(() => heard.length === 3)
      // What is on the queue already wakes nobody.
      await place('d')
      await place('e', 'f', 'g')
      await until(() => heard.length === 4)
      expect(heard.toSorted()).toEqual(
        ['first', 'fourth', 'second', 'third'].map(name => `${name} true`),
      )
    })

    it('[H5] knows whether a coordinator leads a run by whether its sign of life moves, not by its age', async () => {
      const { run } = await openRun([])
      const row = openRunRow(database, run, 'c')
      const time = { now: 0 }
      /** Watches with a clock of its own; the coordinator beats while it waits, or does not. */
      const watched = (beat: () => Promise<unknown>) =>
        isLed(database, run, {
          now: () => time.now,
          async wait(milliseconds) {
            time.now += milliseconds
            await beat()
          },
        })
      await database.query(
        `UPDATE espalier.run SET seen = clock_timestamp() - interval '1 hour' WHERE id = '${run}'`,
      )
      expect(await watched(() => row.beat())).toBe(true)
      const before = time.now
      expect(await watched(async () => undefined)).toBe(false)
      expect(time.now - before).toBe(15_000)
      await row.stop()
      expect([await isLed(database, run), await isLed(database, 'nobody')]).toEqual([
        false,
        undefined,
      ])
    })

    it('[P1] puts back what a worker held whose row is gone', async () => {
      const { run, placing, enter, stateOf } = await openRun(['a'])
      const worker = await enter('gone', 60)
      await worker.claim(run, 1)
      await worker.leave()
      await placing.reap(contact, 0)
      expect(await stateOf('a')).toMatchObject({ state: 'waiting', tries: 1 })
    })

    it('[P1] loses nobody because the database or the coordinator stood still', async () => {
      const { run, placing, enter, stateOf } = await openRun(['a'])
      const worker = await enter('late', 0.01)
      await worker.claim(run, 1)
      await database.query('SELECT pg_sleep(0.02)')
      await placing.reap(contact, 60)
      // In contact for a shorter time than the lease.
      await placing.reap(0.005, 0)
      expect([(await stateOf('a'))?.state, await worker.beat(idle)]).toEqual(['leased', true])
    })

    it('[O1] gives an attempt up that kills whoever rolls it, the last times alone', async () => {
      const { run, placing, enter, stateOf } = await openRun(['poison'])
      for (let tries = 1; tries <= mostTries; tries++) {
        const worker = await enter('host-7', 0)
        const isSuspect = tries > suspectAfter
        expect(await worker.claim(run, 4, !isSuspect)).toEqual([])
        expect((await worker.claim(run, 4, isSuspect)).length).toBe(1)
        const last = tries === mostTries
        expect(await placing.reap(contact, 0)).toEqual([
          { id: 'poison', state: last ? 'failed' : 'waiting' },
        ])
      }
      expect((await stateOf('poison'))?.reason).toBe(
        '4 workers died or were cut off while they rolled it, the last one on host-7',
      )
    })

    it('[P1] does not blame an attempt for workers that were only slow, but not for ever', async () => {
      const { run, placing, enter, stateOf } = await openRun(['a'])
      const states: string[] = []
      for (let round = 0; round < 40 && !states.includes('failed'); round++) {
        const worker = await enter('slow', 0)
        const isSuspect = (await stateOf('a'))!.tries >= suspectAfter
        const held = await worker.claim(run, 1, isSuspect)
        const [reaped] = await placing.reap(contact, 0)
        states.push(reaped!.state)
        await worker.forgive(held)
      }
      expect(states.length).toBe(16 + mostTries)
    })

    it('[P1] keeps what was asked for, its result too, and makes anew what is asked for otherwise', async () => {
      const { run, placing, placed, enter, stateOf } = await openRun(['a', 'b'])
      const worker = await enter('w', 60)
      const [a] = await worker.claim(run, 2)
      await worker.finish(a!, Buffer.from('of a'))
      await placing.place(placed)
      expect([(await stateOf('a'))?.state, (await stateOf('b'))?.state]).toEqual(['done', 'leased'])
      await placing.place(placed.map(each => ({ ...each, digest: 'under other weights' })))
      expect([(await stateOf('a'))?.state, (await stateOf('b'))?.state]).toEqual([
        'waiting',
        'waiting',
      ])
    })

    it('takes more at one time than is sent at one time', async () => {
      const ids = Array.from({ length: 5 }, (_, index) => `${index}`)
      const { run, placing, enter } = await openRun(ids)
      const worker = await enter('w', 60)
      const held = await worker.claim(run, 5)
      const large = Buffer.alloc(1_500_000, 7)
      expect(await Promise.all(held.map(each => worker.finish(each, large)))).not.toContain(false)
      const over = await placing.over(nothing, 9)
      expect(over.map(({ result }) => result!.equals(large))).toEqual(ids.map(() => true))
      await placing.taken(ids)
      expect(await placing.over(nothing, 9)).toEqual([])
    })
  })

  describe('its schema', () => {
    /** A database of its own on the server. */
    async function openOther(name: string): Promise<Database> {
      await database.query(`CREATE DATABASE ${name}`)
      return await openDatabase({ ...connectionOf(server.url), database: name })
    }

    it('is brought up to date from an older version, and what is in it stays', async () => {
      await using other = await openOther('older')
      await migrate(other, 1)
      await openRunRow(other, 'run', 'c').enter(unopened('run'))
      await other.query(
        "INSERT INTO espalier.attempt (run, id, work, digest) VALUES ('run', 'a', '', 'd')",
      )
      // Whoever comes first does it; the others find it done.
      await Promise.all([1, 2, 3].map(() => migrate(other)))
      expect(await other.query('SELECT id, forgiven FROM espalier.attempt')).toEqual([
        { id: 'a', forgiven: 0 },
      ])
      const versions = await other.query('SELECT version FROM espalier.migration ORDER BY version')
      expect(versions.length).toBe(schemaVersion)
    })

    it('of a newer program is refused', async () => {
      await using other = await openOther('newer')
      await migrate(other)
      await other.query('INSERT INTO espalier.migration (version) VALUES (99)')
      await expect(migrate(other)).rejects.toThrow(
        `schema espalier version 99; this program knows ${schemaVersion}. Use the newer espalier`,
      )
    })
  })
}

const idle = { running: 0, done: 0, refused: 0, sampled: 0, leaving: false }
