import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { random, seedOf } from '../../src/base/math/random.ts'
import { folderOf, openLocalServer } from '../../src/doors/cluster/local.ts'
import type { Announced } from '../../src/doors/cluster/run-row.ts'
import { until } from '../until.ts'
import { espalier, type Finished, type Started, scratch, start } from './cli.ts'

/** A PostgreSQL server that can be shut down and started again. */
export interface TestServer extends AsyncDisposable {
  readonly url: URL
  /** The address without the password, and the variables that hold it. */
  readonly address: string
  readonly variables: Readonly<Record<string, string>>
  /** Where it keeps its data. */
  readonly folder: string
  restart(): Promise<void>
}

/** Starts a server of its own for one test. */
export async function openTestServer(folder = folderOf(undefined)): Promise<TestServer> {
  let server = await openLocalServer(folder)
  const { url } = server
  return {
    url,
    folder,
    address: `postgres://espalier@127.0.0.1:${url.port}/postgres`,
    variables: { PGPASSWORD: url.password },
    async restart() {
      await server.close()
      server = await openLocalServer(folder, { port: Number(url.port) })
    },
    async [Symbol.asyncDispose]() {
      await server.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** What is announced of a run that nobody opens. */
export const unopened = (name: string): Announced => ({
  name,
  config: { settings: {}, today: '' },
  fingerprint: { code: {}, opened: {} },
})

/** A world that takes a while to answer, so that there is something to interrupt. */
const shop = `
import { environment, tool } from 'espalier'
import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
export const shop = environment({
  name: 'shop',
  task: z.object({ wanted: z.int(), poison: z.boolean().optional() }),
  async open({ data }) {
    if (data.poison && process.argv.includes('worker')) process.kill(process.pid, 'SIGKILL')
    let left = 9
    const execute = async ({ pears }) => {
      await wait(60)
      return (left -= pears)
    }
    const sell = tool({ inputSchema: z.object({ pears: z.int() }), execute })
    const opening = [{ role: 'user', content: \`Sell \${data.wanted} pears.\` }]
    return { opening, tools: { sell }, report: () => ({ left }) }
  },
  reward: { right: ({ task: { data }, report }) => Number(report.left === 9 - data.wanted) },
})
`

/** Writes an environment, its tasks and a script of answers into a folder. */
export function writeShop(folder: string, tasks: readonly { id: string; wanted: number }[]): void {
  const lines = (values: readonly object[]): string =>
    values.map(value => `${JSON.stringify(value)}\n`).join('')
  const call = (pears: number): string =>
    `<tool_call>\n{"name": "sell", "arguments": {"pears": ${pears}}}\n</tool_call>`
  const answers = tasks.flatMap(({ id, wanted }, index) => [
    { task: id, text: call(wanted - (index % 2)) },
    { task: id, text: 'sold' },
  ])
  writeFileSync(join(folder, 'shop.ts'), shop)
  writeFileSync(join(folder, 'tasks.jsonl'), lines(tasks))
  writeFileSync(join(folder, 'answers.jsonl'), lines(answers))
}

/** The words that roll the shop of a folder. */
export function rollWords(group: number, out: string): readonly string[] {
  return [
    ...['roll', '--policy', 'scripted:answers.jsonl', '--environment', './shop.ts#shop'],
    ...['--tasks', 'tasks.jsonl', '--group', String(group), '--out', out, '--json'],
  ]
}

/** The exported rows of a run, without its name. */
export async function rowsOf(folder: string, run: string): Promise<string> {
  const out = join(folder, `${run}.jsonl`)
  const { code, stderr } = await espalier(
    'export',
    join(folder, run),
    '--to',
    'jsonl',
    '--out',
    out,
  )
  if (code !== 0) throw new Error(stderr)
  return readFileSync(out, 'utf8').replaceAll(/"run":"[^"]*",/g, '')
}

/** Starts a worker of a server, in one thread or in several. */
export function startWorker(
  server: TestServer,
  folder: string,
  { lease = 2, threads = 1, concurrency = 4 } = {},
): Started {
  const words = ['worker', '--cluster', server.address, '--concurrency', `${concurrency}`]
  if (threads > 1) words.push('--threads', String(threads))
  return start([...words, '--lease', String(lease)], { folder, variables: server.variables })
}

/** What disturbs a run, and how many groups of it are printed before. */
export interface Disturbed {
  readonly at: number
  readonly kind: 'worker' | 'coordinator' | 'database'
}

/** As many disturbances as are wanted, at seeded places of a run of so many groups. */
export function disturbances(seed: number, groups: number, kinds: readonly Disturbed['kind'][]) {
  const draw = random(seedOf(seed, 'cluster chaos'))
  const each = (0.75 * groups) / (kinds.length + 1)
  return kinds.map((kind, index) => ({ kind, at: Math.floor(each * (index + 0.5 + draw())) }))
}

/** Rolls on workers that are killed, with a coordinator that is killed, over a database that restarts. */
export async function rollDisturbed(
  server: TestServer,
  { folder, words, run, workers: count, plan }: DisturbedRun,
): Promise<Finished & { readonly kills: number }> {
  const startAt = (place: number) => startWorker(server, folder, { threads: 1 + (place % 2) })
  const workers = Array.from({ length: count }, (_, place) => startAt(place))
  const options = { folder, variables: server.variables }
  let coordinator = start([...words, '--cluster', server.address], options)
  let kills = 0
  const done = (): number => finishedGroups(join(folder, run))
  for (const { at, kind } of plan) {
    const isThere = (): boolean => done() >= at
    if (!(await until(isThere, () => hasEnded(coordinator)))) break
    kills++
    if (kind === 'database') await server.restart()
    else if (kind === 'worker') {
      const place = kills % count
      workers[place]!.child.kill('SIGKILL')
      workers[place] = startAt(place)
    } else {
      coordinator.child.kill('SIGKILL')
      await coordinator.finished
      coordinator = start(['resume', run, '--cluster', server.address], options)
    }
  }
  const finished = await coordinator.finished
  for (const { child } of workers) child.kill('SIGTERM')
  await Promise.all(workers.map(worker => worker.finished))
  return { ...finished, kills }
}

/** What is rolled, and what happens to it. */
export interface DisturbedRun {
  readonly folder: string
  readonly words: readonly string[]
  /** The run folder, as seen from the other one. */
  readonly run: string
  readonly workers: number
  readonly plan: readonly Disturbed[]
}

/** The groups that a run has finished so far, whoever coordinated it. */
export function finishedGroups(run: string): number {
  const path = join(run, 'events.jsonl')
  return existsSync(path) ? readFileSync(path, 'utf8').split('"kind":"group-end"').length - 1 : 0
}

/** Whether a program has ended. */
export function hasEnded({ child }: Started): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

/** A folder with a shop of so many tasks. */
export function openShop(tasks: number): string {
  const folder = resolve(scratch())
  writeShop(
    folder,
    Array.from({ length: tasks }, (_, index) => ({ id: `t${index}`, wanted: 1 + (index % 5) })),
  )
  return folder
}
