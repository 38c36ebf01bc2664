import { readFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CurvePoint } from './curves.ts'
import { openNamedTracker } from './open-tracker.ts'
import { sendJson } from './post-json.ts'
import { openTracker, type TrackedRun, type TrackerService } from './tracker.ts'

interface Asked {
  readonly method: string
  readonly path: string
  readonly authorization: string | undefined
  readonly body: Body
}

/** What is looked at of a message. */
interface Body {
  readonly variables: Readonly<Record<string, string>>
  readonly files?: Readonly<
    Record<string, { readonly offset: number; readonly content: readonly string[] }>
  >
  readonly metrics?: readonly {
    readonly key: string
    readonly value: number
    readonly step: number
  }[]
  readonly params?: readonly object[]
}

let server: Server
let url = ''
let asked: Asked[] = []
let answer: (asked: Asked) => object | number = () => ({})
let run: TrackedRun

beforeEach(async () => {
  asked = []
  server = createServer(async (request, response) => {
    const text = (await request.toArray()).join('')
    const { method = '', url: path = '', headers } = request
    const seen = {
      method,
      path,
      authorization: headers.authorization,
      body: text === '' ? {} : JSON.parse(text),
    }
    asked.push(seen)
    const found = answer(seen)
    response.writeHead(typeof found === 'number' ? found : 200, {
      'content-type': 'application/json',
    })
    response.end(
      JSON.stringify(typeof found === 'number' ? { error_code: 'RESOURCE_DOES_NOT_EXIST' } : found),
    )
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const folder = await mkdtemp(join(tmpdir(), 'espalier-trackers-'))
  run = { name: 'runs/0001', folder, settings: async () => ({ group: 8, policy: 'embedded' }) }
})

afterEach(async () => {
  await new Promise(resolve => server.close(resolve))
})

const points: readonly CurvePoint[] = [
  { step: 1, values: { 'train/reward': 0.5, 'train/kl': 0.01 } },
  { step: 2, values: { 'train/reward': 0.75 } },
]

async function track(
  name: string,
  variables: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const told: string[] = []
  const tell = (line: string) => void told.push(line)
  const options = {
    tell,
    variables,
    wait: () => new Promise<void>(resolve => setImmediate(resolve)),
  }
  await using tracker = await openNamedTracker(name, run, options)
  for (const point of points) tracker.listen({ kind: 'curves', ...point })
  tracker.listen({ kind: 'run-end', status: 'finished' })
  return told
}

const wandb = { WANDB_API_KEY: 'a'.repeat(40) }
const bucket = { historyLineCount: 0, project: { name: 'proj', entity: { name: 'me' } } }

describe('--track wandb', () => {
  const recorded = JSON.parse(
    readFileSync('test/fixtures/wandb-client.json', 'utf8'),
  ) as readonly Asked[]
  const historyOf = (all: readonly Asked[]) =>
    all
      .flatMap(({ body }) => body.files?.['wandb-history.jsonl']?.content ?? [])
      .map(line => JSON.parse(line))
  const withoutTimes = (line: object) => ({ ...line, _timestamp: 0, _runtime: 0 })

  it('sends the lines that its own client sends, to the same places', async () => {
    answer = ({ path }) => (path === '/graphql' ? { data: { upsertBucket: { bucket } } } : {})
    const told = await track('wandb:me/proj', { ...wandb, WANDB_BASE_URL: url })
    expect(historyOf(asked).map(withoutTimes)).toEqual(historyOf(recorded).map(withoutTimes))
    const [first] = recorded
    expect(asked[0]).toMatchObject({ method: first!.method, path: first!.path })
    expect(asked[0]!.authorization?.split(' ')[0]).toBe(first!.authorization)
    const { project, entity, displayName, config } = first!.body.variables
    expect(asked[0]!.body.variables).toMatchObject({ project, entity, displayName })
    expect(JSON.parse(asked[0]!.body.variables.config!)).toMatchObject({
      group: JSON.parse(config!).group,
    })
    const last = asked.at(-1)!
    expect(last.path).toBe(`/files/me/proj/${asked[0]!.body.variables.name}/file_stream`)
    expect(last.body).toMatchObject({ complete: true, exitcode: 0 })
    expect(told[0]).toContain(`/me/proj/runs/${asked[0]!.body.variables.name}`)
  })

  it('goes on with the run it began when the run is resumed', async () => {
    answer = ({ path }) =>
      path === '/graphql'
        ? { data: { upsertBucket: { bucket: { ...bucket, historyLineCount: 7 } } } }
        : {}
    for (let sitting = 0; sitting < 2; sitting++)
      await track('wandb:me/proj', { ...wandb, WANDB_BASE_URL: url })
    const begun = asked.filter(({ path }) => path === '/graphql')
    expect(begun[1]!.body.variables.name).toBe(begun[0]!.body.variables.name)
    const offsets = asked.flatMap(({ body }) => body.files?.['wandb-history.jsonl']?.offset ?? [])
    expect(offsets).toEqual([7, 8, 7, 8])
  })

  it('needs a key, and says where one is', async () => {
    await expect(track('wandb', {})).rejects.toThrow(/WANDB_API_KEY holds no key/)
  })
})

describe('--track mlflow', () => {
  it('makes experiment and run, sends settings once and numbers by step, and ends it', async () => {
    answer = ({ path }) => {
      if (path.includes('get-by-name')) return 404
      if (path.endsWith('experiments/create')) return { experiment_id: '3' }
      return path.endsWith('runs/create') ? { run: { info: { run_id: 'r' } } } : {}
    }
    const told = await track(`mlflow:${url}?experiment=shop`, {
      MLFLOW_TRACKING_TOKEN: 'token-of-mlflow',
    })
    expect(told).toEqual([`MLflow: ${url}/#/experiments/3/runs/r`])
    expect(asked.every(({ authorization }) => authorization === 'Bearer token-of-mlflow')).toBe(
      true,
    )
    const metrics = asked.flatMap(({ body }) => body.metrics ?? [])
    expect(metrics.map(({ key, value, step }) => [key, value, step])).toEqual([
      ['train/reward', 0.5, 1],
      ['train/kl', 0.01, 1],
      ['train/reward', 0.75, 2],
    ])
    expect(asked.flatMap(({ body }) => body.params ?? [])).toContainEqual({
      key: 'group',
      value: '8',
    })
    expect(asked.at(-1)!.body).toMatchObject({ run_id: 'r', status: 'FINISHED' })
  })
})

describe('a tracker', () => {
  const wait = () => new Promise<void>(resolve => setImmediate(resolve))

  it('that is away is told once and tried again, and nothing is lost when it comes back', async () => {
    const told: string[] = []
    const added: CurvePoint[] = []
    let failures = 3
    const service: TrackerService = {
      name: 'a page',
      begin: async () => ({ page: 'here' }),
      async add(batch) {
        if (failures-- > 0) throw new Error('503')
        added.push(...batch)
      },
      end: async () => {},
    }
    {
      await using tracker = openTracker(service, { tell: line => void told.push(line), wait })
      for (const point of points) tracker.listen({ kind: 'curves', ...point })
      while (failures >= 0) await wait()
    }
    expect(added).toEqual(points)
    expect(told.filter(line => line.startsWith('WARNING'))).toEqual([
      'WARNING --track: a page does not answer: 503; it is tried again',
    ])
  })

  it('that never answers ends no run, and what it was not told of is counted', async () => {
    const told: string[] = []
    const broken = async () => {
      throw new Error('refused')
    }
    const service: TrackerService = { name: 'a page', begin: broken, add: broken, end: broken }
    {
      await using tracker = openTracker(service, { tell: line => void told.push(line), wait })
      for (const point of points) tracker.listen({ kind: 'curves', ...point })
    }
    expect(told.at(-1)).toBe('WARNING --track: a page was not told of 2 steps')
  })

  it('H6: that floods is not read to its end', async () => {
    answer = () => ({ run: 'x'.repeat(5_000_000) })
    const flooding = sendJson(url, { method: 'POST', headers: {}, body: {} })
    await expect(flooding).rejects.toThrow('more than 4194304 bytes')
  })
})
