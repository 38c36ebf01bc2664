import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { scratch, start } from '../../test/end-to-end/cli.ts'
import type { TestServer } from '../../test/end-to-end/cluster.ts'
import { openFixedServer, sglangAnswer } from '../fixed-server.ts'
import { processSeconds } from './cpu.ts'

/** Rollouts per run against a slow server, and how many a worker makes at one time. */
const rollouts = 512
const width = 8
const latency = [250, 350] as const

/** How fast a run went. */
export interface Pace {
  readonly workers: number
  readonly seconds: number
  readonly perSecond: number
  /** Milliseconds of a core that the coordinator spends on each; `null` if unknown. */
  readonly coordinator: number | null
}

/** The same run in one process and on 1, 2 and 4 workers. */
export interface Scaling {
  readonly width: number
  readonly alone: Pace
  readonly clustered: readonly Pace[]
  /** Milliseconds that an attempt takes longer on one worker than in one process. */
  readonly overhead: number
}

/** Rolls against a server with latency. */
export async function scale(server: TestServer): Promise<Scaling> {
  const folder = scratch()
  const ids = [...'the answer is 4'].map(letter => letter.charCodeAt(0))
  await using policy = await openFixedServer(sglangAnswer([...ids, 258]), latency)
  writeTasks(folder)
  const words = [
    ...['roll', '--policy', `sglang:${policy.url}`, '--environment', 'single-turn'],
    ...['--model', join(process.cwd(), 'models/chatml-bytes'), '--reward', 'exact-match'],
    ...['--tasks', 'tasks.jsonl', '--group', '4', '--json'],
  ]
  const { variables } = server
  const roll = async (workers: number, more: readonly string[]): Promise<Pace> =>
    await paceOf(workers, start([...words, ...more], { folder, variables }))
  const alone = await roll(0, ['--concurrency', String(width), '--out', 'alone'])
  const clustered: Pace[] = []
  for (const workers of [1, 2, 4]) {
    const crew = await startCrew(server, folder, workers)
    clustered.push(await roll(workers, ['--out', `on-${workers}`, '--cluster', server.address]))
    for (const { child } of crew) child.kill('SIGTERM')
    await Promise.all(crew.map(({ finished }) => finished))
  }
  const overhead = ((clustered[0]!.seconds - alone.seconds) * 1000 * width) / rollouts
  return { width, alone, clustered, overhead }
}

function writeTasks(folder: string): void {
  const tasks = Array.from({ length: rollouts / 4 }, (_, id) => ({ id, prompt: 'p', answer: 'x' }))
  const lines = tasks.map(task => `${JSON.stringify(task)}\n`)
  writeFileSync(join(folder, 'tasks.jsonl'), lines.join(''))
}

async function startCrew(server: TestServer, folder: string, count: number) {
  const words = ['worker', '--cluster', server.address, '--concurrency', String(width)]
  const { variables } = server
  const crew = Array.from({ length: count }, () => start(words, { folder, variables }))
  await Promise.all(
    crew.map(({ child }) => new Promise(resolve => child.stderr!.once('data', resolve))),
  )
  return crew
}

/** Measured from the first group to the end, without starting processes. */
async function paceOf(
  workers: number,
  { child, finished }: ReturnType<typeof start>,
): Promise<Pace> {
  const used = (): number | null => processSeconds(child.pid!)
  let first: { readonly time: number; readonly cpu: number | null } | undefined
  let groups = 0
  let cpu: number | null = null
  child.stdout!.on('data', (chunk: Buffer) => {
    first ??= { time: performance.now(), cpu: used() }
    groups += chunk.toString().split('\n').length - 1
    cpu = used() ?? cpu
  })
  const { code, stderr } = await finished
  if (code !== 0 || !first || groups === 0) throw new Error(stderr)
  const seconds = (performance.now() - first.time) / 1000
  const spent = cpu === null || first.cpu === null ? null : cpu - first.cpu
  return {
    workers,
    seconds,
    perSecond: rollouts / seconds,
    coordinator: spent === null ? null : (spent * 1000) / rollouts,
  }
}
