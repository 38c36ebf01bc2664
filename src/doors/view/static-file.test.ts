import { cpSync, mkdtempSync, readFileSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { environment } from '../../engine/environments/environment.ts'
import { roll } from '../../index.ts'
import { runPaths } from '../../run/store/run-folder.ts'
import { scripted } from '../../testing.ts'
import { Library } from './library.ts'
import { type StaticWritten, writeStatic } from './static-file.ts'

const hostile = '</script><script src="https://elsewhere.example/x.js"></script><!-- '

const world = environment({
  name: 'hostile',
  task: { '~standard': { version: 1, vendor: 'test', validate: value => ({ value }) } },
  open: () => ({ opening: [{ role: 'user', content: hostile }] }),
  reward: { right: () => 1 },
})

const folder = mkdtempSync(join(tmpdir(), 'espalier-static-'))
const tasks = ['a', 'b', 'c'].map(id => ({ id }))

/** A page of a run in which task and model say what would end a script. */
async function written(bytes: number): Promise<StaticWritten & { page: string }> {
  await using library = new Library()
  await library.add(join(folder, 'run'))
  const file = join(folder, 'new', `${bytes}.html`)
  return { ...(await writeStatic(library, file, { bytes })), page: readFileSync(file, 'utf8') }
}

beforeAll(async () => {
  const policy = await scripted([hostile])
  const options = { policy, group: 1, out: join(folder, 'run') }
  for await (const _ of roll(world, tasks, options));
})

it('[V2] a group is read once for all of its pages', async () => {
  const copy = join(folder, 'copy')
  cpSync(join(folder, 'run'), copy, { recursive: true })
  await using library = new Library()
  await library.add(copy)
  const run = await library.open(library.names[0]!)
  await run.looked()
  const [first] = (await run.group('a')).members
  truncateSync(runPaths(copy).journal, 0)
  expect((await run.trajectory(first!.id)).id).toBe(first!.id)
  expect((await run.tree(first!.tree)).id).toBe(first!.tree)
  await expect(run.group('b')).rejects.toThrow()
})

describe('a page in one file', () => {
  let page: string
  let blocks: RegExpExecArray[]
  beforeAll(async () => {
    page = (await written(1e6)).page
    blocks = [...page.matchAll(/<script type="application\/octet-stream"[^>]*>([^<]*)</g)]
  })

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

  it('holds no more than was asked for, and as much of that as fits', async () => {
    const whole = await written(1e6)
    expect([whole.groups, whole.leftOut]).toEqual([3, 0])
    const most = Math.max(...blocks.slice(1).map(([, data]) => data!.length)) - 1
    const less = await written(most)
    expect([less.groups, less.leftOut]).toEqual([2, 1])
    const none = await written(0)
    expect([none.groups, none.leftOut]).toEqual([0, 3])
  })
})
