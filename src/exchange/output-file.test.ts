import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openOutputFile } from './output-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-output-'))

describe('a file that is written', () => {
  it('appears whole, or not at all where it is given up', async () => {
    const [kept, dropped] = ['kept', 'dropped'].map(name => join(folder, 'new', name))
    const first = await openOutputFile(kept!, 'whole')
    await first.write('one')
    expect(existsSync(kept!)).toBe(false)
    await first.close()
    expect(readFileSync(kept!, 'utf8')).toBe('one')
    const second = await openOutputFile(dropped!, 'whole')
    await second.write('two')
    await second.discard()
    expect([existsSync(dropped!), existsSync(`${dropped}.partial`)]).toEqual([false, false])
  })

  it.runIf(existsSync('/dev/full'))('is named where its disk is full', async () => {
    const file = await openOutputFile('/dev/full', 'growing')
    const filling = async (): Promise<void> => {
      for (let chunk = 0; chunk < 100; chunk++) await file.write(new Uint8Array(100_000))
      await file.close()
    }
    await expect(filling()).rejects.toThrow(
      '/dev/full cannot be written: the disk is full; make room (ENOSPC)',
    )
  })

  it.runIf(existsSync('/proc/self'))(
    'is named as the user named it where none can be',
    async () => {
      await expect(openOutputFile('/proc/x', 'whole')).rejects.toThrow(
        '/proc/x cannot be written: its folder takes no new files; choose another --out (ENOENT)',
      )
    },
  )
})
