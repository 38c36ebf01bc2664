import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { runInside } from './run.ts'
import { openSandbox, type SandboxOptions } from './sandbox.ts'
import { describeWalls, findWalls } from './walls.ts'

const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
const walls = findWalls()
const closing: (() => void)[] = []
afterAll(() => {
  for (const close of closing) close()
})

const inside = async (script: string, options: SandboxOptions = {}, more: object = {}) =>
  await runInside(openSandbox(options), ['/bin/sh', '-c', script], {
    seconds: 20,
    outputBytes: 10_000,
    ...more,
  })

/** Listens at a port or at a path, and counts who comes. */
async function listening(at: number | string): Promise<{ port: number; visits: () => number }> {
  let visits = 0
  const server = createServer(socket => {
    visits++
    socket.end('secret')
  })
  server.listen(at)
  await once(server, 'listening')
  closing.push(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { port, visits: () => visits }
}

describe.runIf(walls.by !== undefined)('H1: inside the walls', () => {
  const node = { readable: [process.execPath] }
  const connect = (target: string): string =>
    `${process.execPath} -e "require('net').connect(${target}).on('connect',()=>console.log('IN')).on('error',e=>console.log(e.code))"`

  it('no port and no socket of this machine can be reached', async () => {
    const { port, visits } = await listening(0)
    const path = join(folder, 'socket')
    const unix = await listening(path)
    const tcp = await inside(connect(`${port},'127.0.0.1'`), node)
    expect(tcp.output).toMatch(/ECONNREFUSED|ENETUNREACH/)
    const local = await inside(connect(`'${path}'`), node)
    expect(local.output).toMatch(/ENOENT/)
    expect([visits(), unix.visits()]).toEqual([0, 0])
  })

  it('only named files exist, and only named folders can be written', async () => {
    const file = join(folder, 'readable.txt')
    writeFileSync(file, 'known')
    writeFileSync(join(folder, 'other.txt'), 'unknown')
    const work = mkdtempSync(join(folder, 'work-'))
    const options = { readable: [file], writable: [work], workingFolder: work }
    const script = `cat ${file}; cat ${folder}/other.txt; cat /etc/shadow; pwd
      echo new > made.txt; echo x > ${file} || echo kept; echo x > /usr/x || echo kept; echo x > /x || echo kept`
    const { output } = await inside(script, options)
    expect(output).toBe(`known${work}\nkept\nkept\nkept\n`)
    expect(readFileSync(join(work, 'made.txt'), 'utf8')).toBe('new\n')
    expect([readFileSync(file, 'utf8'), existsSync('/usr/x')]).toEqual(['known', false])
  })

  it('no process is seen, no variable is inherited, no privilege is held', async () => {
    process.env.SANDBOX_CANARY = 'secret'
    const script = `env; kill -0 ${process.pid} || echo unseen; grep CapEff /proc/self/status`
    const { output } = await inside(script, { variables: { OWN: '1' } })
    expect(output).not.toContain('secret')
    expect(output).toContain('OWN=1')
    expect(output).toContain('unseen')
    if (output.includes('CapEff')) expect(output).toMatch(/CapEff:\s+0+$/m)
  })

  it('memory, processes, output and time are bounded', async () => {
    const greedy = await inside('head -c 400000000 /dev/zero | tail -c 399999999 > /dev/null', {
      limits: { memory: 100 },
    })
    expect(greedy.code).not.toBe(0)
    if (walls.processCount) {
      const many = 'for i in $(seq 100); do sleep 5 & done; echo started'
      const bomb = await inside(many, { limits: { processes: 20 } })
      expect(bomb.output).not.toContain('started')
    }
    const flood = await inside('yes', {}, { seconds: 0.5, outputBytes: 1000 })
    expect([flood.end, flood.output.length]).toEqual(['out-of-time', 1000])
    expect(flood.cut).toBeGreaterThan(0)
  })

  it('what was started in the background ends with the command', async () => {
    const work = mkdtempSync(join(folder, 'work-'))
    const script = `(exec 9>${work}/lock; flock 9; echo held; sleep 1000) & read line`
    const { output } = await inside(`${script}; echo done`, { writable: [work] })
    expect(output).toContain('done\n')
    expect(isLocked(work, 20)).toBe(false)
  })
})

describe.runIf(walls.diesWithParent)('H1: a parent that is killed', () => {
  it('takes what it started with it', async () => {
    const work = mkdtempSync(join(folder, 'work-'))
    const parent = startParent(work)
    await once(parent.stdout!, 'data')
    expect(isLocked(work, 0)).toBe(true)
    parent.kill('SIGKILL')
    await once(parent, 'exit')
    // The lock falls when the last process inside has ended.
    expect(isLocked(work, 20)).toBe(false)
  })
})

/** A process that starts a command inside, which holds a lock and would go on without end. */
function startParent(work: string): ChildProcess {
  const url = new URL('./sandbox.ts', import.meta.url).href
  const script = `exec 9>${work}/lock; flock 9; echo ready; while :; do sleep 1; done`
  const program = `
    const { openSandbox } = await import(${JSON.stringify(url)})
    const sandbox = openSandbox({ writable: [${JSON.stringify(work)}] })
    const child = sandbox.spawn(['/bin/sh', '-c', ${JSON.stringify(script)}])
    child.stdout.pipe(process.stdout)
    child.stderr.pipe(process.stderr)`
  const words = ['--import', 'tsx', '--input-type=module', '--eval', program]
  return spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] })
}

function isLocked(work: string, seconds: number): boolean {
  return spawnSync('flock', ['-w', String(seconds), `${work}/lock`, 'true']).status !== 0
}

it('H1: which walls stand is told in words', () => {
  const { standing, missing } = describeWalls({
    by: undefined,
    network: false,
    files: false,
    processes: false,
    limits: true,
    processCount: false,
    diesWithParent: true,
  })
  expect(missing).toEqual(['network', 'files', 'processes', 'limit of processes'])
  expect(standing).toEqual(['limits of memory and CPU', 'end with its parent'])
})
