import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Frame } from './frame.ts'
import { openJournal } from './journal.ts'
import {
  continueNotes,
  type JournalContents,
  type JournalHeader,
  type JournalPaths,
  readContents,
} from './journal-index.ts'

const scratch = (): JournalPaths => {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-index-'))
  return { journal: join(folder, 'journal.frames'), index: join(folder, 'journal.index') }
}

/** A tree of one sampled node, or the record of its group. */
function frames(group: number): readonly Frame[] {
  const header: JournalHeader = {
    kind: 'tree',
    tree: {
      header: { id: `g${group}/0` },
      nodes: [{ origin: 'sampled', ids: 0 }],
      trajectories: [{ usage: { prompt: 7, sampled: group } }],
    },
  }
  const record = { id: `g${group}`, order: group, members: [], unscored: [] }
  return [
    { header, arrays: [new Int32Array(group)] },
    { header: { kind: 'group', group: record }, arrays: [] },
  ]
}

async function append({ journal }: JournalPaths, ...groups: readonly number[]): Promise<void> {
  await using open = await openJournal(journal)
  for (const group of groups) for (const frame of frames(group)) await open.append(frame)
}

const listed = ({ trees, records }: JournalContents) => ({
  trees: [...trees],
  groups: [...records.keys()],
})

/** What the journal holds, read without any index. */
async function whole({ journal }: JournalPaths): Promise<object> {
  return listed(await readContents({ journal, index: `${journal}.none` }))
}

describe('the index of a journal', () => {
  it('that tells of more than the journal still holds is not believed', async () => {
    const paths = scratch()
    await append(paths, 1, 2, 3)
    await readContents(paths, 0)
    truncateSync(paths.journal, statSync(paths.journal).size - 1)
    expect(listed(await readContents(paths))).toEqual(await whole(paths))
  })

  it('lists what reading the whole journal lists, also when that has grown', async () => {
    const paths = scratch()
    await append(paths, 1, 2, 3)
    expect(listed(await readContents(paths, 0))).toEqual(await whole(paths))
    await append(paths, 4)
    expect(listed(await readContents(paths))).toEqual(await whole(paths))
    expect(listed(await readContents(paths, 0))).toEqual(await whole(paths))
    await append(paths, 5, 2)
    expect(listed(await readContents(paths))).toEqual(await whole(paths))
  })

  it('is read instead of the journal: damage before its end is not met', async () => {
    const paths = scratch()
    await append(paths, 1, 2, 3)
    const before = listed(await readContents(paths, 0))
    const bytes = readFileSync(paths.journal)
    bytes[40] = bytes[40]! ^ 0xff
    writeFileSync(paths.journal, bytes)
    expect(listed(await readContents(paths))).toEqual(before)
    await expect(whole(paths)).rejects.toThrow('damaged at byte')
  })

  it('of another journal is thrown away and made anew', async () => {
    const [paths, other] = [scratch(), scratch()]
    await append(paths, 1, 2, 3)
    await append(other, 9)
    await readContents(paths, 0)
    writeFileSync(paths.journal, readFileSync(other.journal))
    expect(listed(await readContents(paths))).toEqual(await whole(other))
    expect(existsSync(paths.index)).toBe(false)
  })

  it('that is damaged or cut is thrown away and made anew', async () => {
    const paths = scratch()
    await append(paths, 1, 2, 3)
    await readContents(paths, 0)
    appendFileSync(paths.index, 'not a frame, and longer than eight bytes')
    expect(listed(await readContents(paths, 0))).toEqual(await whole(paths))
    writeFileSync(paths.index, readFileSync(paths.index).subarray(0, 60))
    expect(listed(await readContents(paths, 0))).toEqual(await whole(paths))
  })

  it('stays whole where a reader notes what the writer has not written yet', async () => {
    const paths = scratch()
    const writer = await openJournal(paths.journal)
    const notes = (await continueNotes(paths, writer.size, 0))!
    for (const frame of frames(1)) notes.add(frame, await writer.append(frame))
    await readContents(paths, 0)
    const noted = readFileSync(paths.index)
    await notes.write()
    for (const frame of frames(2)) notes.add(frame, await writer.append(frame))
    await notes.write()
    await writer[Symbol.asyncDispose]()
    expect(readFileSync(paths.index).subarray(0, noted.length)).toEqual(noted)
    expect(listed(await readContents(paths))).toEqual(await whole(paths))
    expect(existsSync(paths.index)).toBe(true)
  })

  it('is written by the writer once a stretch is worth it, however many frames that takes', async () => {
    const paths = scratch()
    const writer = await openJournal(paths.journal)
    const notes = (await continueNotes(paths, writer.size, 100_000))!
    const sizes = new Set<number>()
    for (let group = 0; group < 1500; group++) {
      for (const frame of frames(group % 3)) notes.add(frame, await writer.append(frame))
      await notes.writeFull()
      sizes.add(existsSync(paths.index) ? readFileSync(paths.index).length : 0)
    }
    await writer[Symbol.asyncDispose]()
    // Nothing at first, then more than one part.
    expect(sizes.size).toBeGreaterThan(2)
    expect(listed(await readContents(paths))).toEqual(await whole(paths))
    expect(existsSync(paths.index)).toBe(true)
  })

  it('has every part of a writer that does not wait for the one before', async () => {
    const paths = scratch()
    const writer = await openJournal(paths.journal)
    const notes = (await continueNotes(paths, writer.size, 0))!
    const writing: Promise<void>[] = []
    for (let group = 0; group < 20; group++) {
      for (const frame of frames(group)) notes.add(frame, await writer.append(frame))
      writing.push(notes.write())
    }
    await Promise.all(writing)
    await writer[Symbol.asyncDispose]()
    expect(await continueNotes(paths, writer.size)).toBeDefined()
    expect(listed(await readContents(paths))).toEqual(await whole(paths))
  })

  it('is kept by the writer, which stops where it would lag behind', async () => {
    const paths = scratch()
    const writer = await openJournal(paths.journal)
    const notes = (await continueNotes(paths, writer.size, 0))!
    for (const frame of [...frames(1), ...frames(2)]) notes.add(frame, await writer.append(frame))
    await notes.write()
    await writer[Symbol.asyncDispose]()
    expect(listed(await readContents(paths))).toEqual(await whole(paths))
    expect(await continueNotes(paths, writer.size)).toBeDefined()
    await append(paths, 3)
    expect(await continueNotes(paths, readFileSync(paths.journal).length)).toBeUndefined()
  })
})
