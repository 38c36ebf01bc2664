import { existsSync, mkdtempSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { StoreError } from '../../base/core/files/store-error.ts'
import { encodeFrame, type Frame } from './frame.ts'
import { openJournal } from './journal.ts'
import { journalMagic, readJournal } from './read-journal.ts'

const scratch = (): string => join(mkdtempSync(join(tmpdir(), 'espalier-journal-')), 'journal')

const frame = (number: number): Frame => ({
  header: { number },
  arrays: [Int32Array.from({ length: number % 50 }, (_, index) => index * number)],
})

async function write(path: string, numbers: readonly number[]): Promise<void> {
  await using journal = await openJournal(path)
  await Promise.all(numbers.map(number => journal.append(frame(number))))
}

async function read(path: string): Promise<number[]> {
  const found: number[] = []
  for await (const { frame } of readJournal(path)) {
    found.push((frame.header as { number: number }).number)
  }
  return found
}

const numbers = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => from + index)

describe('a journal', () => {
  it('[P1] gives back what was appended, in order, over several openings', async () => {
    const path = scratch()
    await write(path, numbers(40))
    await write(path, numbers(3, 40))
    expect(await read(path)).toEqual(numbers(43))
  })

  it('[P1] a frame without a form as bytes fails alone', async () => {
    const path = scratch()
    {
      await using journal = await openJournal(path)
      const first = journal.append(frame(1))
      const bad = journal.append({ header: {}, arrays: [new BigInt64Array(1) as never] })
      const last = journal.append(frame(3))
      await expect(bad).rejects.toThrow('a frame cannot carry a BigInt64Array')
      await Promise.all([first, last])
    }
    expect(await read(path)).toEqual([1, 3])
  })

  it('[P1] lets the event loop turn between batches of what was appended at once, and syncs it all', async () => {
    const path = scratch()
    await using journal = await openJournal(path)
    let turns = 0
    let isOver = false
    const turn = (): void => {
      turns++
      if (!isOver) setImmediate(turn)
    }
    setImmediate(turn)
    const large = { header: { number: 1 }, arrays: [new Int32Array(30_000)] }
    let written = 0
    for (let count = 0; count < 40; count++) void journal.append(large).then(() => written++)
    await journal.sync()
    isOver = true
    expect(written).toBe(40)
    // 4.8 MB in batches of at most 256 KiB and a frame.
    expect(turns).toBeGreaterThan(12)
  })

  it('[P1] torn anywhere, it keeps every whole frame and is appended to after them', async () => {
    const path = scratch()
    const places: number[] = [journalMagic.length]
    {
      await using journal = await openJournal(path)
      for (const number of numbers(8)) {
        const { offset, size } = await journal.append(frame(number))
        places.push(offset + size)
      }
    }
    const whole = readFileSync(path)
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: whole.length }), async cut => {
        writeFileSync(path, whole.subarray(0, cut))
        const kept = Math.max(0, places.filter(place => place <= cut).length - 1)
        expect(await read(path)).toEqual(numbers(kept))
        await write(path, [99])
        expect(await read(path)).toEqual([...numbers(kept), 99])
      }),
      { seed: 5, numRuns: 60 },
    )
  })

  it('[P1] H8: a tail of zeros that begins inside the last frame is cut off with it', async () => {
    const path = scratch()
    await write(path, numbers(3))
    const whole = readFileSync(path)
    const zeros = Buffer.alloc(5000)
    writeFileSync(path, Buffer.concat([whole.fill(0, whole.length - 9), zeros]))
    expect(await read(path)).toEqual(numbers(2))
    await write(path, [2])
    expect(await read(path)).toEqual(numbers(3))
  })

  it('[P1] a tail of zeros, as a power cut leaves it, is cut off', async () => {
    const path = scratch()
    await write(path, numbers(3))
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(5000)]))
    expect(await read(path)).toEqual(numbers(3))
    await write(path, [3])
    expect(await read(path)).toEqual(numbers(4))
  })

  it('damage that no crash leaves is refused, with its place and a way to keep the rest', async () => {
    const path = scratch()
    await write(path, numbers(3))
    const bytes = readFileSync(path)
    const first = journalMagic.length
    bytes.writeUInt8(bytes[first + 20]! ^ 1, first + 20)
    writeFileSync(path, bytes)
    await expect(read(path)).rejects.toThrow(`${path} is damaged at byte ${first}: checksum is`)
    bytes.writeUInt32LE(0xffffffff, first)
    writeFileSync(path, bytes)
    await expect(read(path)).rejects.toThrow(`\`truncate -s ${first} ${path}\` keeps it`)
    truncateSync(path, first)
    expect(await read(path)).toEqual([])
  })

  it('[P1] with any byte changed, it is refused with the place, or loses its last frame alone', async () => {
    const path = scratch()
    await write(path, numbers(6, 3))
    const whole = readFileSync(path)
    const starts: number[] = []
    for await (const { place } of readJournal(path)) starts.push(place.offset)
    const last = starts.at(-1)!
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: whole.length - 1 }),
        fc.integer({ min: 1, max: 255 }),
        async (at, change) => {
          const bytes = Buffer.from(whole)
          bytes[at] = bytes[at]! ^ change
          writeFileSync(path, bytes)
          const frame = starts.findLast(start => start <= at)
          const found = await read(path).catch((error: Error) => error.message)
          if (Array.isArray(found)) expect([at >= last, found]).toEqual([true, numbers(5, 3)])
          else expect(found).toContain(frame === undefined ? path : `damaged at byte ${frame}: `)
          // Whoever opens it to write sees the same, and cuts nothing else off.
          const opened = await write(path, []).catch((error: Error) => error.message)
          expect(opened).toEqual(Array.isArray(found) ? undefined : found)
          const left = readFileSync(path)
          expect(left.equals(opened === undefined ? whole.subarray(0, last) : bytes)).toBe(true)
        },
      ),
      { seed: 9, numRuns: process.env.ESPALIER_SOAK ? 20_000 : 300 },
    )
  })

  it('whose last frame is torn is not taken for damaged, whatever its bytes look like', async () => {
    const path = scratch()
    await write(path, numbers(2))
    const before = readFileSync(path).length
    const inner = encodeFrame(frame(5))
    // Nearly frames, over and over: only their checksums are wrong.
    const bait = Buffer.concat(Array.from({ length: 2000 }, () => inner))
    for (let at = 0; at < bait.length; at += inner.length) bait[at + 4] = bait[at + 4]! ^ 1
    {
      await using journal = await openJournal(path)
      await journal.append({ header: {}, arrays: [new Uint8Array(bait)] })
    }
    truncateSync(path, readFileSync(path).length - 8)
    expect(await read(path)).toEqual(numbers(2))
    await write(path, [])
    expect(readFileSync(path)).toHaveLength(before)
  })

  it('is read while it is written: whole frames only', async () => {
    const path = scratch()
    await using journal = await openJournal(path)
    expect(await read(path)).toEqual([])
    for (let number = 0; number < 20; number++) {
      const appended = journal.append(frame(number))
      const seen = await read(path)
      expect(seen).toEqual(numbers(seen.length))
      await appended
      expect(await read(path)).toEqual(numbers(number + 1))
    }
  })

  it('that is not there yet is empty; another file or format is refused by name', async () => {
    const path = scratch()
    expect(await read(path)).toEqual([])
    expect(existsSync(path)).toBe(false)
    writeFileSync(path, 'ESPALIER JOURNAL 7\nwhatever')
    await expect(read(path)).rejects.toThrow(
      'is a journal of format 7; this program reads format 1',
    )
    writeFileSync(path, '{"some": "json file"}')
    await expect(openJournal(path)).rejects.toThrow('is not a journal: it begins with "{"some"')
  })

  it('where it cannot be written it says why and what to do', async () => {
    await expect(openJournal('/proc/version/journal')).rejects.toThrow(
      /\/proc\/version\/journal cannot be written: .*\(ENOTDIR\)/,
    )
    await expect(openJournal('/dev/full')).rejects.toThrow('is a device, not a plain file')
    const cause = Object.assign(new Error('no space'), { code: 'ENOSPC' })
    expect(String(new StoreError('j', { cause }))).toContain('the disk is full; make room (ENOSPC)')
  })
})
