import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { bundled } from '../../../test/bundled.ts'
import { type LockClock, lockFile, mayBeHeld } from './lock.ts'

const scratch = (): string => join(mkdtempSync(join(tmpdir(), 'espalier-lock-')), 'writer.lock')

const deadPid = (): number => spawnSync(process.execPath, ['-e', '']).pid

/** The lock as it stands in the source, for processes that know no TypeScript. */
const module = await bundled(new URL('./lock.ts', import.meta.url))

/**
 * Processes that wait for one word and then all want one lock, again and again: whoever gets it makes sure
 * to be alone, gives it back or dies with it. Gives what each of them said.
 */
async function raceFor(path: string, count: number): Promise<readonly string[]> {
  const program = `
    import { rmSync, writeFileSync } from 'node:fs'
    import { once } from 'node:events'
    import { lockFile } from ${JSON.stringify(module)}
    const inside = ${JSON.stringify(`${path}.inside`)}
    process.stdout.write('ready')
    await once(process.stdin, 'data')
    const said = new Set()
    for (let round = 0; round < 20; round++) {
      try {
        const held = await lockFile(${JSON.stringify(path)})
        // Fails where another is in here at the same time.
        writeFileSync(inside, '', { flag: 'wx' })
        await new Promise(resolve => setImmediate(resolve))
        rmSync(inside)
        said.add('held')
        if (round % 3 === 0) break
        await held[Symbol.asyncDispose]()
      } catch (error) {
        said.add(error.name === 'LockedError' ? 'refused' : String(error))
      }
    }
    process.stdout.write([...said].join(';'), () => process.kill(process.pid, 'SIGKILL'))`
  const words = ['--input-type=module', '--eval', program]
  const racers = Array.from({ length: count }, () =>
    spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] }),
  )
  await Promise.all(racers.map(child => once(child.stdout, 'data')))
  const told = racers.map(async child => {
    let said = ''
    child.stdout.on('data', part => (said += part))
    child.stdin.write('go')
    await once(child, 'close')
    return said.split(';')
  })
  return (await Promise.all(told)).flat()
}

const namespace = [
  ...['unshare', ...(process.getuid?.() === 0 ? [] : ['--map-root-user'])],
  ...['--pid', '--fork', '--kill-child'],
] as const
const hasNamespaces = spawnSync(namespace[0], [...namespace.slice(1), 'true']).status === 0

/** A clock whose time passes as fast as somebody waits for it; `meanwhile` happens at every wait. */
function fastClock(meanwhile: () => Promise<unknown> = async () => undefined): LockClock {
  let now = 0
  return {
    now: () => now,
    async wait(milliseconds) {
      now += milliseconds
      await meanwhile()
    },
    every: () => () => undefined,
  }
}

/** A process in a namespace of its own that holds a lock, and beats, checks it or dies when it is told to. */
async function holdElsewhere(path: string) {
  const program = `
    import { createInterface } from 'node:readline'
    import { lockFile } from ${JSON.stringify(module)}
    let now = 0
    let beat
    const clock = { now: () => now, wait: async () => {}, every: (_, work) => ((beat = work), () => {}) }
    const held = await lockFile(${JSON.stringify(path)}, clock)
    console.log('held')
    for await (const word of createInterface({ input: process.stdin })) {
      if (word === 'beat') beat()
      // Only what was written before is there when the clock has moved.
      now += 60_000
      console.log(await held.check().then(() => 'still', error => error.message))
    }`
  const words = [...namespace.slice(1), process.execPath, '--input-type=module', '--eval', program]
  const child = spawn(namespace[0], words, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  expect((await lines.next()).value).toBe('held')
  return {
    async tell(word: string): Promise<string> {
      child.stdin.write(`${word}\n`)
      return (await lines.next()).value
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await once(child, 'close')
    },
  }
}

describe.runIf(hasNamespaces)('H5: a lock of a process in another PID namespace', () => {
  it('is held while it beats, and taken over 30 s of the reader’s clock after its last beat', async () => {
    const path = scratch()
    {
      await using holder = await holdElsewhere(path)
      const clock = fastClock(() => holder.tell('beat'))
      await expect(lockFile(path, clock)).rejects.toThrow(/process \d+ on .*; it beats/)
      expect(clock.now()).toBeLessThan(30_000)
      expect(await mayBeHeld(path, clock)).toBe(true)
    }
    const clock = fastClock()
    expect(await mayBeHeld(path, clock)).toBe(true)
    await using held = await lockFile(path, clock)
    expect(clock.now()).toBe(30_000)
    await held.check()
  })

  it('that was taken over while it stood still is not written under any more', async () => {
    const path = scratch()
    await using holder = await holdElsewhere(path)
    expect(await holder.tell('check')).toBe('still')
    const held = await lockFile(path, fastClock())
    expect(await holder.tell('check')).toContain(
      `process ${process.pid} on ${hostname()} took it over, so that this process writes no more`,
    )
    await held[Symbol.asyncDispose]()
    expect(readdirSync(dirname(path))).toEqual([])
    // Its time had come: it does not hold the lock again because that is free.
    expect(await holder.tell('check')).toContain('took it over')
  })
})

describe('a lock', () => {
  it('H5: of another boot or machine is free for one of many when it has not beaten for 30 s', async () => {
    const path = scratch()
    const dead = { pid: process.pid, host: hostname(), started: '1', boot: 'before', namespace: '' }
    writeFileSync(path, JSON.stringify({ ...dead, id: 'x', beat: 12 }))
    const clock = fastClock()
    expect(await mayBeHeld(path, clock)).toBe(true)
    await clock.wait(31_000)
    expect(await mayBeHeld(path, clock)).toBe(false)
    const tries = await Promise.allSettled(
      Array.from({ length: 8 }, () => lockFile(path, fastClock())),
    )
    const held = tries.filter(each => each.status === 'fulfilled')
    expect(held).toHaveLength(1)
    await held[0]!.value[Symbol.asyncDispose]()
    expect(readdirSync(dirname(path))).toEqual([])
  })

  it('H5: that cannot be read is refused, not waited for', async () => {
    const path = scratch()
    symlinkSync('/nowhere', path)
    await expect(lockFile(path)).rejects.toThrow(`${path} is a link, not a plain file`)
    expect(await mayBeHeld(path)).toBe(true)
  })

  it('H5: of a process that is gone is held by one of many processes at a time', async () => {
    const path = scratch()
    writeFileSync(path, JSON.stringify({ pid: deadPid(), host: hostname(), started: '1' }))
    const said = await raceFor(path, 12)
    expect([...new Set(said)].filter(each => each !== 'held' && each !== 'refused')).toEqual([])
    expect(said).toContain('held')
    await using _held = await lockFile(path)
  })

  it('is held by one at a time and given back', async () => {
    const path = scratch()
    {
      await using _held = await lockFile(path)
      await expect(lockFile(path)).rejects.toThrow(`is being written by process ${process.pid}`)
    }
    expect(readdirSync(dirname(path))).toEqual([])
    await using _again = await lockFile(path)
  })

  it('of a process that is gone is taken over, by one of many', async () => {
    const path = scratch()
    for (const left of [
      JSON.stringify({ pid: deadPid(), host: hostname(), started: '1' }),
      JSON.stringify({ pid: process.pid, host: hostname(), started: 'long before' }),
      '{"pid": 12',
      '',
    ]) {
      writeFileSync(path, left)
      const tries = await Promise.allSettled(Array.from({ length: 8 }, () => lockFile(path)))
      const held = tries.filter(each => each.status === 'fulfilled')
      expect(held).toHaveLength(1)
      await held[0]!.value[Symbol.asyncDispose]()
      expect(existsSync(path)).toBe(false)
    }
  })

  it.runIf(process.platform === 'linux')(
    'of a process that was killed is taken over before its parent has asked how it ended',
    async () => {
      const path = scratch()
      // The parent becomes a program that never asks, so that its child stays in the process table.
      const program = 'sleep 60 & echo $!; exec sleep 60'
      const parent = spawn('sh', ['-c', program], { stdio: ['ignore', 'pipe', 'inherit'] })
      try {
        const pid = Number(String((await once(parent.stdout, 'data'))[0]))
        const stat = (): string => readFileSync(`/proc/${pid}/stat`, 'utf8')
        const started = stat()
          .slice(stat().lastIndexOf(')') + 2)
          .split(' ')[19]
        writeFileSync(path, JSON.stringify({ pid, host: hostname(), started }))
        await expect(lockFile(path)).rejects.toThrow(`end it with \`kill ${pid}\``)
        process.kill(pid, 'SIGKILL')
        await expect.poll(stat).toContain(') Z ')
        await using _held = await lockFile(path)
      } finally {
        parent.kill('SIGKILL')
      }
    },
  )

  it('of another machine is left alone, with a word on how to remove it', async () => {
    const path = scratch()
    writeFileSync(path, JSON.stringify({ pid: 1, host: 'elsewhere', started: '' }))
    await expect(lockFile(path)).rejects.toThrow(
      `process 1 on elsewhere; if that is gone, remove ${path}`,
    )
  })
})
