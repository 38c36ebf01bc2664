import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { espalier, start } from './cli.ts'
import {
  disturbances,
  openShop,
  openTestServer,
  rollDisturbed,
  rollWords,
  rowsOf,
  startWorker,
} from './cluster.ts'
import { describeCommands } from './cluster-commands.ts'
import { describeOutage } from './cluster-outage.ts'
import { describeQueue } from './cluster-queue.ts'
import { describeTurns } from './cluster-turns.ts'
import { describeWorkers } from './cluster-workers.ts'

const server = await openTestServer()
afterAll(() => server[Symbol.asyncDispose]())

const tasks = 24
const group = 4

async function ask(text: string): Promise<readonly unknown[]> {
  const client = new Client({ connectionString: server.url.href })
  await client.connect()
  const { rows } = await client.query(text)
  await client.end()
  return rows
}

describe('a cluster', () => {
  describe('by its tables', () => describeQueue(server))
  describe('in one process', () => describeWorkers(server))
  describe('cut off', () => describeOutage(server))
  describe('with segments', () => describeTurns(server))
  describe('for its users', () => describeCommands(server))

  it('[P1][S1] whose workers, coordinator and database are struck down gives the rows of one process', async () => {
    const folder = openShop(tasks)
    const one = await start(rollWords(group, 'one'), { folder }).finished
    expect(one.code, one.stderr).toBe(0)
    const plan = disturbances(3, tasks, ['worker', 'coordinator', 'database', 'worker'])
    const words = rollWords(group, 'many')
    const many = await rollDisturbed(server, { folder, words, run: 'many', workers: 4, plan })
    expect([many.code, many.kills], many.stderr).toEqual([0, plan.length])
    expect((await rowsOf(folder, 'many')) === (await rowsOf(folder, 'one')), many.stderr).toBe(true)
    expect(await ask('SELECT id FROM espalier.run')).toEqual([])
    expect(await ask('SELECT id FROM espalier.attempt')).toEqual([])
    for (const name of readdirSync(join(folder, 'many'))) {
      const text = readFileSync(join(folder, 'many', name), 'latin1')
      expect(text.includes(server.url.password), name).toBe(false)
    }
  }, 120_000)

  it('[O1] gives a task up that kills whoever rolls it, with its reason, and ends', async () => {
    const folder = openShop(3)
    const lines = readFileSync(join(folder, 'tasks.jsonl'), 'utf8').trim().split('\n')
    const poisoned = JSON.stringify({ ...JSON.parse(lines[1]!), poison: true })
    writeFileSync(join(folder, 'tasks.jsonl'), [lines[0], poisoned, lines[2], ''].join('\n'))
    const variables = server.variables
    const coordinator = start([...rollWords(1, 'run'), '--cluster', server.address], {
      folder,
      variables,
    })
    let isOver = false
    void coordinator.finished.then(() => (isOver = true))
    while (!isOver) {
      const worker = startWorker(server, folder, { lease: 1 })
      void coordinator.finished.then(() => worker.child.kill('SIGTERM'))
      await worker.finished
    }
    const { code, stderr } = await coordinator.finished
    expect(code, stderr).toBe(0)
    const shown = await espalier('show', join(folder, 'run'), '--json')
    const groups = shown.stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(groups.map(each => each.unscored.length)).toEqual([0, 1, 0])
    expect(groups[1].unscored[0].outcome).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('4 workers died'),
    })
    // One coordinator saw all of it, so its report names who worked.
    const { workers } = JSON.parse(readFileSync(join(folder, 'run', 'report.json'), 'utf8'))
    expect(workers.length).toBeGreaterThan(0)
  }, 120_000)
})
