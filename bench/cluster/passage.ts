import PgBoss from 'pg-boss'
import type { Database } from '../../src/doors/cluster/database.ts'
import { Leasing } from '../../src/doors/cluster/leasing.ts'
import { makePlacing } from '../../src/doors/cluster/placing.ts'
import { openRunRow } from '../../src/doors/cluster/run-row.ts'
import { type TestServer, unopened } from '../../test/end-to-end/cluster.ts'
import { openCpu } from './cpu.ts'

/** Attempts whose way through the queue is measured, and the bytes of a result. */
const queued = 960
const resultBytes = 20_000
/** Attempts that go through together. */
const batch = 16

/** The cost of one attempt in a queue. */
export interface Passage {
  /** Milliseconds per attempt from placing to forgetting, one at a time and in batches of 16. */
  readonly alone: number
  readonly batched: number
  /** Milliseconds of a core that the database spends on each in batches; null if unknown. */
  readonly cpu: number | null
  /** Milliseconds from placing until an idle worker has it. */
  readonly wakes: number
}

/** What idle workers cost the database, in milliseconds of a core. */
export interface Presence {
  readonly beat: number | null
  readonly look: number | null
  readonly emptyClaim: number | null
}

type Pass = (names: readonly string[]) => Promise<void>

/** The way through the tables. */
export async function throughTables(
  database: Database,
  server: TestServer,
): Promise<Passage & { readonly presence: Presence }> {
  await openRunRow(database, 'bench', 'bench').enter(unopened('bench'))
  const placing = makePlacing(database, 'bench')
  const leasing = new Leasing(database, 'bench')
  await leasing.enter({ host: 'bench', concurrency: batch, lease: 600 })
  const result = Buffer.alloc(resultBytes, 7)
  const pass: Pass = async names => {
    await placing.place(names.map(id => ({ id, work: Buffer.alloc(500), digest: id })))
    const leased = await leasing.claim('bench', names.length)
    await Promise.all(leased.map(each => leasing.finish(each, result)))
    await placing.over({ ids: [], parts: [] }, names.length)
    await placing.taken(names)
  }
  const figures = await passages(pass, server)
  const presence = await presenceOf(leasing, server)
  const heard = makeHearing()
  await leasing.attend('bench')
  await database.listen(leasing.channel, heard.hear)
  const wakes = await wakesOf(heard, async round => {
    await leasing.want('bench', 1)
    await placing.place([{ id: `wake-${round}`, work: Buffer.alloc(500), digest: 'x' }])
    return async () => void (await leasing.claim('bench', 1))
  })
  await openRunRow(database, 'bench', 'bench').remove()
  await leasing.leave()
  return { ...figures, wakes, presence }
}

/** The same through pg-boss. */
export async function throughBoss(server: TestServer): Promise<Passage> {
  const boss = new PgBoss({ connectionString: server.url.href, supervise: false, schedule: false })
  await boss.start()
  await boss.createQueue('bench')
  // Results are JSON there, so bytes have to be encoded.
  const output = { result: Buffer.alloc(resultBytes, 7).toString('base64') }
  const pass: Pass = async names => {
    const work = Buffer.alloc(500).toString('base64')
    await boss.insert(names.map(id => ({ name: 'bench', data: { id, work } })))
    const jobs = await boss.fetch('bench', { batchSize: names.length })
    await Promise.all(jobs.map(({ id }) => boss.complete('bench', id, output)))
    await Promise.all(jobs.map(({ id }) => boss.getJobById('bench', id)))
    await boss.deleteJob(
      'bench',
      jobs.map(({ id }) => id),
    )
  }
  const figures = await passages(pass, server)
  const heard = makeHearing()
  await boss.work('bench', { pollingIntervalSeconds: 0.5 }, async () => heard.hear())
  const wakes = await wakesOf(heard, async () => {
    await boss.send('bench', {})
    return async () => undefined
  })
  await boss.stop({ graceful: false })
  return { ...figures, wakes }
}

async function passages(pass: Pass, server: TestServer): Promise<Omit<Passage, 'wakes'>> {
  await timed(batch * 4, batch, pass)
  const alone = await timed(queued / 4, 1, pass)
  const cpu = openCpu(server)
  const batched = await timed(queued, batch, pass)
  return { alone, batched, cpu: cpu.spent(queued) }
}

async function presenceOf(leasing: Leasing, server: TestServer): Promise<Presence> {
  const each = async (ask: () => Promise<unknown>): Promise<number | null> => {
    const count = 400
    const cpu = openCpu(server)
    for (let round = 0; round < count; round++) await ask()
    return cpu.spent(count)
  }
  const load = { running: 1, done: 1, refused: 0, sampled: 1, leaving: false }
  return {
    beat: await each(async () => [await leasing.beat(load), await leasing.held()]),
    look: await each(() => leasing.runs()),
    emptyClaim: await each(() => leasing.claim('bench', 1)),
  }
}

async function timed(count: number, size: number, pass: Pass): Promise<number> {
  const started = performance.now()
  for (let from = 0; from < count; from += size) {
    await pass(Array.from({ length: size }, (_, index) => `${size}/${from + index}`))
  }
  return (performance.now() - started) / count
}

function makeHearing() {
  let woken = (): void => {}
  return {
    hear: () => woken(),
    next: () => new Promise<void>(resolve => (woken = resolve)),
  }
}

/** The median time from placing until a worker has it. */
async function wakesOf(
  heard: ReturnType<typeof makeHearing>,
  place: (round: number) => Promise<() => Promise<void>>,
): Promise<number> {
  const waits: number[] = []
  for (let round = 0; round < 8; round++) {
    const started = performance.now()
    const next = heard.next()
    const take = await place(round)
    await next
    await take()
    waits.push(performance.now() - started)
  }
  return waits.toSorted((a, b) => a - b)[Math.floor(waits.length / 2)]!
}
