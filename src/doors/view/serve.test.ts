import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { environment, roll } from '../../index.ts'
import { lockFile } from '../../run/store/lock.ts'
import { runPaths, standingOf } from '../../run/store/run-folder.ts'
import { scripted } from '../../testing.ts'
import type { RunEntry } from './answers.ts'
import { Library } from './library.ts'
import { type ServedView, serveView } from './serve.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-view-'))
const forks: (readonly string[])[] = []
let library: Library
let served: ServedView

const world = environment({
  name: 'letters',
  task: { '~standard': { version: 1, vendor: 'test', validate: value => ({ value }) } },
  open: () => ({ opening: [{ role: 'user', content: 'Say a letter.' }] }),
  reward: { letter: ({ answer }) => answer.length },
})

/** A copy of the run whose `run.json` says something else. */
function broken(name: string, manifest: string): string {
  const copy = join(folder, name)
  cpSync(join(folder, 'run'), copy, { recursive: true })
  writeFileSync(runPaths(copy).manifest, manifest)
  return copy
}

beforeAll(async () => {
  const out = join(folder, 'run')
  const policy = await scripted(['Bee'])
  const tasks = [{ id: 'one' }, { id: 'two' }]
  for await (const _ of roll(world, tasks, { policy, group: 2, out }));
  library = new Library()
  await library.add(out)
  const forked = { format: 1, kind: 'roll', status: 'finished', versions: {}, directory: folder }
  const config = { environment: 'letters', policy: 'script:a.jsonl' }
  await library.add(broken('forkable', JSON.stringify({ ...forked, config })))
  await library.add(broken('imported', JSON.stringify({ ...forked, config: {} })))
  await library.add(broken('torn', '{"format": 1,'))
  await library.add(broken('bare', '{"format": 1}'))
  const damaged = broken('damaged', JSON.stringify({ ...forked, config }))
  appendFileSync(runPaths(damaged).journal, Buffer.alloc(64, 7))
  await library.add(damaged)
  const cut = join(folder, 'cut')
  cpSync(out, cut, { recursive: true })
  truncateSync(runPaths(cut).journal, statSync(runPaths(cut).journal).size - 1)
  await library.add(cut)
  served = await serveView(library, {
    runFork: async words => {
      forks.push(words)
      return { code: 0, stdout: '{"group": "one"}', stderr: '' }
    },
  })
}, 60_000)

afterAll(async () => {
  await served?.[Symbol.asyncDispose]()
  await library?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

interface Answered {
  readonly status: number
  readonly message?: string
}

async function ask(path: string, init?: RequestInit): Promise<Answered> {
  const answer = await fetch(`${served.url}/api/${path}`, init)
  const { message } = (await answer.json()) as { readonly message?: string }
  return { status: answer.status, ...(message !== undefined && { message }) }
}

const post = (path: string, body: unknown): Promise<Answered> =>
  ask(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const refused = (message: string, status = 400) => ({
  status,
  message: expect.stringContaining(message),
})

it('[P1] a finished run whose journal was cut is shown as far as it goes, and said to be damaged', async () => {
  const progress = async (run: string) =>
    ((await (await fetch(`${served.url}/api/runs/${run}`)).json()) as { progress: object }).progress
  expect(await progress('cut')).toMatchObject({
    groups: 1,
    damage: expect.stringMatching(/it was finished, but .* ends at byte \d+ of \d+/),
  })
  expect(await progress('run')).not.toHaveProperty('damage')
})

it('a run whose writer was killed is interrupted, and live while somebody writes it', async () => {
  const manifest = {
    ...{ format: 1, kind: 'roll', versions: {}, config: {} },
    status: 'running' as const,
  }
  const killed = broken('killed', JSON.stringify(manifest))
  await library.add(killed)
  const told = async (): Promise<unknown> => {
    const runs = (await (await fetch(`${served.url}/api/runs`)).json()) as readonly RunEntry[]
    const listed = runs.find(({ name }) => name === 'killed')?.status
    const live = await fetch(`${served.url}/api/live?run=killed`)
    const { value } = await live.body!.pipeThrough(new TextDecoderStream()).getReader().read()
    return [listed, /"status":"(\w+)"/.exec(value!)?.[1], await standingOf(killed, manifest)]
  }
  expect(await told()).toEqual(['interrupted', 'interrupted', 'interrupted'])
  await using _writer = await lockFile(runPaths(killed).lock)
  expect(await told()).toEqual(['running', 'running', 'running'])
})

describe('a fork that is asked for', () => {
  const id = 'one/0/0'
  it.each([
    [null, 'an object with id, at and samples'],
    [[], 'an object with id, at and samples'],
    ['text', 'an object with id, at and samples'],
    [{}, 'id names a trajectory'],
    [{ id: 3, at: '0', samples: 1 }, 'id names a trajectory'],
    [{ id: '--out', at: '0', samples: 1 }, 'id names a trajectory'],
    [{ id, samples: 1 }, 'at is a text'],
    [{ id, at: 0, samples: 1 }, 'at is a text'],
    [{ id, at: 'x', samples: 1 }, 'no place "x"'],
    [{ id, at: '0' }, 'samples is a whole number from 1 to 64'],
    [{ id, at: '0', samples: '2' }, 'samples is a whole number from 1 to 64, not "2"'],
    [{ id, at: '0', samples: 65 }, 'samples is a whole number from 1 to 64, not 65'],
    [{ id, at: '0', samples: 1, edit: {} }, 'edit is a text'],
    [{ id, at: '0', samples: 1, policy: 'sglang:http://evil' }, 'policy is one of script:a.jsonl'],
    [{ id, at: '0', samples: 1, policy: null }, 'policy is one of script:a.jsonl'],
  ])('%j is refused, and what was possible is said', async (body, problem) => {
    expect(await post('runs/forkable/try', body)).toEqual(refused(problem))
  })

  it('names a trajectory of the run, in a run that says how its worlds are opened', async () => {
    const right = { id, at: '0', samples: 1 }
    expect(await post('runs/forkable/try', { ...right, id: 'nine/0/0' })).toEqual(
      refused('no trajectory "nine/0/0"', 404),
    )
    expect(await post('runs/imported/try', right)).toEqual(refused('imported cannot be forked'))
    expect(forks).toEqual([])
    expect(await post('runs/forkable/try', right)).toEqual({ status: 200 })
    const words = [id, '--at', '0', '--samples', '1']
    await expect.poll(() => forks[0]?.slice(2, 7)).toEqual(words)
  })
})

describe('what is asked of the page’s door', () => {
  it.each([
    ['compare?before=run&after=run&after-step=abc', 'after-step is a whole number'],
    ['compare?before=run&after=run&before-step=-1', 'before-step is a whole number'],
    ['compare?after=run', 'before is missing'],
    ['compare?before=run&after=run&offset=x', 'offset is a whole number'],
    ['runs/run/groups?limit=1e9x', 'limit is a whole number from 0 on, not "1e9x"'],
    ['runs/run/groups?sort=reward', 'sort is one of order, task'],
    ['runs/run/groups?from-step=late', 'from-step is a number, not "late"'],
    ['runs/run/groups?contrast=much', 'contrast is one of some, none'],
    ['runs/run/tokens?id=one/0/0&path=first', 'path is a whole number'],
    ['runs/run/tokens', 'id is missing'],
    ['live', 'run is missing'],
  ])('%s is refused with what was wrong', async (path, problem) => {
    expect(await ask(path)).toEqual(refused(problem))
  })

  it('is answered where it is right, at its bounds too', async () => {
    for (const path of [
      'runs',
      'runs/run',
      'runs/run/curves',
      'runs/run/facets',
      'runs/run/groups?sort=mean&down=1&limit=0&offset=999999999999999',
      'runs/run/tokens?id=one/0/0&path=99&offset=99999',
      'runs/damaged/group?id=two',
      'compare?before=run&after=run&after-step=',
    ]) {
      expect(await ask(path), path).toEqual({ status: 200 })
    }
    expect(await ask('compare?before=run&after=run&after-step=7')).toMatchObject({ status: 404 })
  })

  it('of a run whose run.json is broken is answered with what is broken, never as our failure', async () => {
    for (const path of ['runs/torn', 'runs/torn/groups', 'live?run=torn']) {
      expect(await ask(path)).toEqual(refused('run.json is not JSON', 422))
    }
    expect(await post('runs/torn/try', {})).toEqual(refused('run.json is not JSON', 422))
    expect(await ask('runs/bare')).toEqual(refused('run.json has no config and no versions', 422))
  })
})

describe('a file that is dropped on the page', () => {
  const drop = (query: string, body: string): Promise<Answered> =>
    ask(`import?${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/octet-stream' },
      body,
    })

  it('that fits no format is refused with each complaint once, and what opens', async () => {
    const { status, message = '' } = await drop('name=results.json', '{\n  "run": "runs/0001"\n}\n')
    expect(status).toBe(422)
    expect(message.split('not JSON')).toHaveLength(2)
    expect(message).toMatch(
      /^results.json fits none of the formats that can be read: results.json:1: not JSON/,
    )
    expect(message).toMatch(/What opens: the folder of a run, or .* per line \(jsonl, .*Parquet/)
  })

  it('in a format that does not exist is refused with those that do', async () => {
    expect(await drop('name=a&format=nope', '{}')).toEqual(refused('jsonl', 422))
    expect(await drop('name=a&format=tinker', '{}')).toEqual(refused('cannot be imported', 422))
  })

  it('is named by something that an address can hold', async () => {
    const line = JSON.stringify({ messages: [{ role: 'assistant', content: 'a' }] })
    for (const name of ['', '..', 'x/..']) {
      expect(await drop(`name=${name}&format=openai-sft`, line)).toEqual({ status: 200 })
    }
    expect(library.names.slice(-3)).toEqual(['file', 'file-2', 'file-3'])
  })
})
