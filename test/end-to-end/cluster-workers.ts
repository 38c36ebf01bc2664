import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GroupId, TaskId } from '../../src/base/core/ids.ts'
import { plainSampling } from '../../src/base/core/policy.ts'
import { connectionOf } from '../../src/doors/cluster/address.ts'
import { Coordinator } from '../../src/doors/cluster/coordinator.ts'
import { type Database, openDatabase } from '../../src/doors/cluster/database.ts'
import { Leasing } from '../../src/doors/cluster/leasing.ts'
import { packPiece } from '../../src/doors/cluster/parcel.ts'
import { fingerprintOf } from '../../src/doors/cluster/prints/fingerprint.ts'
import type { RunPrint } from '../../src/doors/cluster/run-row.ts'
import { migrate } from '../../src/doors/cluster/schema.ts'
import { type WorkerOptions, work } from '../../src/doors/cluster/worker.ts'
import { calculator } from '../../src/engine/environments/built-in/calculator.ts'
import { scripted } from '../../src/engine/policies/scripted.ts'
import { defaultLimits } from '../../src/engine/rollout/attempt.ts'
import type { GroupWork, Piece, Returned, Work } from '../../src/run/run/elsewhere.ts'
import { rollOptionsOf } from '../../src/run/run/roll-options.ts'
import { openServedRun } from '../../src/run/run/served/served-run.ts'
import { withDefaults } from '../../src/run/settings/settings.ts'
import { pieceOf } from '../made-piece.ts'
import { until } from '../until.ts'
import { scratch } from './cli.ts'
import type { TestServer } from './cluster.ts'

/** A world that opens when the test lets it, and ignores its signal. */
const gate = `
import { environment } from 'espalier'
import { z } from 'zod'
export const gate = environment({
  name: 'gate',
  task: z.object({}),
  async open({ id }) {
    await globalThis.espalierGate(id)
    return { opening: [{ role: 'user', content: 'Go.' }], tools: {}, report: () => ({}) }
  },
  reward: { one: () => 1 },
})
`

/** What has been let through a gate, and what waits before it. */
interface Gate {
  readonly came: string[]
  open(): void
}

/** Closes the gate of all worlds. */
function closeGate(): Gate {
  const came: string[] = []
  let open = (): void => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  Object.assign(globalThis, {
    espalierGate(id: string) {
      came.push(id)
      return opened
    },
  })
  return { came, open }
}

/** Coordinators and workers in this process, against the real server. */
export function describeWorkers(server: TestServer): void {
  const folder = scratch()
  const config = {
    policy: `scripted:${join(folder, 'answers.jsonl')}`,
    environment: `${join(folder, 'gate.ts')}#gate`,
  }
  let database: Database
  let print: RunPrint
  beforeAll(async () => {
    writeFileSync(join(folder, 'gate.ts'), gate)
    writeFileSync(join(folder, 'answers.jsonl'), `${JSON.stringify({ text: 'gone' })}\n`)
    database = await openDatabase(connectionOf(server.url))
    await migrate(database)
    await using served = await openHere()
    print = { code: fingerprintOf(config), opened: served.print }
  })
  afterAll(() => database[Symbol.asyncDispose]())

  const said: string[] = []
  const open = (run: string, more = {}): Promise<Coordinator> =>
    new Coordinator(database, {
      run,
      name: run,
      config: { settings: config, today: '2030-01-01T00:00:00Z' },
      fingerprint: print,
      parts: { policy: scripted([]), environment: calculator() },
      tell: line => said.push(line),
      ...more,
    }).enter()
  const call = { signal: new AbortController().signal }
  const askFor = (coordinator: Coordinator, ids: readonly string[]): Promise<Returned>[] =>
    ids.map(id => coordinator.make(workOf(id), call))

  /** A worker of this process; `stop` is what SIGTERM does. */
  function startWorker(options: Partial<WorkerOptions> = {}) {
    const stop = new AbortController()
    const told: string[] = []
    const tell = (line: string): void => void told.push(line)
    const { signal } = stop
    const finished = work(database, { concurrency: 4, tell, signal, ...options })
    return {
      told,
      async stop() {
        stop.abort(new Error('stopped'))
        await finished
      },
    }
  }

  /** Has the database refuse the first results of runs, each with its error's code. */
  const refuseWrites = (codes: Readonly<Record<string, string>>, times: number) =>
    database.query(`
      ${Object.keys(codes)
        .map(run => `CREATE SEQUENCE refused_${run};`)
        .join('')}
      CREATE FUNCTION refuse_writes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('refused_' || NEW.run) <= ${times} THEN
          RAISE EXCEPTION 'could not extend file: No space left on device'
            USING ERRCODE = ('${JSON.stringify(codes)}'::json)->>NEW.run;
        END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER refuse_writes BEFORE UPDATE ON espalier.attempt FOR EACH ROW
        WHEN (NEW.state = 'done' AND NEW.run IN ('full', 'odd')) EXECUTE FUNCTION refuse_writes()`)

  const openHere = async () => {
    const values = withDefaults(config)
    return await openServedRun(config.environment, rollOptionsOf(values), {
      concurrency: 1,
      onUpdate: values.onUpdate,
      tell: () => {},
    })
  }
  /** An attempt made here, as a worker would give it back. */
  async function makeOne(id: string) {
    await using served = await openHere()
    const made = await served.make(workOf(id), { ...call, making: 'one' })
    if (made.kind !== 'made') throw new Error('it was not made')
    return packPiece(await pieceOf(made))
  }

  const states = async (run: string) =>
    await database.query<{ id: string; state: string; tries: number }>(
      'SELECT id, state, tries FROM espalier.attempt WHERE run = $1 ORDER BY id',
      [run],
    )

  describe('its workers', () => {
    it('serve two runs that share a database alike', async () => {
      const { came, open: letThrough } = closeGate()
      const [one, two] = await Promise.all([open('fair-one'), open('fair-two')])
      // The first run alone has twice as many attempts as fit.
      const asked = [...askFor(one, names('a', 8)), ...askFor(two, names('b', 8))]
      await until(
        async () => (await states('fair-one')).length + (await states('fair-two')).length === 16,
      )
      const worker = startWorker()
      await until(() => came.length === 4)
      expect(came.map(id => id[0]).sort()).toEqual(['a', 'a', 'b', 'b'])
      letThrough()
      for (const returned of await Promise.all(asked)) expect(returned.kind).toBe('made')
      await Promise.all([one.end(true), two.end(true)])
      await worker.stop()
    })

    it('[P1] hand back what they hold when their grace is over, even where it does not listen', async () => {
      const { came, open: letThrough } = closeGate()
      const coordinator = await open('grace')
      const asked = askFor(coordinator, names('a', 6))
      const worker = startWorker({ grace: 0.01 })
      await until(() => came.length === 4)
      await worker.stop()
      expect((await states('grace')).map(({ state, tries }) => [state, tries])).toEqual(
        names('a', 6).map(() => ['waiting', 0]),
      )
      expect(await database.query('SELECT id FROM espalier.worker')).toEqual([])
      letThrough()
      const other = startWorker()
      for (const returned of await Promise.all(asked)) expect(returned.kind).toBe('made')
      await coordinator.end(true)
      await other.stop()
    })

    it('[P1] make an attempt again, in the same process, as if they had never had it', async () => {
      const first = closeGate()
      const coordinator = await open('again')
      const asked = askFor(coordinator, ['a'])
      const worker = startWorker()
      await until(() => first.came.length === 1)
      const second = closeGate()
      // The lease is lost, and the worker does not know: it samples, and its result is refused.
      await database.query(
        "UPDATE espalier.attempt SET state = 'waiting', worker = NULL, lease = NULL WHERE run = 'again'",
      )
      first.open()
      await until(() => second.came.length === 1)
      second.open()
      const [returned] = await Promise.all(asked)
      expect(returned).toMatchObject({ kind: 'made', members: [{ reward: { total: 1 } }] })
      await coordinator.end(true)
      await worker.stop()
    })

    it('[P1][O1] write a result again and again while the database has no room, which costs no try', async () => {
      closeGate().open()
      const [full, odd] = await Promise.all([open('full'), open('odd')])
      await refuseWrites({ full: '53100', odd: 'XX000' }, 3)
      const worker = startWorker()
      for (const each of await Promise.all([...askFor(full, ['a']), ...askFor(odd, ['b'])])) {
        expect(each).toMatchObject({ kind: 'made', members: [{ reward: { total: 1 } }] })
      }
      const tries = [...(await states('full')), ...(await states('odd'))].map(each => each.tries)
      expect(tries).toEqual([1, 1])
      expect(worker.told.join()).toContain('the result of b/0 is not written yet')
      await Promise.all([full.end(true), odd.end(true)])
      await worker.stop()
      await database.query('DROP FUNCTION refuse_writes CASCADE')
    })

    it.each([
      ['its code', () => ({ code: { ...print.code, espalier: '0.0.1' } }), 'espalier is '],
      [
        'what its chat template writes',
        () => ({ opened: { [Object.keys(print.opened)[0]!]: '0'.repeat(64) } }),
        'what its tokenizer and chat template make of a conversation is ',
      ],
    ])(
      '[S1] refuse a run where %s differs, and its coordinator says why',
      async (_, other, what) => {
        said.length = 0
        const coordinator = await open('differs', { fingerprint: { ...print, ...other() } })
        const worker = startWorker()
        await until(() => said.some(line => line.includes('does not take this run on')))
        const why = `it is not the same here: ${what}`
        expect([said.join(), worker.told.join()]).toEqual([
          expect.stringContaining(why),
          expect.stringContaining(why),
        ])
        expect(coordinator.room).toBe(0)
        await coordinator.end(true)
        await worker.stop()
      },
    )

    it('sample nothing between a pause that they acknowledge and the version that follows it', async () => {
      const { came, open: letThrough } = closeGate()
      const coordinator = await open('weights')
      await coordinator.resume(3)
      const asked = askFor(coordinator, names('a', 2))
      const worker = startWorker()
      await until(() => came.length === 2)
      await coordinator.pause()
      let isOver = false
      void Promise.all(asked).then(() => (isOver = true))
      letThrough()
      // Another attempt comes as far as its sample too.
      const more = askFor(coordinator, ['b'])
      await until(() => came.length === 3)
      expect([isOver, (await states('weights')).every(({ state }) => state === 'leased')]).toEqual([
        false,
        true,
      ])
      await coordinator.resume(4)
      for (const returned of await Promise.all([...asked, ...more])) {
        expect(versionsOf(returned)).toEqual([4])
      }
      await coordinator.end(true)
      await worker.stop()
    })
  })

  describe('its coordinator', () => {
    it('[P1] takes up what was finished while it was gone', async () => {
      closeGate().open()
      const before = await open('resumed')
      const lost = askFor(before, ['a', 'b'])
      const failures = Promise.allSettled(lost)
      const worker = startWorker()
      await until(async () => {
        const done = (await states('resumed')).filter(({ state }) => state === 'done')
        return done.length === 2
      })
      await worker.stop()
      const after = await open('resumed')
      const [a] = await Promise.all(askFor(after, ['a']))
      expect(a!.kind).toBe('made')
      await failures
      await after.end(true)
      expect(await states('resumed')).toEqual([])
      await before.end(false)
    })

    it('[P1] does not take a result of other weights for what it asks for', async () => {
      closeGate().open()
      const before = await open('stale')
      const worker = startWorker()
      await before.resume(0)
      const [first] = await Promise.all(askFor(before, ['a']))
      const after = await open('stale')
      await after.resume(1)
      const [second] = await Promise.all(askFor(after, ['a']))
      expect([first!, second!].map(versionsOf)).toEqual([[0], [1]])
      await after.end(true)
      await before.end(false)
      await worker.stop()
    })

    it('[P1][S2] has groups made whole, and keeps the members of one whose worker is gone', async () => {
      let open3 = (): void => {}
      const third = new Promise<void>(resolve => {
        open3 = resolve
      })
      let came = 0
      Object.assign(globalThis, { espalierGate: () => (++came <= 2 ? undefined : third) })
      const coordinator = await open('groups')
      const pieces: Piece[] = []
      const made = coordinator.makeGroup(groupOf('g', 4), {
        ...call,
        onBegin() {},
        onPiece: async piece => void pieces.push(piece),
      })
      const worker = startWorker({ lease: 1 })
      const kept = (): readonly string[] => pieces.flatMap(({ notes }) => notes.map(([id]) => id))
      await until(() => kept().length === 2)
      expect(await states('groups')).toMatchObject([{ id: 'g', state: 'leased' }])
      await database.query('DELETE FROM espalier.worker WHERE concurrency = 4')
      expect((await made).kind).toBe('broken')
      // The others are made one by one.
      open3()
      const rest = names('g', 4).map((_, member) => ({ ...workOf('g'), member }))
      const left = rest.filter(({ member }) => !kept().includes(`g/${member}`))
      const others = await Promise.all(left.map(each => coordinator.make(each, call)))
      expect(others.map(({ kind }) => kind)).toEqual(['made', 'made'])
      const whole = await coordinator.makeGroup(groupOf('h', 4), {
        ...call,
        onBegin() {},
        onPiece: async () => undefined,
      })
      expect(whole).toMatchObject({ kind: 'made', piece: { group: { glance: { unscored: 0 } } } })
      await coordinator.end(true)
      await worker.stop()
    })

    it('[P1] takes up the members of a group that came while it was gone', async () => {
      let came = 0
      const never = new Promise<void>(() => {})
      Object.assign(globalThis, { espalierGate: () => (++came <= 2 ? undefined : never) })
      const before = await open('left')
      const lost = before.makeGroup(groupOf('g', 4), {
        ...call,
        onBegin() {},
        onPiece: () => never,
      })
      const failure = lost.catch(() => undefined)
      const worker = startWorker({ grace: 0 })
      await until(async () => {
        const parts = await database.query("SELECT id FROM espalier.piece WHERE run = 'left'")
        return parts.length > 0
      })
      const after = await open('left')
      // Its other members are in the journal by now, so that it is asked for one by one.
      const [member] = await Promise.race(
        [0, 1, 2, 3].map(async each => [
          each,
          await after.make({ ...workOf('g'), member: each }, call),
        ]),
      )
      expect([0, 1, 2, 3]).toContain(member)
      await worker.stop()
      await after.end(true)
      await failure
      await before.end(false)
    })

    it('[P1] asks again for what it takes back and wants after all, in this order', async () => {
      const { came, open: letThrough } = closeGate()
      const coordinator = await open('wanted')
      const stop = new AbortController()
      const first = coordinator.make(workOf('a'), { signal: stop.signal })
      stop.abort(new Error('not wanted'))
      const second = coordinator.make(workOf('a'), call)
      await expect(first).rejects.toThrow('not wanted')
      const worker = startWorker()
      await until(() => came.length === 1)
      letThrough()
      expect((await second).kind).toBe('made')
      await coordinator.end(true)
      await worker.stop()
    })

    it('[O1] makes an attempt again whose result is damaged or of another, and goes on with the rest', async () => {
      closeGate().open()
      const coordinator = await open('damaged')
      const asked = askFor(coordinator, ['a', 'b'])
      await until(async () => (await states('damaged')).length === 2)
      const leasing = new Leasing(database, 'damager')
      await leasing.enter({ host: 'here', concurrency: 2, lease: 60 })
      const [a, b] = await leasing.claim('damaged', 2)
      // A result of an attempt `c`, and half of one.
      await leasing.finish(a!, await makeOne('c'))
      await leasing.finish(b!, (await makeOne('b')).subarray(0, 200))
      await until(async () => (await states('damaged')).every(({ state }) => state === 'waiting'))
      await leasing.leave()
      const worker = startWorker()
      for (const [index, returned] of (await Promise.all(asked)).entries()) {
        expect(returned).toMatchObject({ kind: 'made', trees: [{ id: ['a/0', 'b/0'][index] }] })
      }
      expect(said.filter(line => line.includes('is made again'))).toHaveLength(2)
      await coordinator.end(true)
      await worker.stop()
    })

    it('[O1] gives up with its reason what nobody could make', async () => {
      const coordinator = await open('poisoned')
      const [asked] = askFor(coordinator, ['a'])
      await until(async () => (await states('poisoned')).length === 1)
      for (let tries = 0; tries < 4; tries++) {
        const leasing = new Leasing(database, `poisoned-${tries}`)
        await leasing.enter({ host: 'here', concurrency: 1, lease: 60 })
        const [held] = await leasing.claim('poisoned', 1, tries >= 2)
        await leasing.fail(held!, 'the world is out of pears')
        await leasing.leave()
      }
      expect(await asked).toEqual({ kind: 'poisoned', reason: 'the world is out of pears' })
      await coordinator.end(true)
    })
  })
}

const groupOf = (id: string, members: number): GroupWork => {
  const { member: _, ...work } = workOf(id)
  return { ...work, members, order: 0 }
}

const names = (letter: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${letter}${index}`)

function workOf(id: string): Work {
  return {
    group: id as GroupId,
    member: 0,
    task: { id: id as TaskId, data: {} },
    seed: 1,
    sampling: plainSampling,
    limits: defaultLimits,
  }
}

/** The versions under which its tokens were sampled. */
function versionsOf(returned: Returned): readonly number[] {
  if (returned.kind !== 'made') return []
  const segments = returned.trees.flatMap(({ nodes }) => nodes.map(({ segment }) => segment))
  const versions = segments.flatMap(segment =>
    segment.origin === 'sampled' ? [segment.version.from, segment.version.to] : [],
  )
  return [...new Set(versions)]
}
