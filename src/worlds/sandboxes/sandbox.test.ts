import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { runInside } from './run.ts'
import { openSandbox, type SandboxOptions } from './sandbox.ts'
import { describeWalls, findWalls, withoutWalls } from './walls.ts'

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

  it('an open network brings what hosts are found by, and nothing else of this machine', async () => {
    const known = ['/etc/resolv.conf', '/etc/hosts'].filter(path => existsSync(path))
    const script = 'ls /etc/resolv.conf /etc/hosts /etc/passwd /etc/shadow /etc/ssl/private'
    const open = await inside(script, { network: 'outside' })
    expect(open.output.trim().split('\n').toSorted()).toEqual(known.toSorted())
    expect((await inside(script)).output).toBe('')
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

  it('no descriptor that this process inherited leads out', async () => {
    const outside = mkdtempSync(join(folder, 'outside-'))
    writeFileSync(join(outside, 'key'), 'secret')
    const script = 'cat /proc/self/fd/40/key; [ -d /proc/self/fd/40 ] || echo nothing'
    const inherited = { stdio: ['ignore', 'pipe', 'inherit', ...Array(37).fill('ignore')] }
    inherited.stdio[40] = openSync(outside, 'r')
    const parent = spawn(process.execPath, wordsOfParent(script), inherited as SpawnOptions)
    expect(await textOf(parent)).toBe('nothing\n')
  })

  it.runIf(walls.by === 'unshare')(
    'what is mounted in a readable folder is only read',
    async () => {
      const readable = mkdtempSync(join(folder, 'readable-'))
      const mounted = join(readable, 'a b')
      mkdirSync(mounted)
      const script = `echo x > '${mounted}/x' || cat '${mounted}/known'`
      const words = wordsOfParent(script, { readable: [readable] })
      const mount = `mount -t tmpfs none '${mounted}' && echo known > '${mounted}/known' && exec "$@"`
      const namespace = ['--map-root-user', '--mount', '/bin/sh', '-c', mount, 'sh']
      const parent = spawn('unshare', [...namespace, process.execPath, ...words])
      expect(await textOf(parent)).toBe('known\n')
    },
  )

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

  it('variables are for the command alone: what builds the walls runs nothing that they name', async () => {
    const planted = mkdtempSync(join(folder, 'planted-'))
    const trace = join(planted, 'trace')
    for (const name of ['setpriv', 'sh', 'unshare', 'bwrap', 'mount', 'prlimit', 'perl']) {
      const path = join(planted, name)
      writeFileSync(path, `#!/bin/sh\ntouch ${trace}\nexit 1\n`, { mode: 0o755 })
    }
    const outside = { PATH: planted, LD_PRELOAD: '/nowhere.so', PERL5OPT: '-Mnowhere', ENV: trace }
    const odd = { UID: '7', 'a.b': "it's\n", IFS: 'x', PLAIN: '$(id) `id` "' }
    const variables = { ...outside, ...odd }
    const asked = { seconds: 20, outputBytes: 10_000 }
    const { output } = await runInside(openSandbox({ variables }), ['/usr/bin/env', '-0'], asked)
    expect(existsSync(trace)).toBe(false)
    for (const [name, value] of Object.entries({ ...outside, ...odd })) {
      expect(output.split('\0')).toContain(`${name}=${value}`)
    }
    expect(output).not.toContain('ESPALIER')
    expect((await runInside(openSandbox({ variables: { A: '1' } }), ['a=b'], asked)).code).toBe(127)
  })

  it.runIf(walls.sockets)('no socket of another kind is made, in no way', async () => {
    const script = `my @told = map { socket(S, $_, 1, 0) ? 0 : $! + 0 } 1, 2, 10, 16, 17, 38, 40, 44;
      print "@told ", syscall(425, 1, 0) < 0 ? $! + 0 : 'ring'`
    const { output } = await inside(`perl -e '${script}'`)
    expect(output).toMatch(/^0 0 0 \d+ 97 97 97 97 38$/)
  })

  it.runIf(walls.keys)('no key is read from outside, nor left for the next attempt', async () => {
    const script = `my $n = 'espalier'; my $t = 'user'; my $v = 'secret';
      syscall(250, 1, 0); syscall(248, $t, $n, $v, 6, -3) > 0 or die; exec @ARGV`
    const look = `grep -c espalier /proc/keys; perl -e 'my ($t, $n) = ("user", "espalier");
      print syscall(249, $t, $n, 0, 0) < 0 ? $! + 0 : "found"'`
    const words = ['perl', '-e', script, process.execPath, ...wordsOfParent(look)]
    if (process.arch !== 'x64') return
    expect(await textOf(spawn(words[0]!, words.slice(1)))).toBe('0\n38')
  })

  it.runIf(walls.memory)('files in memory count as memory, of all processes together', async () => {
    const fill = 'head -c 150000000 /dev/zero > /tmp/a & head -c 150000000 /dev/zero > /tmp/b'
    const limits = { memory: 200, temporary: 1000 }
    const { output, code } = await inside(`(${fill}; wait) || true; cat /tmp/a /tmp/b | wc -c`, {
      limits,
    })
    expect(code === 0 ? Number(output) : 0).toBeLessThan(200 * 2 ** 20)
    const held = `my $b = 'x' x 1e6; for (1 .. 8) { my $n = 'm'; my $f = syscall(319, $n, 0);
      open(my $h, '>&=', $f); push @h, $h; print $h $b for 1 .. 50 } print 'HELD'`
    expect((await inside(`perl -e '${held}'`, { limits })).output).not.toContain('HELD')
  })

  it.runIf(walls.processCount)('a fork bomb ends with its command', async () => {
    const bomb = 'b() { b | b & }; b; sleep 1; echo over'
    const limits = { processes: 40, cpu: 5 }
    const { end } = await inside(bomb, { limits }, { seconds: 3 })
    expect(['exited', 'out-of-time']).toContain(end)
    const { output } = await inside('echo again', { limits })
    expect(output).toBe('again\n')
  })

  it('/proc shows one’s own processes and changes nothing', async () => {
    const script = `ls /proc | grep -c '^[0-9]'; for f in sysrq-trigger sys/kernel/hostname sys/vm/drop_caches; do
      (echo 1 > /proc/$f) 2>/dev/null && echo "wrote $f"; done
      head -c 1 /proc/kcore 2>/dev/null; ls /proc/1/root/root 2>/dev/null; ls /proc/*/cwd/root 2>/dev/null; true`
    const { output } = await inside(script)
    const [count, ...rest] = output.trim().split('\n')
    expect(Number(count)).toBeLessThan(12)
    expect(rest).toEqual([])
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

describe.runIf(withoutWalls().walls.diesWithParent)('without walls', () => {
  const builder = withoutWalls()

  it('what was started in the background ends with the command, and is not waited for', async () => {
    const work = mkdtempSync(join(folder, 'work-'))
    const script = `(exec 9>${work}/lock; flock 9; sleep 1000) & echo started`
    expect(await inside(script, { builder })).toMatchObject({ end: 'exited', output: 'started\n' })
    expect(isLocked(work, 20)).toBe(false)
  })

  it('a command whose time is over ends with all that it started', async () => {
    const tooLong = { seconds: 0.5 }
    const children = await inside('sleep 1000; echo more', { builder }, tooLong)
    expect(children).toMatchObject({ end: 'out-of-time', output: '' })
    // Another session is out of reach, and must not be waited for.
    const left = await inside('echo said; setsid sleep 20; echo more', { builder }, tooLong)
    expect(left).toMatchObject({ end: 'out-of-time', output: 'said\n' })
  })
})

/** A process that starts a command inside, which holds a lock and would go on without end. */
function startParent(work: string): ChildProcess {
  const script = `exec 9>${work}/lock; flock 9; echo ready; while :; do sleep 1; done`
  const words = wordsOfParent(script, { writable: [work] })
  return spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] })
}

/** The words of a process that starts a script inside and prints what it does. */
function wordsOfParent(script: string, options: SandboxOptions = {}): readonly string[] {
  const url = new URL('./sandbox.ts', import.meta.url).href
  const program = `
    const { openSandbox } = await import(${JSON.stringify(url)})
    const sandbox = openSandbox(${JSON.stringify(options)})
    const child = sandbox.spawn(['/bin/sh', '-c', ${JSON.stringify(script)}])
    child.stdout.pipe(process.stdout)
    child.stderr.pipe(process.stderr)`
  return ['--import', 'tsx', '--input-type=module', '--eval', program]
}

async function textOf(child: ChildProcess): Promise<string> {
  let text = ''
  child.stdout!.on('data', (chunk: Buffer) => (text += chunk))
  await once(child, 'close')
  return text
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
    memory: false,
    processCount: false,
    sockets: false,
    keys: true,
    diesWithParent: true,
  })
  expect(missing).toEqual([
    ...['network', 'files', 'processes', 'limit of all memory together', 'limit of processes'],
    'sockets of other kinds (vsock)',
  ])
  expect(standing).toEqual([
    ...['limits of memory and CPU', 'keyrings of the kernel', 'end with its parent'],
  ])
})
