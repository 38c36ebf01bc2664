import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Environment, World } from '../../base/core/environment.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { checkEnvironment } from '../../engine/environments/check.ts'
import { openEnvironment } from '../../engine/environments/registry.ts'
import { replyOf } from '../../engine/environments/reply.ts'
import { openPython, type PythonOptions, pythonFactory } from './python.ts'

const hasPython = spawnSync('python3', ['--version']).status === 0
if (!hasPython) console.warn('SKIPPED: no python3 here; the bridge was not run.')

const { signal } = new AbortController()
const lanes = makeLanes({ policy: 4, tools: 4, environment: 4, reward: 4 })
const closing: (() => PromiseLike<void> | undefined)[] = []
beforeEach(() => void vi.stubEnv('PYTHONPATH', resolve('test/fixtures')))
afterEach(async () => {
  vi.unstubAllEnvs()
  for (const close of closing.splice(0)) await close()
})

async function hosted(options: Partial<PythonOptions> = {}): Promise<Environment> {
  const made = { package: 'bridge_games:Count', processes: 1, ...options }
  const environment = (await openPython(made)) as Environment
  closing.push(() => environment[Symbol.asyncDispose]?.())
  return environment
}

function open(environment: Environment, index = 0): Promise<World> {
  const task = environment.makeTasks!({ count: index + 1, seed: 1 })[index]!
  return environment.open(task, { seed: 1, lanes, signal })
}

const act = (action: number) => replyOf('', { tool: 'act', input: { action } })
const step = (world: World, reply = act(0)) =>
  world.step(reply, { signal, messages: world.opening, turn: 0 })

describe.skipIf(!hasPython)('a game in Python', () => {
  it('is played by a tool of its action space', async () => {
    const environment = await hosted()
    const world = await open(environment)
    expect(world.tools[0]!.function.parameters).toMatchObject({
      properties: { action: { minimum: 0, maximum: 7 } },
    })
    await step(world)
    expect(await step(world, replyOf('hm'))).toMatchObject({
      observed: [{ role: 'user', content: 'Call act.' }],
    })
    await step(world)
    const last = await step(world)
    expect(last).toMatchObject({ kind: 'end', reward: 1, calls: [{ output: '3 of 3' }] })
    expect(await world.report?.()).toEqual({ return: 1, rewarded: 3, done: true })
    await world[Symbol.asyncDispose]()
  })

  it('is played by words where its actions are no numbers, and passes the checks', async () => {
    const environment = await hosted({ package: 'bridge_games:Words' })
    const tasks = environment.makeTasks!({ count: 1, seed: 1 })
    const results = await checkEnvironment(environment, { tasks, turns: 3 })
    expect(results.filter(({ kind }) => kind === 'failed')).toEqual([])
    const world = await open(environment)
    expect(world.opening).toEqual([{ role: 'user', content: 'speak' }])
    expect(await step(world, replyOf('hello'))).toMatchObject({
      kind: 'continue',
      observed: [{ role: 'user', content: 'you said hello' }],
      reward: 0.5,
    })
    expect((await step(world, replyOf('end'))).kind).toBe('end')
    await world[Symbol.asyncDispose]()
  })

  it('may print what it likes', async () => {
    const world = await open(await hosted())
    expect((await step(world, act(4))).observed).toMatchObject([{ content: '1 of 3' }])
    await world[Symbol.asyncDispose]()
  })

  it('finds nothing to read where requests come in', async () => {
    const world = await open(await hosted({ package: 'bridge_games:Words', seconds: 20 }))
    const said = (content: string) => ({ observed: [{ content: `you said ${content}` }] })
    expect(await step(world, replyOf('read'))).toMatchObject(said('nothing'))
    expect(await step(world, replyOf('ü ☃'))).toMatchObject(said('ü ☃'))
    await world[Symbol.asyncDispose]()
  })

  it('says what cannot be hosted', async () => {
    const factories = { python: pythonFactory }
    const host = (text: string) => openEnvironment(text, factories)
    await expect(host('python:no_such_package')).rejects.toThrow(
      /no_such_package cannot be hosted: .*ModuleNotFoundError/,
    )
    await expect(host('python:bridge_games:None')).rejects.toThrow(/cannot be hosted/)
    await expect(host('python:bridge_games:Count,wins=4,python=/no/such')).rejects.toThrow(
      /\/no\/such cannot be run/,
    )
    await expect(host('python:bridge_games:Count,losses=4')).rejects.toThrow(/losses/)
    await expect(host('python:a b')).rejects.toThrow(/variant/)
  })
})
