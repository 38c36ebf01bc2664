import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connectionOf } from '../../src/doors/cluster/address.ts'
import { type Database, openDatabase } from '../../src/doors/cluster/database.ts'
import { migrate } from '../../src/doors/cluster/schema.ts'
import { work } from '../../src/doors/cluster/worker.ts'
import { type Ran, runCommand } from '../command-line.ts'
import { writeSeeingModel } from '../seeing-model.ts'
import { until } from '../until.ts'
import { type JsonRow, scratch } from './cli.ts'
import type { TestServer } from './cluster.ts'

interface Step {
  readonly seconds: object
  readonly staleness: { readonly most: number }
}

/** Every command that takes a cluster, with two workers in this process. */
export function describeCommands(server: TestServer): void {
  const folder = scratch()
  const stop = new AbortController()
  const databases: Database[] = []
  let workers: Promise<unknown>
  const password = process.env.PGPASSWORD
  beforeAll(async () => {
    process.env.PGPASSWORD = server.url.password
    databases.push(...(await Promise.all([1, 2].map(() => openDatabase(connectionOf(server.url))))))
    await migrate(databases[0]!)
    const options = { concurrency: 4, tell: () => {}, signal: stop.signal }
    workers = Promise.all(databases.map(database => work(database, options)))
  })
  afterAll(async () => {
    stop.abort(new Error('the tests are over'))
    await workers
    for (const database of databases) await database[Symbol.asyncDispose]()
    if (password === undefined) delete process.env.PGPASSWORD
    else process.env.PGPASSWORD = password
  })

  const cluster = ['--cluster', server.address]
  const ran = async (...words: readonly string[]): Promise<Ran> => {
    const result = await runCommand(words)
    expect(result.code, result.stderr).toBe(0)
    return result
  }
  const metricsOf = (out: string): readonly Omit<Step, 'seconds'>[] =>
    readFileSync(join(folder, out, 'metrics.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map(line => {
        const { seconds: _, ...numbers } = JSON.parse(line) as Step
        return numbers
      })
  const train = async (out: string, ...more: readonly string[]): Promise<readonly object[]> => {
    await ran(
      ...['train', '--policy', 'embedded', '--environment', 'desk', '--tasks', '16'],
      ...['--steps', '2', '--tasks-per-step', '2', '--group', '2', '--held-out', '2'],
      ...['--max-turns', '3', '--max-new-tokens', '16', '--seed', '3', '--json'],
      ...['--out', join(folder, out), ...more],
    )
    return metricsOf(out)
  }

  describe('its commands', () => {
    it('[S1] train gives the numbers of one process: workers sample from the weights of each step', async () => {
      const alone = await train('alone')
      expect(await train('together', ...cluster)).toEqual(alone)
    })

    it('train with --max-staleness learns from nothing that is older', async () => {
      const steps = await train('stale', '--max-staleness', '1', ...cluster)
      const most = steps.map(step => (step as Step).staleness.most)
      expect(Math.max(...most)).toBeLessThanOrEqual(1)
    })

    it('[S1] eval gives the numbers of one process', async () => {
      const evaluate = async (out: string, ...more: readonly string[]): Promise<object> => {
        const words = ['--policy', 'embedded', '--environment', 'desk', '--tasks', '3']
        const limits = ['--max-turns', '3', '--max-new-tokens', '16', '--seed', '5']
        const rest = ['--out', join(folder, out), '--json', ...more]
        const { stdout } = await ran('eval', ...words, ...limits, ...rest)
        const { run: _, seconds: _seconds, ...numbers } = JSON.parse(stdout)
        return numbers
      }
      const alone = await evaluate('eval-alone')
      expect(await evaluate('eval-together', ...cluster)).toEqual(alone)
    })

    it('[P1] roll brings every image that a worker saw into the run, once, with the rows of one process', async () => {
      const model = join(folder, 'seeing')
      writeSeeingModel(model)
      const script = join(folder, 'moves.jsonl')
      const moves = ['down', 'right', 'up', 'left'].map(text => JSON.stringify({ text }))
      writeFileSync(script, moves.join('\n'))
      const seenIn = async (out: string, ...more: readonly string[]) => {
        const run = join(folder, out)
        const words = ['--environment', 'maze', '--tasks', '4', '--max-turns', '4', '--group', '2']
        const policy = ['--policy', `scripted:${script}`, '--model', model]
        await ran('roll', ...words, ...policy, '--out', run, '--json', ...more)
        const file = join(folder, `${out}.jsonl`)
        await ran('export', run, '--to', 'jsonl', '--out', file)
        const rows = readFileSync(file, 'utf8').replaceAll(new RegExp(`${out}(?=[".])`, 'g'), '')
        const images = readdirSync(join(run, 'images')).sort()
        return { rows, images, copies: readdirSync(`${file}.images`).sort() }
      }
      const alone = await seenIn('alone-seen')
      expect(alone.images.length).toBeGreaterThan(4)
      expect(alone.copies).toEqual(alone.images)
      expect(await seenIn('together-seen', ...cluster)).toEqual(alone)
      const segments = ['--segments', join(folder, 'segments')]
      expect(await seenIn('aside-seen', ...cluster, ...segments)).toEqual(alone)
    })

    it('rollouts answers a pause when the workers have stopped, and labels what follows', async () => {
      const port = await freePort()
      const answers = join(folder, 'answers.jsonl')
      writeFileSync(answers, `${JSON.stringify({ text: 'a' })}\n`)
      const leave = new AbortController()
      const words = ['--policy', `scripted:${answers}`, '--environment', 'single-turn']
      const service = runCommand(
        ['rollouts', ...words, '--group', '2', '--port', `${port}`, ...cluster],
        { signal: leave.signal },
      )
      const url = `http://127.0.0.1:${port}`
      await reachable(url)
      const ask = async (path: string, body?: object) => {
        const headers = { 'content-type': 'application/json' }
        const sent = body ? { method: 'POST', headers, body: JSON.stringify(body) } : {}
        return (await (await fetch(`${url}${path}`, sent)).json()) as Answer
      }
      const paused = { paused: true, seconds: 600 }
      expect(await ask('/v1/pause', {})).toEqual({ ...paused, version: null })
      await ask('/v1/rollouts', { id: 'one', tasks: [{ prompt: 'p', answer: 'a' }] })
      expect(await ask('/v1/weights', { version: 12 })).toEqual({ ...paused, version: 12 })
      expect((await ask('/v1/rollouts/one/groups?wait=0')).groups).toEqual([])
      expect((await ask('/v1/resume', {})).paused).toBe(false)
      const taken = await ask('/v1/rollouts/one/groups?wait=30')
      const versions = taken.groups?.flatMap(({ rows }) =>
        rows.map(row => row.versions.at(-1)?.[2]),
      )
      expect(versions, JSON.stringify(await ask('/v1/rollouts/one'))).toEqual([12, 12])
      leave.abort(new Error('enough'))
      await service
    })
  })
}

interface Answer {
  readonly paused?: boolean
  readonly version?: number | null
  readonly groups?: readonly { readonly rows: readonly Pick<JsonRow, 'versions'>[] }[]
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => probe.once('listening', resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise(resolve => probe.close(resolve))
  return port
}

async function reachable(url: string): Promise<void> {
  const isUp = (): Promise<boolean> =>
    fetch(`${url}/health`).then(
      answer => answer.ok,
      () => false,
    )
  await until(isUp)
}
