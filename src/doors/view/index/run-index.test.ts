import { appendFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { environment } from '../../../engine/environments/environment.ts'
import { roll, tool } from '../../../index.ts'
import { runPaths } from '../../../run/store/run-folder.ts'
import { scripted } from '../../../testing.ts'
import { RunIndex } from './run-index.ts'
import { TextSearch } from './search-text.ts'

const world = environment({
  name: 'letters',
  task: { '~standard': { version: 1, vendor: 'test', validate: value => ({ value }) } },
  open: () => ({
    opening: [{ role: 'user', content: 'Say a letter.' }],
    tools: { look: tool({ inputSchema: { type: 'object' }, execute: () => 'nothing' }) },
  }),
  reward: { letter: ({ answer }) => answer.length },
})

/** A run of so many groups of two; each attempt calls a tool, then answers. */
async function rolled(tasks: number): Promise<string> {
  const out = join(mkdtempSync(join(tmpdir(), 'espalier-view-')), 'run')
  const call = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
  const policy = await scripted([call, 'Bee'])
  for await (const _ of roll(world, Array(tasks).fill({}), { policy, group: 2, out }));
  return runPaths(out).journal
}

async function looked(path: string): Promise<RunIndex> {
  const index = new RunIndex(path)
  await index.refresh()
  while (await index.look(new AbortController().signal));
  return index
}

describe('[V2] the index of a run', () => {
  it('knows groups before it has looked into a tree', async () => {
    await using index = new RunIndex(await rolled(3))
    await index.refresh()
    expect(index.progress).toMatchObject({ groups: 3, trees: 6, trajectories: 6, looked: 0 })
    expect(index.rows().every(({ tokens, opening }) => tokens === null && opening === '')).toBe(
      true,
    )
    while (await index.look(new AbortController().signal));
    expect(index.progress.looked).toBe(6)
    expect(index.rows().every(({ tokens }) => tokens !== null)).toBe(true)
    expect(index.rows()[0]).toMatchObject({ opening: 'Say a letter.', outcomes: ['completed'] })
    expect(new Set(index.rows().flatMap(({ tools }) => tools))).toEqual(new Set(['look']))
  })

  it('follows a journal that grows, and reads only what was added', async () => {
    const whole = readFileSync(await rolled(4))
    const path = join(mkdtempSync(join(tmpdir(), 'espalier-view-')), 'journal.frames')
    writeFileSync(path, whole.subarray(0, Math.floor(whole.length / 2)))
    await using index = await looked(path)
    const { trees, groups } = index.progress
    expect(trees).toBeLessThan(8)
    appendFileSync(path, whole.subarray(Math.floor(whole.length / 2)))
    await index.refresh()
    expect(index.progress.trees).toBe(8)
    expect(index.progress.groups).toBe(4)
    expect(index.progress.looked).toBe(trees)
    expect(groups).toBeLessThan(4)
  })

  it('keeps what came before damage, and says where that is', async () => {
    const path = await rolled(4)
    const bytes = readFileSync(path)
    bytes.fill(0x58, Math.floor(bytes.length / 2), Math.floor(bytes.length / 2) + 8)
    writeFileSync(path, bytes)
    await using index = await looked(path)
    expect(index.progress.damage).toMatch(/is damaged at byte \d+: .*truncate -s/)
    expect(index.progress.looked).toBe(index.progress.trees)
    expect(index.progress.trees).toBeGreaterThan(0)
    for (const { id } of index.rows()) expect(index.group(id)).toBeDefined()
  })

  it('finds what was said, not what messages are made of', async () => {
    await using index = await looked(await rolled(2))
    const search = new TextSearch(index)
    expect((await search.find('BEE')).groups.size).toBeGreaterThan(0)
    expect((await search.find('say a letter')).groups.size).toBe(2)
    for (const text of ['assistant', 'inputSchema', 'nowhere']) {
      expect((await search.find(text)).groups.size, text).toBe(0)
    }
  })
})
