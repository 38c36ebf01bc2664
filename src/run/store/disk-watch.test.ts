import { describe, expect, it } from 'vitest'
import { StoreError } from '../../base/core/files/store-error.ts'
import { DiskWatch } from './disk-watch.ts'

/** A disk that can be filled, and a watch whose waits end by `pass`. */
function openDisk() {
  const told: string[] = []
  const waits: (() => void)[] = []
  const disk = {
    isFull: false,
    written: [] as string[],
    async write(line: string) {
      const cause = Object.assign(new Error('no space'), { code: 'ENOSPC' })
      if (disk.isFull) throw new StoreError('run/journal', { cause, keeps: true })
      disk.written.push(line)
    },
  }
  const watch = new DiskWatch({
    tell: line => told.push(line),
    wait: () => new Promise(resolve => waits.push(resolve)),
  })
  const pass = async () => {
    for (const resolve of waits.splice(0)) resolve()
    await new Promise(setImmediate)
  }
  return { disk, watch, told, pass }
}

describe('a service over a disk that is full for a time', () => {
  it('takes nothing on, says so once, and goes on by itself with what it owes', async () => {
    const { disk, watch, told, pass } = openDisk()
    disk.isFull = true
    let rooms = 0
    watch.onRoom(() => rooms++)
    const closing = watch.keep(() => disk.write('close'))
    const other = watch.keep(() => disk.write('other'))
    await expect(watch.unlessFull(closing)).rejects.toMatchObject({ statusCode: 503 })
    await pass()
    expect(() => watch.check()).toThrow('the disk is full; make room (ENOSPC)')
    await expect(watch.unlessFull(other)).rejects.toThrow('goes on by itself')
    expect(told).toHaveLength(1)
    disk.isFull = false
    await pass()
    await Promise.all([closing, other])
    watch.check()
    expect([disk.written, rooms]).toEqual([['close', 'other'], 1])
    expect(told[1]).toBe('the run can be written again: it goes on')
  })

  it('refuses what can be asked again, and finds out by itself when there is room', async () => {
    const { disk, watch, pass } = openDisk()
    disk.isFull = true
    const probe = () => disk.write('')
    await expect(watch.once(() => disk.write('one'), probe)).rejects.toMatchObject({
      statusCode: 503,
    })
    disk.isFull = false
    await pass()
    watch.check()
    await watch.once(() => disk.write('one'), probe)
    expect(disk.written).toEqual(['', 'one'])
  })

  it('ends with the error and with how to go on', async () => {
    const { disk, watch, pass } = openDisk()
    disk.isFull = true
    const closing = watch.keep(() => disk.write('close'))
    const failure = closing.catch((error: unknown) => String(error))
    watch.end()
    await new Promise(setImmediate)
    await pass()
    expect(await failure).toMatch(/ENOSPC\)\. What was acknowledged is kept: started again with/)
  })

  it('does not wait for a run that another process took over', async () => {
    const { watch } = openDisk()
    const lost = new StoreError('run', { cause: new Error('taken over') })
    await expect(watch.keep(() => Promise.reject(lost))).rejects.toBe(lost)
    watch.check()
  })
})
