import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { newManifest } from './manifest.ts'
import { createRun, readManifest, runPaths, standingOf, writeManifest } from './run-folder.ts'
import { openRunReader, openRunWriter } from './store.ts'

async function folderOf(): Promise<string> {
  const folder = join(mkdtempSync(join(tmpdir(), 'espalier-odd-')), 'run')
  await using _lock = await createRun(folder, newManifest('roll', {}))
  return folder
}

const own = [
  'journal.frames',
  'events.jsonl',
  'report.json',
  'writer.lock',
  'metrics.jsonl',
  'trackers.json',
]

describe('H7: a run folder of somebody else', () => {
  it.each(own)('whose %s is a link out of it, or a pipe, is not read', async name => {
    const folder = await folderOf()
    const path = join(folder, name)
    symlinkSync('/etc/hostname', path)
    await expect(openRunReader(folder)).rejects.toThrow(`${path} is a link`)
    const piped = await folderOf()
    spawnSync('mkfifo', [join(piped, name)])
    await expect(readManifest(piped)).rejects.toThrow('is a named pipe')
  })

  it('whose manifest is a pipe, or whose checkpoints lead out of it, is not read', async () => {
    const piped = mkdtempSync(join(tmpdir(), 'espalier-odd-'))
    spawnSync('mkfifo', [runPaths(piped).manifest])
    await expect(readManifest(piped)).rejects.toThrow('run.json is a named pipe')
    const outward = await folderOf()
    symlinkSync('/etc', runPaths(outward).checkpoints)
    await expect(readManifest(outward)).rejects.toThrow('checkpoints is a link')
    const inner = await folderOf()
    const step = join(runPaths(inner).checkpoints, '000001')
    mkdirSync(step, { recursive: true })
    symlinkSync('/etc/hostname', join(step, 'config.json'))
    await expect(readManifest(inner)).rejects.toThrow('config.json is a link')
  })

  it('can name no file that a writer writes over, whatever drafts and indexes lie in it', async () => {
    const folder = await folderOf()
    const home = join(dirname(folder), 'home')
    for (const name of ['run.json.next', 'run.json.draft', 'report.json.next', 'notes.txt']) {
      symlinkSync(home, join(folder, name))
    }
    const manifest = await readManifest(folder)
    await writeManifest(folder, { ...manifest, status: 'stopped', reason: '$(touch pwned)' })
    await using _writer = await openRunWriter(folder)
    expect(() => readFileSync(home)).toThrow('ENOENT')
    writeFileSync(home, 'mine')
    await writeManifest(folder, manifest)
    expect(readFileSync(home, 'utf8')).toBe('mine')
    expect(await standingOf(folder, manifest)).toBe('running')
  })
})
