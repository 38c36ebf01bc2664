import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { serveDaytona } from '../../../test/servers/vendors/daytona.ts'
import { serveE2b } from '../../../test/servers/vendors/e2b.ts'
import type { VendorServer } from '../../../test/servers/vendors/fleet.ts'
import { serveSandbox } from '../../doors/hosting/sandbox-server.ts'
import { findWalls } from '../sandboxes/walls.ts'
import { containerWorkspaces } from './container.ts'
import {
  usualFolder,
  usualLimits,
  type Workspace,
  WorkspaceError,
  type Workspaces,
} from './contract.ts'
import { listFilesIn, readFileIn, writeFileIn } from './files.ts'
import { localWorkspaces } from './local.ts'
import { remoteWorkspaces } from './remote.ts'
import { daytonaWorkspaces } from './vendors/daytona.ts'
import { e2bWorkspaces } from './vendors/e2b.ts'

const { signal } = new AbortController()
const limits = { ...usualLimits, seconds: 2, outputBytes: 1000 }
const closing: (() => PromiseLike<void>)[] = []
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

/** An image with a shell and its usual programs, and an engine that has it: both are rarely here. */
const image = process.env.ESPALIER_TEST_IMAGE
const hasEngine =
  image !== undefined && spawnSync('podman', ['image', 'exists', image]).status === 0
if (!hasEngine)
  console.warn('SKIPPED: no podman with ESPALIER_TEST_IMAGE; containers were not run.')
/** Every command of these machines is one of walls that are built anew, three times over. */
const isSoak = process.env.ESPALIER_SOAK !== undefined
const hasWalls = findWalls().by !== undefined

async function openRemote(): Promise<Workspaces> {
  const server = await serveSandbox(localWorkspaces({ limits }), { port: 0, token: 'key' })
  closing.push(() => server[Symbol.asyncDispose]())
  return await remoteWorkspaces({ url: server.url, key: 'key' })
}

/** Machines of a vendor, whose SDK asks a server of ours that speaks its protocol. */
async function openVendor(serving: Promise<VendorServer>): Promise<Workspaces> {
  const server = await serving
  const { url } = server
  const options = { limits, key: 'key', api: url, starts: 1000 }
  const workspaces =
    server.vendor === 'e2b'
      ? await e2bWorkspaces({ ...options, machines: url })
      : await daytonaWorkspaces(options)
  closing.push(async () => {
    await workspaces[Symbol.asyncDispose]()
    expect([...server.fleet.machines]).toEqual([])
    await server[Symbol.asyncDispose]()
  })
  return workspaces
}

const kinds: readonly (readonly [string, boolean, () => Promise<Workspaces> | Workspaces])[] = [
  ['within walls', hasWalls, () => localWorkspaces({ limits })],
  ['in a container', hasEngine, () => containerWorkspaces({ engine: 'podman', limits })],
  ['on another machine', hasWalls, openRemote],
  ['in E2B', hasWalls, () => openVendor(serveE2b())],
  ['in Daytona', hasWalls && isSoak, () => openVendor(serveDaytona())],
]

describe.each(kinds.filter(([, isHere]) => isHere))('a workspace %s', (_name, _isHere, make) => {
  let made: Promise<Workspaces> | undefined
  async function open(): Promise<Workspace> {
    made ??= Promise.resolve(make())
    const from = mkdtempSync(join(tmpdir(), 'put-'))
    writeFileSync(join(from, 'a.txt'), 'one')
    writeFileSync(join(from, 'run.sh'), '#!/bin/sh\necho ran')
    chmodSync(join(from, 'run.sh'), 0o755)
    const source = {
      puts: [{ from, to: usualFolder }],
      workingFolder: usualFolder,
      variables: { GIVEN: 'always' },
      ...(image !== undefined && { image: { name: image } }),
    }
    const workspace = await (await made).open(source, { signal })
    closing.push(() => workspace[Symbol.asyncDispose]())
    return workspace
  }
  const sh = (workspace: Workspace, text: string, more = {}) =>
    workspace.run(['/bin/sh', '-c', text], { signal, ...more })

  it('runs commands with what they read, their variables and their exit code', async () => {
    const workspace = await open()
    const ran = await sh(workspace, 'cat; echo "$GIVEN $WANTED"; echo wrong >&2; exit 3', {
      input: 'said\n',
      variables: { WANTED: 'now' },
    })
    expect(ran).toMatchObject({ end: 'exited', code: 3, output: 'said\nalways now\n' })
    expect(ran.complaints).toContain('wrong')
    expect((await sh(workspace, './run.sh')).output).toBe('ran\n')
  })

  it('says which command could not be started, in the same words each time', async () => {
    const workspace = await open()
    const first = await workspace.run(['nope'], { signal })
    expect(first).toMatchObject({ end: 'exited', code: 127, output: '' })
    expect(first.complaints).toMatch(/nope.*(not found|No such file)/)
    expect(first.complaints).not.toContain('inside')
    expect(await workspace.run(['nope'], { signal })).toEqual(first)
  })

  it('keeps files, and has no network and no file of this machine', async () => {
    const workspace = await open()
    await writeFileIn(workspace, { path: 'deep/ü.txt', text: 'zwei ☃' }, { signal })
    expect(await readFileIn(workspace, 'deep/ü.txt', { signal })).toBe('zwei ☃')
    expect(await listFilesIn(workspace, '.', { signal })).toContain('./a.txt\n./deep\n')
    const secret = join(mkdtempSync(join(tmpdir(), 'secret-')), 'key')
    writeFileSync(secret, 'secret')
    await sh(workspace, `ln -s ${secret} link`)
    await expect(readFileIn(workspace, 'link', { signal })).rejects.toThrow('No such file')
    const reached = await sh(workspace, 'cat /proc/net/dev | grep -v lo: | grep -c :')
    expect(reached.output.trim()).toBe('0')
  })

  it('ends what takes too long, and cuts what floods', async () => {
    const workspace = await open()
    const flood = await sh(workspace, 'yes', { seconds: 1 })
    expect([flood.end, flood.output.length, flood.cut > 0]).toEqual(['out-of-time', 1000, true])
    expect((await sh(workspace, 'echo still here')).output).toBe('still here\n')
  })

  it('forks into a copy that goes its own way, and takes folders later', async () => {
    const workspace = await open()
    const fork = await workspace.fork({ signal })
    closing.push(() => fork[Symbol.asyncDispose]())
    await writeFileIn(fork, { path: 'a.txt', text: 'other' }, { signal })
    expect(await readFileIn(workspace, 'a.txt', { signal })).toBe('one')
    expect(await readFileIn(fork, 'a.txt', { signal })).toBe('other')
    const from = mkdtempSync(join(tmpdir(), 'tests-'))
    writeFileSync(join(from, 'test.sh'), 'echo tested')
    await fork.put({ from, to: '/tests' }, { signal })
    expect((await sh(fork, 'sh /tests/test.sh')).output).toBe('tested\n')
  })

  it('talks to a command as it runs, and says how it ended', async () => {
    const workspace = await open()
    const script = 'while read line; do echo "heard $line"; done; echo over >&2; exit 4'
    const started = workspace.start!(['/bin/sh', '-c', script], { signal, seconds: 60 })
    const heard = started.output.setEncoding('utf8')[Symbol.asyncIterator]()
    started.input.write('one\n')
    expect(await heard.next()).toMatchObject({ value: 'heard one\n' })
    started.input.write('two\n')
    expect(await heard.next()).toMatchObject({ value: 'heard two\n' })
    started.input.end()
    const ended = { end: 'exited', code: 4, output: '', complaints: 'over\n' }
    expect(await started.finished).toMatchObject(ended)
  })

  it('ends a command that it talks to when it is told to, and stays usable', async () => {
    const workspace = await open()
    const stop = new AbortController()
    const started = workspace.start!(['cat'], { signal: stop.signal, seconds: 60 })
    started.input.write('here\n')
    const [first] = await once(started.output, 'data')
    expect(String(first)).toBe('here\n')
    stop.abort()
    expect(await started.finished).toMatchObject({ end: 'stopped' })
    expect((await sh(workspace, 'echo still here')).output).toBe('still here\n')
  })

  it('stops a command when it is told to, and stays usable', async () => {
    const workspace = await open()
    const stop = new AbortController()
    const running = workspace.run(['sleep', '60'], { signal: stop.signal, seconds: 60 })
    stop.abort(new Error('enough'))
    await expect(running).rejects.toThrow('enough')
    expect((await sh(workspace, 'echo still here')).output).toBe('still here\n')
  })
})

describe.runIf(hasWalls)('a server of workspaces', () => {
  it('needs its key, says where a workspace is gone, and makes who comes last wait', async () => {
    const server = await serveSandbox(localWorkspaces({ limits }), {
      port: 0,
      token: 'key',
      sessions: 1,
    })
    closing.push(() => server[Symbol.asyncDispose]())
    const { url } = server
    await expect(remoteWorkspaces({ url, key: 'other' })).rejects.toThrow('401')
    const workspaces = await remoteWorkspaces({ url, key: 'key', patience: 0 })
    const source = { puts: [], workingFolder: usualFolder }
    const first = await workspaces.open(source, { signal })
    await expect(workspaces.open(source, { signal })).rejects.toThrow('all 1 workspaces are in use')
    await first[Symbol.asyncDispose]()
    const gone = await first.run(['true'], { signal }).catch((cause: unknown) => cause)
    expect(gone).toBeInstanceOf(WorkspaceError)
    expect(String(gone)).toContain('no such workspace')
  })

  it('keeps an image that is sent again once', async () => {
    const server = await serveSandbox(localWorkspaces({ limits }), { port: 0 })
    closing.push(() => server[Symbol.asyncDispose]())
    const send = async (text: string) => {
      const folder = mkdtempSync(join(tmpdir(), 'image-'))
      writeFileSync(join(folder, 'Dockerfile'), text)
      const words = ['-c', '--mtime', '2025-01-01', '-C', folder, '.']
      const body = spawnSync('tar', words).stdout
      const headers = { 'content-type': 'application/x-tar' }
      const answer = await fetch(`${server.url}/images`, { method: 'POST', headers, body })
      return ((await answer.json()) as { readonly id: string }).id
    }
    const first = await send('FROM a')
    expect(await send('FROM a')).toBe(first)
    expect(await send('FROM b')).not.toBe(first)
  })

  it('answers a client’s mistakes with 400, and says what is wrong with them', async () => {
    const server = await serveSandbox(localWorkspaces({ limits }), { port: 0 })
    closing.push(() => server[Symbol.asyncDispose]())
    const ask = async (method: string, path: string, type: string, body: string) => {
      const headers = { 'content-type': type }
      const answer = await fetch(`${server.url}${path}`, { method, headers, body })
      return { status: answer.status, ...((await answer.json()) as { id?: string }) }
    }
    const post = (path: string, body: unknown) =>
      ask('POST', path, 'application/json', JSON.stringify(body))
    const { id } = await post('/workspaces', { workingFolder: usualFolder })
    const put = (to: string, body: string) =>
      ask('PUT', `/workspaces/${id}/files?to=${to}`, 'application/x-tar', body)
    const wrong = (error: string) => ({ status: 400, error: expect.stringContaining(error) })
    expect(await put('/tests', 'no archive')).toEqual(wrong('not a tar archive'))
    expect(await ask('POST', '/images', 'application/x-tar', 'no archive')).toEqual(
      wrong('not a tar archive'),
    )
    expect(await put('/usr', '\0'.repeat(1024))).toEqual(wrong('nothing can be put at /usr'))
    expect(await put('/a%00b', '\0'.repeat(1024))).toEqual(wrong('NUL'))
    expect(await post('/workspaces', { workingFolder: '/usr' })).toEqual(wrong('/usr'))
    expect(await post('/workspaces', null)).toEqual(wrong('expected object'))
    expect(await post(`/workspaces/${id}/run`, { command: ['a\0b'] })).toEqual(wrong('NUL'))
    expect(await post(`/workspaces/${id}/run`, { command: [] })).toEqual(wrong('command'))
  })
})

it('a sandbox server that speaks another protocol is refused', async () => {
  const server = createServer((_, response) => void response.end('{"protocol":2}'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  closing.push(async () => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await expect(remoteWorkspaces({ url })).rejects.toThrow(/not what the protocol has: .*protocol/)
})
