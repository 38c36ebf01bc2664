import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { environment } from '../environments/environment.ts'
import { roll } from '../index.ts'
import { scripted } from '../testing.ts'
import { Library } from './library.ts'
import { writeStatic } from './static-file.ts'

const hostile = '</script><script src="https://elsewhere.example/x.js"></script><!-- '

const world = environment({
  name: 'hostile',
  task: { '~standard': { version: 1, vendor: 'test', validate: value => ({ value }) } },
  open: () => ({ opening: [{ role: 'user', content: hostile }] }),
  reward: { right: () => 1 },
})

/** A page of a run in which task and model say what would end a script. */
async function written(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-static-'))
  const out = join(folder, 'run')
  const policy = await scripted([hostile])
  for await (const _ of roll(world, [{}], { policy, group: 1, out }));
  await using library = new Library()
  await library.add(out)
  await writeStatic(library, join(folder, 'page.html'), { bytes: 1e6 })
  return readFileSync(join(folder, 'page.html'), 'utf8')
}

describe('a page in one file', async () => {
  const page = await written()
  const blocks = [...page.matchAll(/<script type="application\/octet-stream"[^>]*>([^<]*)</g)]

  it('[V1] holds what was said as data that nothing can end', () => {
    expect(page).not.toContain('elsewhere.example')
    expect(blocks.length).toBeGreaterThan(1)
    expect(blocks.every(([, data]) => /^[A-Za-z0-9+/=]+$/.test(data!))).toBe(true)
  })

  it('[V3] gives that back as it was', () => {
    const texts = blocks.map(([, data]) => inflateRawSync(Buffer.from(data!, 'base64')).toString())
    expect(texts.some(text => text.includes(JSON.stringify(hostile).slice(1, -1)))).toBe(true)
  })

  it('[V3] names no file beside itself', () => {
    const named = [...page.matchAll(/<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)="([^"]*)"/g)]
    expect(named.map(([, url]) => url!).filter(url => !url.startsWith('data:'))).toEqual([])
  })
})
