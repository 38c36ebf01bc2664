import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { openByteRenderer, script } from '../../../../test/rolling.ts'
import { serveDaytona } from '../../../../test/servers/vendors/daytona.ts'
import { serveE2b } from '../../../../test/servers/vendors/e2b.ts'
import type { VendorServer } from '../../../../test/servers/vendors/fleet.ts'
import type { Environment } from '../../../base/core/environment.ts'
import { roll } from '../../../index.ts'
import { openEnvironmentNamed } from '../../../run/settings/open-environment.ts'
import { thisProcess } from '../../../run/store/lock-owner.ts'
import { findWalls } from '../../sandboxes/walls.ts'
import { useOf, usualFolder, usualLimits, type Workspaces } from '../contract.ts'
import { checkSandbox, type SandboxFound } from '../world/check.ts'
import { openSandbox } from '../world/kinds.ts'
import { commandLine, readAnswer } from './command.ts'
import { daytonaWorkspaces } from './daytona.ts'
import { e2bWorkspaces } from './e2b.ts'
import type { VendorOptions } from './workspaces.ts'

const { signal } = new AbortController()
const source = { puts: [], workingFolder: usualFolder }

/** Machines of the vendor that a server of ours plays. */
function reach(
  { vendor, url }: VendorServer,
  more: Partial<VendorOptions> & { readonly key?: string; readonly fork?: 'snapshot' } = {},
): Promise<Workspaces> {
  const options = { limits: usualLimits, key: 'key', api: url, starts: 1000, patience: 0, ...more }
  if (vendor === 'daytona') return daytonaWorkspaces(options)
  return e2bWorkspaces({ ...options, machines: url })
}

const isSoak = process.env.ESPALIER_SOAK !== undefined
const servers = [
  ['e2b', serveE2b],
  ['daytona', serveDaytona],
] as const

describe.runIf(findWalls().by !== undefined).each(servers)('machines of %s', (vendor, serve) => {
  it('cost a fork for a branch, tell what they cost, and are all ended', async () => {
    await using server = await serve()
    const workspaces = await reach(server, { price: 3600, lease: 600 })
    const workspace = await workspaces.open(source, { signal })
    const [machine] = server.fleet.machines.values()
    expect(machine).toMatchObject({ lease: 600, network: false })
    const fork = await workspace.fork({ signal })
    expect(await fork.run(['pwd'], { signal })).toMatchObject({ output: `${usualFolder}\n` })
    const { sandbox } = useOf(fork)
    expect(sandbox).toMatchObject({ vendor, cost: expect.closeTo(sandbox!.seconds, 9) })
    await workspace[Symbol.asyncDispose]()
    expect(server.fleet.happened).toEqual(['started', 'forked', 'ended'])
    await workspaces[Symbol.asyncDispose]()
    expect(server.fleet.machines.size).toBe(0)
  })

  it('that were left by a process that is gone are ended; those of one that lives are not', async () => {
    await using server = await serve()
    const here = await thisProcess()
    const left = (owner: object) =>
      server.fleet.start({
        lease: 600,
        network: false,
        labels: { espalier: 'workspace', 'espalier-process': JSON.stringify(owner) },
      })
    await left({ ...here, pid: 2 ** 22 + 1 })
    const living = await left(here)
    const others = await left({ ...here, host: 'elsewhere', boot: 'another' })
    await using _ = await reach(server)
    expect([...server.fleet.machines.keys()].sort()).toEqual([living.id, others.id].sort())
  })

  it('whose start was stopped on the way are found and ended', async () => {
    await using server = await serve()
    const workspaces = await reach(server)
    let tell = (): void => undefined
    server.fleet.held = new Promise(resolve => {
      tell = resolve
    })
    const stop = new AbortController()
    const opening = workspaces.open(source, stop)
    await expect.poll(() => server.fleet.machines.size).toBe(1)
    stop.abort(new Error('enough'))
    await expect(opening).rejects.toThrow('enough')
    tell()
    await workspaces[Symbol.asyncDispose]()
    expect(server.fleet.machines.size).toBe(0)
  })

  it('that the vendor refuses, or that died, fail with its words', async () => {
    await using server = await serve()
    await using workspaces = await reach(server)
    const refusal = { status: 403, message: 'your quota of 20 machines is spent' }
    server.fleet.refusals.push(refusal)
    await expect(workspaces.open(source, { signal })).rejects.toThrow(
      expect.objectContaining({
        name: 'WorkspaceError',
        message: expect.stringContaining(refusal.message),
      }),
    )
    const workspace = await workspaces.open(source, { signal })
    server.fleet.refusals.push(refusal)
    await expect(workspace.fork({ signal })).rejects.toThrow(refusal.message)
    for (const id of [...server.fleet.machines.keys()]) await server.fleet.end(id)
    await expect(workspace.run(['true'], { signal })).rejects.toThrow(/not (found|running)/)
    await workspace[Symbol.asyncDispose]()
  })

  it('are paused while nobody uses them, and resumed by the next command', async () => {
    await using server = await serve()
    await using workspaces = await reach(server, { pause: 0.2 })
    const workspace = await workspaces.open(source, { signal })
    await expect.poll(() => server.fleet.happened.at(-1)).toBe('paused')
    expect((await workspace.run(['echo', 'awake'], { signal })).output).toBe('awake\n')
    expect(server.fleet.happened).toContain('resumed')
  })

  it('are proved by the check, which leaves none', async () => {
    await using server = await serve()
    const found: SandboxFound[] = []
    for await (const each of checkSandbox(await reach(server), { signal })) found.push(each)
    expect(found.filter(({ passed }) => !passed)).toEqual([])
    expect(found.map(({ step }) => step)).toEqual(
      'start run end network fork cost dispose'.split(' '),
    )
    expect(server.fleet.machines.size).toBe(0)
  })

  it('are asked for with a key that must be right', async () => {
    await using server = await serve()
    await expect(reach(server, { key: 'wrong' })).rejects.toThrow(/Invalid/)
  })
})

/** One attempt of a harness in a machine of a vendor, and what the machine's end is told by. */
async function attemptIn(server: VendorServer, meanwhile = async (): Promise<void> => undefined) {
  const start = server.fleet.start.bind(server.fleet)
  server.fleet.start = async from => {
    const machine = await start(from)
    const agent = readFileSync('test/harnesses/acp-agent.mjs')
    await server.fleet.write(machine.id, '/tests/acp-agent.mjs', agent)
    return machine
  }
  process.env.ESPALIER_TEST_VENDOR = 'key'
  const machines = server.vendor === 'e2b' ? `\\,machines=${server.url}` : ''
  const more = 'patience=0\\,key-variable=ESPALIER_TEST_VENDOR'
  const sandbox = `${server.vendor}:api=${server.url}${machines}\\,${more}`
  const name = `harness:acp,command=node /tests/acp-agent.mjs /outside,sandbox=${sandbox}`
  const environment = (await openEnvironmentNamed(name)) as Environment<object>
  const renderer = await openByteRenderer()
  const policy = script(renderer, ['paris<|im_end|>'])
  const sample = policy.sample.bind(policy)
  policy.sample = async (...asked) => {
    await meanwhile()
    return await sample(...asked)
  }
  const tasks = [{ prompt: 'asks the capital of France', answer: 'paris' }]
  const asked = { policy, model: renderer, group: 1 }
  try {
    for await (const { members, unscored } of roll(environment, tasks, asked))
      return (members[0] ?? unscored[0])!
    throw new Error('no group came')
  } finally {
    await environment[Symbol.asyncDispose]?.()
  }
}

describe.runIf(findWalls().by !== undefined)('a harness in a machine of a vendor', () => {
  it.each(isSoak ? servers : servers.slice(0, 1))(
    'runs in %s without a network, and its report says what it used',
    async (vendor, serve) => {
      await using server = await serve()
      const { trajectory, ...rest } = await attemptIn(server)
      expect(rest).toMatchObject({ reward: { total: 1 } })
      expect(trajectory.report).toMatchObject({ sandbox: { vendor } })
      expect(server.fleet.machines.size).toBe(0)
    },
  )

  it('fails, without a score, if the machine dies in the middle or the quota is spent', async () => {
    await using server = await serveE2b()
    const { fleet } = server
    const died = await attemptIn(server, async () => {
      for (const id of [...fleet.machines.keys()]) await fleet.end(id)
    })
    fleet.refusals.push({ status: 403, message: 'your quota of 20 machines is spent' })
    const refused = await attemptIn(server)
    const failed = { kind: 'failed', boundary: 'environment' }
    expect(died.trajectory.outcome).toMatchObject(failed)
    const message = expect.stringContaining('your quota of 20 machines is spent')
    expect(refused.trajectory.outcome).toMatchObject({ ...failed, message })
    expect([died, refused].filter(each => 'reward' in each)).toEqual([])
    expect(fleet.machines.size).toBe(0)
  })
})

it('E2B’s protocol without forks says so, and a snapshot does instead, without being left', async () => {
  await using server = await serveE2b({ knowsForks: false })
  await using workspaces = await reach(server)
  const workspace = await workspaces.open(source, { signal })
  await expect(workspace.fork({ signal })).rejects.toThrow('e2b (start): ')
  await using bySnapshot = await reach(server, { fork: 'snapshot' })
  const other = await bySnapshot.open(source, { signal })
  await using fork = await other.fork({ signal })
  expect((await fork.run(['echo', 'here'], { signal })).output).toBe('here\n')
  expect(server.fleet.machines.size).toBe(3)
})

it('a vendor without its key or with an item it does not have is told at once', async () => {
  await expect(openSandbox('e2b:key-variable=NO_SUCH_KEY', usualLimits)).rejects.toThrow(
    'the variable NO_SUCH_KEY is not set',
  )
  await expect(openSandbox('daytona:lease=5', usualLimits)).rejects.toThrow('lease')
})

it('a command’s answer is read only if it is one', () => {
  const command = {
    words: ["it's"],
    folder: '/a b',
    variables: {},
    seconds: 1,
    outputBytes: 9,
    input: '/x',
  }
  expect(commandLine({ ...command, id: 'run-1' })).toContain(`'it'\\''s'`)
  const answer = 'noise\nrun-1 3 1 2\naGk=\n\n'
  expect(readAnswer('run-1', answer)).toEqual({ code: 3, cut: 3, output: 'hi', complaints: '' })
  expect(readAnswer('run-2', answer)).toBeUndefined()
  expect(readAnswer('run-1', 'run-1 killed')).toBeUndefined()
})
