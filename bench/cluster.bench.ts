import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import PgBoss from 'pg-boss'
import { connectionOf } from '../src/cluster/address.ts'
import { type Database, openDatabase } from '../src/cluster/database.ts'
import { Leasing } from '../src/cluster/leasing.ts'
import { openPlacing, workChannel } from '../src/cluster/placing.ts'
import { openRunRow } from '../src/cluster/run-row.ts'
import { migrate } from '../src/cluster/schema.ts'
import { scratch, start } from '../test/end-to-end/cli.ts'
import { openTestServer, type TestServer } from '../test/end-to-end/cluster.ts'
import { openFixedServer, sglangAnswer } from './fixed-server.ts'

/** Attempts whose way through the queue is measured, and the bytes of a result. */
const queued = 600
const resultBytes = 20_000
/** Rollouts per run against a server that takes a while, and how many a worker makes at one time. */
const rollouts = 192
const width = 8
const latency = [250, 350] as const

/** Ways through the queue, then runs on 1, 2 and 4 workers beside one process. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  await using server = await openTestServer()
  await using database = await openDatabase(connectionOf(server.url))
  await migrate(database)
  const tables = await throughTables(database)
  if (!json) console.log(`plain tables  ${show(tables)}`)
  const boss = await throughBoss(server)
  if (!json) console.log(`pg-boss 10    ${show(boss)}`)
  const runs = await runWithWorkers(server)
  if (!json) {
    for (const { workers, seconds, perSecond } of runs.clustered) {
      console.log(`${workers} workers  ${seconds.toFixed(1)} s, ${perSecond.toFixed(1)} rollouts/s`)
    }
    console.log(`one process with ${width} at one time  ${runs.alone.toFixed(1)} s`)
    console.log(
      `overhead of the cluster per rollout  ${runs.overhead.toFixed(1)} ms (wall, 1 worker)`,
    )
  }
  return { tables, boss, ...runs }
}

interface Passage {
  /** Milliseconds per attempt from placing to forgetting, one at a time and in batches of 16. */
  readonly alone: number
  readonly batched: number
  /** Milliseconds from placing until somebody idle has it. */
  readonly wakes: number
}

const show = ({ alone, batched, wakes }: Passage): string =>
  `${alone.toFixed(2)} ms per attempt, ${batched.toFixed(2)} in batches of 16; an idle worker has it after ${wakes.toFixed(0)} ms`

async function throughTables(database: Database): Promise<Passage> {
  await openRunRow(database, 'bench', 'bench').enter({ name: 'bench', config: {}, fingerprint: {} })
  const placing = openPlacing(database, 'bench')
  const leasing = new Leasing(database, 'bench')
  await leasing.enter({ host: 'bench', concurrency: 16, lease: 600 })
  const result = Buffer.alloc(resultBytes, 7)
  const pass = async (names: readonly string[]): Promise<void> => {
    await placing.place(names.map(id => ({ id, work: Buffer.alloc(500), digest: id })))
    const leased = await leasing.claim('bench', names.length)
    await Promise.all(leased.map(each => leasing.finish(each, result)))
    await placing.over([], names.length)
    await placing.taken(names)
  }
  const alone = await timed(queued, 1, pass)
  const batched = await timed(queued, 16, pass)
  const heard = openHearing()
  await database.listen(workChannel, heard.hear)
  const waits: number[] = []
  for (let round = 0; round < 8; round++) {
    const started = performance.now()
    const next = heard.next()
    await placing.place([{ id: `wake-${round}`, work: Buffer.alloc(500), digest: 'x' }])
    await next
    await leasing.claim('bench', 1)
    waits.push(performance.now() - started)
  }
  return { alone, batched, wakes: middle(waits) }
}

async function throughBoss({ url }: TestServer): Promise<Passage> {
  const boss = new PgBoss({ connectionString: url.href, supervise: false, schedule: false })
  await boss.start()
  await boss.createQueue('bench')
  // Results travel as JSON there: bytes have to be spelled.
  const output = { result: Buffer.alloc(resultBytes, 7).toString('base64') }
  const pass = async (names: readonly string[]): Promise<void> => {
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
  const alone = await timed(queued, 1, pass)
  const batched = await timed(queued, 16, pass)
  const heard = openHearing()
  await boss.work('bench', { pollingIntervalSeconds: 0.5 }, async () => heard.hear())
  const waits: number[] = []
  for (let round = 0; round < 8; round++) {
    const started = performance.now()
    const next = heard.next()
    await boss.send('bench', {})
    await next
    waits.push(performance.now() - started)
  }
  await boss.stop({ graceful: false })
  return { alone, batched, wakes: middle(waits) }
}

function openHearing() {
  let woken = (): void => {}
  return {
    hear: () => woken(),
    next: () => new Promise<void>(resolve => (woken = resolve)),
  }
}

async function timed(
  count: number,
  batch: number,
  pass: (names: readonly string[]) => Promise<void>,
): Promise<number> {
  const started = performance.now()
  for (let from = 0; from < count; from += batch) {
    await pass(Array.from({ length: batch }, (_, index) => `${batch}/${from + index}`))
  }
  return (performance.now() - started) / count
}

const middle = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

async function runWithWorkers(server: TestServer) {
  const folder = scratch()
  const ids = [...'the answer is 4'].map(letter => letter.charCodeAt(0))
  await using policy = await openFixedServer(sglangAnswer([...ids, 258]), latency)
  const tasks = Array.from({ length: rollouts / 4 }, (_, id) => ({ id, prompt: 'p', answer: 'x' }))
  writeFileSync(
    join(folder, 'tasks.jsonl'),
    tasks.map(task => `${JSON.stringify(task)}\n`).join(''),
  )
  const words = [
    ...['roll', '--policy', `sglang:${policy.url}`, '--environment', 'single-turn'],
    ...['--model', join(process.cwd(), 'models/chatml-bytes'), '--reward', 'exact-match'],
    ...['--tasks', 'tasks.jsonl', '--group', '4', '--json'],
  ]
  const variables = server.variables
  const seconds = async (more: readonly string[]): Promise<number> => {
    const { child, finished } = start([...words, ...more], { folder, variables })
    const first = new Promise<number>(resolve =>
      child.stdout!.once('data', () => resolve(performance.now())),
    )
    const { code, stderr } = await finished
    if (code !== 0) throw new Error(stderr)
    // From the first group to the end: starting a process is no part of rolling.
    return (performance.now() - (await first)) / 1000
  }
  const alone = await seconds(['--concurrency', String(width), '--out', 'alone'])
  const clustered: { workers: number; seconds: number; perSecond: number }[] = []
  for (const workers of [1, 2, 4]) {
    const started = Array.from({ length: workers }, () =>
      start(['worker', '--cluster', server.address, '--concurrency', String(width)], {
        folder,
        variables,
      }),
    )
    await Promise.all(
      started.map(({ child }) => new Promise(resolve => child.stderr!.once('data', resolve))),
    )
    const took = await seconds(['--out', `on-${workers}`, '--cluster', server.address])
    clustered.push({ workers, seconds: took, perSecond: rollouts / took })
    for (const { child } of started) child.kill('SIGTERM')
    await Promise.all(started.map(({ finished }) => finished))
  }
  const overhead = ((clustered[0]!.seconds - alone) * 1000 * width) / rollouts
  return { alone, clustered, overhead }
}
