import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connectionOf } from '../src/doors/cluster/address.ts'
import { openDatabase } from '../src/doors/cluster/database.ts'
import { type Started, scratch, start } from '../test/end-to-end/cli.ts'
import { openTestServer, rowsOf, type TestServer } from '../test/end-to-end/cluster.ts'
import { openCpu } from './cluster/cpu.ts'
import { type Expectation, missedOf } from './expectation.ts'
import { openFixedServer, sglangAnswer } from './fixed-server.ts'

/** Attempts at one time, all of them, and the processes that make them: `FLEET_ATTEMPTS` and `FLEET_WORKERS` say otherwise. */
const attempts = Number(process.env.FLEET_ATTEMPTS ?? 10_000)
const count = Number(process.env.FLEET_WORKERS ?? 4)
const group = 8
/** Milliseconds that the policy's server takes. */
const latency = [8000, 24_000] as const

interface Figures {
  readonly role: string
  readonly late: number
  readonly memory: number
  readonly cpu: number
}

/** A run on workers, all of whose attempts wait for the server at one time; two workers are killed meanwhile. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  await using server = await openTestServer()
  const letters = [...'the answer is 4'].map(letter => letter.charCodeAt(0))
  await using policy = await openFixedServer(sglangAnswer([...letters, 258]), latency)
  const folder = scratch()
  const figures = join(folder, 'figures')
  mkdirSync(figures)
  const tasks = Array.from({ length: attempts / group }, (_, id) => ({
    id,
    prompt: 'p',
    answer: 'x',
  }))
  writeFileSync(
    join(folder, 'tasks.jsonl'),
    tasks.map(task => `${JSON.stringify(task)}\n`).join(''),
  )
  const watch = fileURLToPath(new URL('./fleet/watch.mjs', import.meta.url))
  const variables = {
    ...server.variables,
    FLEET_FIGURES: figures,
    NODE_OPTIONS: `--import ${watch} ${process.env.NODE_OPTIONS ?? ''}`,
  }
  const words = [
    ...['roll', '--policy', `sglang:${policy.url}`, '--environment', 'single-turn'],
    ...['--model', join(process.cwd(), 'models/chatml-bytes'), '--reward', 'exact-match'],
    ...['--tasks', 'tasks.jsonl', '--group', String(group), '--json', '--outage', '600'],
    ...['--deadline', '600', '--concurrency', String(attempts)],
  ]
  const alone = await start([...words, '--out', 'alone'], { folder, variables }).finished
  if (alone.code !== 0) throw new Error(alone.stderr)
  const one = figuresIn(figures)[0]!
  const fleet = await rollOnFleet(server, { folder, variables, words })
  const isSame = (await rowsOf(folder, 'alone')) === (await rowsOf(folder, 'fleet'))
  const all = figuresIn(figures)
  const roll = all.filter(({ role }) => role === 'roll').find(each => each.cpu !== one.cpu)!
  const workers = all.filter(({ role }) => role === 'worker')
  rmSync(folder, { recursive: true, force: true })
  const sum = (each: readonly Figures[], of: 'cpu' | 'memory'): number =>
    each.reduce((total, figure) => total + figure[of], 0)
  const told = {
    attempts,
    workers: count,
    killed: fleet.killed,
    isSame,
    seconds: fleet.seconds,
    most: fleet.most,
    alone: { cpu: one.cpu / attempts, memory: one.memory, late: one.late },
    coordinator: { cpu: roll.cpu / attempts, memory: roll.memory, late: roll.late },
    worker: {
      cpu: sum(workers, 'cpu') / attempts,
      memory: Math.round(sum(workers, 'memory') / workers.length),
      late: Math.max(...workers.map(({ late }) => late)),
    },
    database: fleet.database,
  }
  if (!json) show(told)
  const expectations: readonly Expectation[] = [
    { what: 'rows are those of one process (1)', value: Number(isSame), atLeast: 1 },
    {
      what: 'share of the attempts that ran at one time',
      value: fleet.most / attempts,
      atLeast: 0.9,
    },
  ]
  return { ...told, missed: missedOf(expectations) }
}

interface FleetRun {
  readonly folder: string
  readonly variables: Readonly<Record<string, string>>
  readonly words: readonly string[]
}

async function rollOnFleet(server: TestServer, { folder, variables, words }: FleetRun) {
  const width = String(Math.ceil(attempts / count))
  const one = (): Started =>
    start(['worker', '--cluster', server.address, '--concurrency', width, '--lease', '20'], {
      folder,
      variables,
    })
  const workers = Array.from({ length: count }, one)
  const cpu = openCpu(server)
  const began = performance.now()
  const run = start([...words, '--out', 'fleet', '--cluster', server.address], {
    folder,
    variables,
  })
  let most = 0
  let killed = 0
  let groups = 0
  run.child.stdout!.on('data', (chunk: Buffer) => {
    groups += chunk.toString().split('\n').length - 1
    const due = Math.floor((groups * 4 * group) / attempts)
    if (due <= killed || killed >= 2) return
    workers[killed]!.child.kill('SIGKILL')
    workers[killed++] = one()
  })
  await using database = await openDatabase(connectionOf(server.url), { connections: 1 })
  const look = async (): Promise<void> => {
    const [row] = await database.query<{ running: number }>(
      'SELECT coalesce(sum(running), 0)::integer AS running FROM espalier.worker WHERE NOT lost',
    )
    most = Math.max(most, row?.running ?? 0)
  }
  const looking = setInterval(() => void look().catch(() => undefined), 1000)
  const { code, stderr } = await run.finished
  clearInterval(looking)
  if (code !== 0) throw new Error(stderr)
  const seconds = (performance.now() - began) / 1000
  const spent = cpu.spent(attempts)
  for (const { child } of workers) child.kill('SIGTERM')
  await Promise.all(workers.map(({ finished }) => finished))
  return { seconds, killed, most, database: spent }
}

const figuresIn = (folder: string): readonly Figures[] =>
  readdirSync(folder)
    .map(name => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Figures)
    .filter(({ role }) => role === 'roll' || role === 'worker')

interface Told {
  readonly attempts: number
  readonly workers: number
  readonly killed: number
  readonly isSame: boolean
  readonly seconds: number
  readonly most: number
  readonly alone: Omit<Figures, 'role'>
  readonly coordinator: Omit<Figures, 'role'>
  readonly worker: Omit<Figures, 'role'>
  readonly database: number | null
}

function show(told: Told): void {
  const { workers, most, seconds, killed, isSame, database } = told
  console.log(
    `${told.attempts} attempts on ${workers} workers, ${most} at one time, ${seconds.toFixed(0)} s, ${killed} workers killed`,
  )
  console.log(`rows ${isSame ? 'equal to' : 'DIFFERENT from'} those of one process`)
  for (const [name, { cpu, memory, late }] of Object.entries({
    'one process': told.alone,
    coordinator: told.coordinator,
    'a worker': told.worker,
  })) {
    console.log(
      `${name}  ${cpu.toFixed(2)} ms of processor time per turn (start included), ${memory} MB, event loop late by ${late.toFixed(0)} ms (99th of 100)`,
    )
  }
  if (database !== null) console.log(`database  ${database.toFixed(2)} ms of a core per turn`)
}
