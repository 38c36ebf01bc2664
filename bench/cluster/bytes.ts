import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { scratch, start } from '../../test/end-to-end/cli.ts'
import type { TestServer } from '../../test/end-to-end/cluster.ts'
import { openCpu, processSeconds } from './cpu.ts'

/** What a rollout costs once everything is warm. */
export interface Carried {
  /** Kilobytes of its tree in the journal. */
  readonly size: number
  /** Whether trees lie in segments. */
  readonly segments: boolean
  readonly perSecond: number
  /** Milliseconds of a core that the coordinator and the database spend on each; null if unknown. */
  readonly coordinator: number | null
  readonly database: number | null
}

const [groups, members, warm] = [120, 8, 30]

/** A world whose opening is as long as is asked for. */
const world = `
import { environment } from 'espalier'
import { z } from 'zod'
export const long = environment({
  name: 'long',
  task: z.object({ letters: z.int() }),
  open: ({ data }) => ({
    opening: [{ role: 'user', content: 'pear '.repeat(data.letters / 5) }],
    tools: {},
    report: () => ({}),
  }),
  reward: { one: ({ task }) => task.id.length % 2 },
})
`

/** A run with short and with long trees, these through the table and in segments. */
export async function byBytes(server: TestServer): Promise<readonly Carried[]> {
  return [
    await carry(server, 1600, false),
    await carry(server, 43_000, false),
    await carry(server, 43_000, true),
  ]
}

async function carry(server: TestServer, letters: number, segments: boolean): Promise<Carried> {
  const folder = scratch()
  const lines = (values: readonly object[]): string =>
    values.map(value => `${JSON.stringify(value)}\n`).join('')
  const tasks = Array.from({ length: groups }, (_, id) => ({ id: `t${id}`, letters }))
  writeFileSync(join(folder, 'long.ts'), world)
  writeFileSync(join(folder, 'tasks.jsonl'), lines(tasks))
  writeFileSync(join(folder, 'answers.jsonl'), lines([{ text: 'done' }]))
  const { variables } = server
  const workers = Array.from({ length: 2 }, () =>
    start(['worker', '--cluster', server.address, '--concurrency', '64'], { folder, variables }),
  )
  const words = [
    ...['roll', '--policy', 'scripted:answers.jsonl', '--environment', './long.ts#long'],
    ...['--tasks', 'tasks.jsonl', '--group', String(members), '--out', 'run', '--json'],
    ...['--max-new-tokens', '64', '--max-context', '100000', '--cluster', server.address],
    ...(segments ? ['--segments', 'segments'] : []),
  ]
  const measured = await measure(server, start(words, { folder, variables }))
  for (const { child } of workers) child.kill('SIGTERM')
  await Promise.all(workers.map(({ finished }) => finished))
  rmSync(folder, { recursive: true, force: true })
  return { size: Math.round((letters * 5.1) / 1000), segments, ...measured }
}

/** Measured from the group on from which everything is warm. */
async function measure(
  server: TestServer,
  { child, finished }: ReturnType<typeof start>,
): Promise<Omit<Carried, 'size' | 'segments'>> {
  const used = (): number | null => processSeconds(child.pid!)
  let begun:
    | { readonly time: number; readonly cpu: number | null; readonly groups: number }
    | undefined
  let database: ReturnType<typeof openCpu> | undefined
  let done = 0
  let ended = { time: 0, cpu: null as number | null, database: null as number | null }
  child.stdout!.on('data', (chunk: Buffer) => {
    done += chunk.toString().split('\n').length - 1
    if (!begun && done >= warm) {
      begun = { time: performance.now(), cpu: used(), groups: done }
      database = openCpu(server)
    } else if (begun) {
      const count = (done - begun.groups) * members
      ended = { time: performance.now(), cpu: used(), database: database!.spent(count) }
    }
  })
  const { code, stderr } = await finished
  if (code !== 0 || !begun) throw new Error(stderr)
  const count = (done - begun.groups) * members
  const spent = ended.cpu === null || begun.cpu === null ? null : ended.cpu - begun.cpu
  return {
    perSecond: count / ((ended.time - begun.time) / 1000),
    coordinator: spent === null ? null : (spent * 1000) / count,
    database: ended.database,
  }
}
