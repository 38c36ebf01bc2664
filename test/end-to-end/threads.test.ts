import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { sglangAnswer } from '../../bench/fixed-server.ts'
import { type JsonRow, scratch, start } from './cli.ts'
import { rollWords, rowsOf, writeShop } from './cluster.ts'

const tasks = Array.from({ length: 24 }, (_, index) => ({
  id: `t${index}`,
  wanted: 1 + (index % 5),
}))

/** One shop for all that is not interrupted for good. */
const folder = scratch()
writeShop(folder, tasks)
const roll = (out: string, ...more: readonly string[]) =>
  start([...rollWords(4, out), ...more], { folder })

/** The rows of a run in one thread, rolled once. */
let one: Promise<string> | undefined
async function rowsOfOne(): Promise<string> {
  const { code, stderr } = await roll('one', '--threads', '1').finished
  expect(code, stderr).toBe(0)
  return await rowsOf(folder, 'one')
}

/** A run that is still under way when it is interrupted: a few attempts at a time. */
const slowly = (out: string) => roll(out, '--threads', '2', '--concurrency', '8')

/** Resolves when a program has printed so many lines. */
function printed({ child }: ReturnType<typeof start>, lines: number): Promise<void> {
  return new Promise(resolve => {
    let seen = 0
    child.stdout!.on('data', (chunk: Buffer) => {
      seen += chunk.toString().split('\n').length - 1
      if (seen >= lines) resolve()
    })
    child.on('close', () => resolve())
  })
}

it('S2: the same rows on one thread and on three, also after kill -9 and resume', async () => {
  one ??= rowsOfOne()
  const rows = await one
  const three = await roll('three', '--threads', '3').finished
  expect(three.code, three.stderr).toBe(0)
  const killed = slowly('killed')
  await printed(killed, 3)
  killed.child.kill('SIGKILL')
  await killed.finished
  const resumed = await start(['resume', 'killed', '--threads', '2'], { folder }).finished
  expect(resumed.code, resumed.stderr).toBe(0)
  expect(rows.split('\n')).toHaveLength(tasks.length * 4 + 1)
  expect((await rowsOf(folder, 'three')) === rows).toBe(true)
  expect((await rowsOf(folder, 'killed')) === rows).toBe(true)
  const { workers } = JSON.parse(readFileSync(join(folder, 'three', 'report.json'), 'utf8'))
  expect(workers.map((worker: { thread: number }) => worker.thread)).toEqual([1, 2, 3])
}, 180_000)

it('S2: Ctrl-C ends threads with what is finished kept; resume makes the same rows', async () => {
  one ??= rowsOfOne()
  const stopped = slowly('stopped')
  await printed(stopped, 3)
  stopped.child.kill('SIGINT')
  const { code, stderr } = await stopped.finished
  expect(code, stderr).toBe(130)
  const resumed = await start(['resume', 'stopped', '--threads', '2'], { folder }).finished
  expect(resumed.code, resumed.stderr).toBe(0)
  expect((await rowsOf(folder, 'stopped')) === (await one)).toBe(true)
}, 180_000)

it('S2: a budget is not overspent by threads', async () => {
  const limits = ['--max-new-tokens', '40', '--max-turns', '3', '--budget', '{"tokens":1500}']
  const { code, stdout, stderr } = await roll('budget', '--threads', '3', ...limits).finished
  expect(code, stderr).toBe(0)
  const { sampledTokens, stopped } = JSON.parse(stdout.trim().split('\n').at(-1)!)
  expect(stopped).toContain('the budget of 1500 tokens is spent')
  // An attempt that has begun is lent all that it may take: what is left is less than that.
  expect(sampledTokens).toBeGreaterThan(1500 - 3 * 40)
  expect(sampledTokens).toBeLessThanOrEqual(1500)
}, 180_000)

it('S2: eval on threads says of every task what it came to', async () => {
  const shop = ['--policy', 'scripted:answers.jsonl', '--environment', './shop.ts#shop']
  const words = ['eval', ...shop, '--tasks', 'tasks.jsonl', '--out', 'eval', '--json']
  const { code, stdout, stderr } = await start([...words, '--threads', '2'], { folder }).finished
  expect(code, stderr).toBe(0)
  const { byTask } = JSON.parse(stdout)
  const rewards = new Map(byTask.map(({ task, rewards: own }: TaskResult) => [task, own]))
  // Every second answer sells one pear too few.
  expect(rewards).toEqual(new Map(tasks.map(({ id }, index) => [id, [1 - (index % 2)]])))
}, 180_000)

interface TaskResult {
  readonly task: string
  readonly rewards: readonly number[]
}

const trainer = `
import { mkdir } from 'node:fs/promises'
let version = 0
export const counting = {
  name: 'counting',
  async step(groups) {
    const nodes = groups.flatMap(({ members }) => members.map(({ tree }) => tree.nodes.length))
    return { version: ++version, metrics: { nodes: nodes.reduce((sum, each) => sum + each, 0) } }
  },
  save: async folder => void (await mkdir(folder, { recursive: true })),
  load: async () => ({ version: 0 }),
  [Symbol.asyncDispose]: async () => {},
}
`

it('S2: train with a server gives its trainer the trees that threads have made', async () => {
  const answer = JSON.stringify(sglangAnswer([97, 258]))
  const server = createServer((_request, response) => response.end(answer)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const questions = tasks.map(({ id }) => JSON.stringify({ id, prompt: id, answer: 'a' }))
  writeFileSync(join(folder, 'questions.jsonl'), questions.join('\n'))
  writeFileSync(join(folder, 'trainer.ts'), trainer)
  const model = join(import.meta.dirname, '../../models/chatml-bytes')
  const { code, stderr } = await start(
    [
      ...['train', '--policy', `sglang:http://127.0.0.1:${port}`, '--model', model],
      ...['--trainer', './trainer.ts#counting', '--environment', 'single-turn'],
      ...['--tasks', 'questions.jsonl', '--steps', '2', '--tasks-per-step', '2', '--group', '2'],
      ...['--held-out', '1', '--out', 'train', '--threads', '2'],
    ],
    { folder },
  ).finished
  server.closeAllConnections()
  server.close()
  expect(code, stderr).toBe(0)
  const steps = readFileSync(join(folder, 'train', 'metrics.jsonl'), 'utf8')
    .trim()
    .split('\n')
  // Each of four members has a root, a prompt and a sample.
  expect(steps.map(line => JSON.parse(line))).toMatchObject([
    { step: 1, version: 1, reward: 1, nodes: 12 },
    { step: 2, version: 2, reward: 1, nodes: 12 },
  ])
}, 180_000)

it('S2: rollouts answers a pause when its threads have stopped, and labels what follows', async () => {
  writeFileSync(join(folder, 'a.jsonl'), JSON.stringify({ text: 'a' }))
  const words = ['rollouts', '--policy', 'scripted:a.jsonl', '--environment', 'single-turn']
  const more = ['--group', '2', '--port', '0', '--json', '--threads', '2']
  const { child, finished } = start([...words, ...more], { folder })
  const [line] = (await once(child.stdout!, 'data')) as [Buffer]
  const { url } = JSON.parse(line.toString()) as { url: string }
  const headers = { 'content-type': 'application/json' }
  const post = async (path: string, body: object): Promise<object> => {
    const sent = { method: 'POST', headers, body: JSON.stringify(body) }
    return (await (await fetch(`${url}/v1/${path}`, sent)).json()) as object
  }
  const paused = { paused: true, seconds: 600 }
  expect(await post('pause', {})).toEqual({ ...paused, version: null })
  await post('rollouts', { id: 'one', tasks: [{ prompt: 'p', answer: 'a' }] })
  expect(await post('weights', { version: 12 })).toEqual({ ...paused, version: 12 })
  expect(await post('resume', {})).toMatchObject({ paused: false })
  const taken = await (await fetch(`${url}/v1/rollouts/one/groups?wait=60`)).json()
  const { groups } = taken as { groups: readonly { readonly rows: readonly JsonRow[] }[] }
  const versions = groups.flatMap(({ rows }) => rows.map(row => row.versions.at(-1)?.[2]))
  expect(versions).toEqual([12, 12])
  child.kill('SIGINT')
  expect((await finished).code).toBe(0)
}, 180_000)

it('S2: a thread that ends by itself costs its attempts, which are made again', async () => {
  const folder = scratch()
  writeShop(folder, tasks.slice(0, 3))
  const shop = readFileSync(join(folder, 'shop.ts'), 'utf8').replace(
    "if (data.poison && process.argv.includes('worker')) process.kill(process.pid, 'SIGKILL')",
    "if (!isMainThread && !existsSync('died')) {\n writeFileSync('died', '')\n process.exit(3)\n }",
  )
  const imports = [
    "import { existsSync, writeFileSync } from 'node:fs'",
    "import { isMainThread } from 'node:worker_threads'",
  ]
  writeFileSync(join(folder, 'shop.ts'), [...imports, shop].join('\n'))
  const { finished } = start([...rollWords(1, 'run'), '--threads', '2'], { folder })
  const { code, stdout, stderr } = await finished
  expect(code, stderr).toBe(0)
  expect(existsSync(join(folder, 'died'))).toBe(true)
  expect(JSON.parse(stdout.trim().split('\n').at(-1)!).outcomes).toEqual({ completed: 3 })
}, 180_000)

it('what cannot spread is refused in words', async () => {
  const words = [...rollWords(1, 'run'), '--threads', '2', '--record', 'cassette.jsonl']
  const { code, stderr } = await start(words, { folder }).finished
  expect(code).toBe(2)
  expect(stderr).toContain('--threads 2: record is about every sample of the run')
})
