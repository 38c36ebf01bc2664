import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bundled } from '../../../../test/bundled.ts'
import { appenderTo } from './appender.ts'

const scratch = (): string => join(mkdtempSync(join(tmpdir(), 'espalier-append-')), 'file.jsonl')

describe('an appender', () => {
  it('writes entries in the order of the calls and tells where each lies', async () => {
    const path = scratch()
    const file = appenderTo(path)
    const places = await Promise.all(['one\n', 'two\n', 'three\n'].map(file.append))
    expect(readFileSync(path, 'utf8')).toBe('one\ntwo\nthree\n')
    expect(places).toEqual([0, 4, 8])
  })

  it('begins a line of its own where a killed writer left half a one', async () => {
    const path = scratch()
    writeFileSync(path, '{"whole":1}\n{"ha')
    expect(await appenderTo(path).append('{"whole":2}\n')).toBe(17)
    expect(readFileSync(path, 'utf8')).toBe('{"whole":1}\n{"ha\n{"whole":2}\n')
  })

  it.runIf(process.platform === 'linux')(
    'H7: leaves nothing of an entry that did not fit, and goes on when there is room',
    async () => {
      const path = scratch()
      const module = await bundled(new URL('./appender.ts', import.meta.url))
      const program = `
        import { spawnSync } from 'node:child_process'
        import { readFileSync } from 'node:fs'
        import { appenderTo } from ${JSON.stringify(module)}
        process.on('SIGXFSZ', () => {})
        const limit = bytes => spawnSync('prlimit', ['--pid', String(process.pid), '--fsize=' + bytes + ':'])
        const file = appenderTo(${JSON.stringify(path)})
        await file.append('first\\n')
        limit(100)
        const refused = await file.append('x'.repeat(300) + '\\n').catch(error => error.name)
        const left = readFileSync(${JSON.stringify(path)}, 'utf8')
        limit('unlimited')
        await file.append('last\\n')
        console.log(JSON.stringify([refused, left, readFileSync(${JSON.stringify(path)}, 'utf8')]))`
      const words = ['--input-type=module', '--eval', program]
      const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' })
      expect(stderr).toBe('')
      expect(JSON.parse(stdout)).toEqual(['StoreError', 'first\n', 'first\nlast\n'])
    },
  )

  it('H7: writes through no link and waits for no pipe', async () => {
    const path = scratch()
    writeFileSync(`${path}.other`, 'theirs')
    symlinkSync(`${path}.other`, path)
    await expect(appenderTo(path).append('x')).rejects.toThrow(`${path} is a link`)
    expect(readFileSync(`${path}.other`, 'utf8')).toBe('theirs')
    expect(spawnSync('mkfifo', [`${path}.pipe`]).status).toBe(0)
    await expect(appenderTo(`${path}.pipe`).append('x')).rejects.toThrow('is a named pipe')
  })
})
