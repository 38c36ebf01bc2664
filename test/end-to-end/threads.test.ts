import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { scratch, start } from './cli.ts'
import { rollWords, rowsOf, writeShop } from './cluster.ts'

const tasks = Array.from({ length: 24 }, (_, index) => ({
  id: `t${index}`,
  wanted: 1 + (index % 5),
}))

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
  const folder = scratch()
  writeShop(folder, tasks)
  const roll = (out: string, threads: number) =>
    start([...rollWords(4, out), '--threads', String(threads)], { folder })
  const one = await roll('one', 1).finished
  expect(one.code, one.stderr).toBe(0)
  const three = await roll('three', 3).finished
  expect(three.code, three.stderr).toBe(0)
  const killed = roll('killed', 2)
  await printed(killed, 3)
  killed.child.kill('SIGKILL')
  await killed.finished
  const resumed = await start(['resume', 'killed', '--threads', '2'], { folder }).finished
  expect(resumed.code, resumed.stderr).toBe(0)
  const rows = await rowsOf(folder, 'one')
  expect(rows.split('\n')).toHaveLength(tasks.length * 4 + 1)
  expect((await rowsOf(folder, 'three')) === rows).toBe(true)
  expect((await rowsOf(folder, 'killed')) === rows).toBe(true)
  const { workers } = JSON.parse(readFileSync(join(folder, 'three', 'report.json'), 'utf8'))
  expect(workers.map((worker: { thread: number }) => worker.thread)).toEqual([1, 2, 3])
}, 180_000)

it('S2: a thread that ends by itself costs its attempts, which are made again', async () => {
  const folder = scratch()
  const some = tasks.slice(0, 3)
  writeShop(folder, some)
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
  const folder = scratch()
  writeShop(folder, tasks)
  const words = [...rollWords(1, 'run'), '--threads', '2', '--record', 'cassette.jsonl']
  const { code, stderr } = await start(words, { folder }).finished
  expect(code).toBe(2)
  expect(stderr).toContain('--threads 2: record is about every sample of the run')
})
