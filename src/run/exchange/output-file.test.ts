import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { chainGroup, toExport } from '../../../test/export-runs.ts'
import { writeTo } from '../../../test/memory-output.ts'
import { formatNamed, formats } from '../sinks/formats/registry.ts'
import { openOutputFile, refuseForeign } from './output-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-output-'))

describe('a file that is written', () => {
  it.each([
    ['tasks', '{"id":"a","prompt":"How many?"}\n'],
    ['tasks with a task', '{"id":"a","task":"Count."}\n'],
    ['notes', '# Notes\n'],
    ['a config', '{"policy": "embedded"}\n'],
    ['another page', '<!doctype html>\n<title>Mine</title>\n'],
  ])('is not written over %s', (name, text) => {
    const path = join(folder, name)
    writeFileSync(path, text)
    for (const kind of ['export', 'page'] as const) {
      expect(() => refuseForeign('--out', path, kind)).toThrow(
        `--out ${path} is there already and no ${kind} of Espalier's: remove it or choose another file`,
      )
    }
  })

  it.each(formats.map(({ name }) => name))('is written over an older export to %s', async name => {
    const path = join(folder, `${name}.old`)
    for (const groups of [[], [toExport(chainGroup([1, 0]))]]) {
      writeFileSync(path, (await writeTo(formatNamed(name), groups)).bytes)
      expect(() => refuseForeign('--out', path, 'export')).not.toThrow()
    }
  })

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
