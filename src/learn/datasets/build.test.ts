import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Message, textOf } from '@espalier/text'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { describe, expect, it } from 'vitest'
import { condenser, folder, made, optionsFor, readLines } from '../../../test/datasets.ts'
import type { Task } from '../../base/core/environment.ts'
import { keepSecret } from '../../base/core/process/secrets.ts'
import type { PassageTask } from '../../engine/environments/built-in/passages.ts'
import { buildDataset, type DatasetItem, type Example } from './build.ts'
import { condensedSftItem } from './condensed-sft.ts'
import { readSplits, splitOf } from './splits.ts'

const itemsOf = (count: number) => made(count).map(task => condensedSftItem(task, { condenser }))

describe('buildDataset', () => {
  it('writes OpenAI-shaped lines into splits that share no subject', async () => {
    const options = await optionsFor()
    const report = await buildDataset(itemsOf(30), options)
    expect(report).toMatchObject({ items: 30, resumed: 0, rejected: {} })
    const [train, held] = await Promise.all(report.files.map(file => readLines<Example>(file)))
    expect(train!.length + held!.length).toBe(30)
    expect(held!.length).toBeGreaterThan(1)
    for (const line of [...train!, ...held!]) {
      expect(Object.keys(line).sort()).toEqual(['messages', 'tools'])
    }
    const subjects = (lines: readonly Example[]) =>
      new Set(lines.map(({ messages }) => textOf(messages[1]!.content).split('\n')[0]))
    const shared = [...subjects(train!)].filter(subject => subjects(held!).has(subject))
    expect(shared).toEqual([])
    expect(await readdir(join(options.out, '..'))).toEqual([
      'set.held-out.jsonl',
      'set.train.jsonl',
    ])
  })

  it('goes on where it was interrupted, and comes to the same files', async () => {
    const whole = await optionsFor()
    await buildDataset(itemsOf(20), whole)
    const stopped = await optionsFor()
    const stop = new AbortController()
    let built = 0
    const slow: readonly DatasetItem[] = itemsOf(20).map(item => ({
      ...item,
      async build(each) {
        if (++built === 8) stop.abort(new Error('killed'))
        each.signal.throwIfAborted()
        return await item.build(each)
      },
    }))
    await expect(buildDataset(slow, { ...stopped, signal: stop.signal })).rejects.toThrow('killed')
    // A kill in mid-write leaves half a line.
    await appendFile(`${stopped.out}.work`, '{"id":"passages/tr')
    let again = 0
    const counted = itemsOf(20).map(item => ({
      ...item,
      build: (each: { signal: AbortSignal }) => {
        again++
        return item.build(each)
      },
    }))
    const report = await buildDataset(counted, stopped)
    expect(report.resumed).toBeGreaterThan(3)
    expect(again).toBe(20 - report.resumed)
    for (const split of ['train', 'held-out']) {
      const [one, two] = await Promise.all(
        [whole, stopped].map(({ out }) =>
          readFile(out.replace('.jsonl', `.${split}.jsonl`), 'utf8'),
        ),
      )
      expect(two).toBe(one)
    }
  })

  it('refuses to go on with other settings, or to write over a finished set', async () => {
    const options = await optionsFor({ splits: readSplits('none') })
    await writeFile(`${options.out}.work`, '{"espalier":"dataset","settings":{"kind":"other"}}\n')
    await expect(buildDataset(itemsOf(2), options)).rejects.toThrow('was begun with other settings')
    const other = await optionsFor({ splits: readSplits('none') })
    await buildDataset(itemsOf(2), other)
    await expect(buildDataset(itemsOf(2), other)).rejects.toThrow('is there already')
  })

  it('[D1] leaves duplicates out, and tells what was rejected and why', async () => {
    const options = await optionsFor({ splits: readSplits('none') })
    const [task] = made(1)
    const item = (id: string, change: Partial<PassageTask> = {}): DatasetItem =>
      condensedSftItem({ id: id as Task['id'], data: { ...task!.data, ...change } }, { condenser })
    const broken: DatasetItem = { id: 'broken', build: () => Promise.reject(new Error('no disk')) }
    const report = await buildDataset(
      [item('a'), item('b'), item('c', { supporting: [] }), broken],
      options,
    )
    expect(report).toMatchObject({
      items: 4,
      rows: { all: 1 },
      rejected: { duplicate: 1, 'no-supporting-passages': 1, failed: 1 },
    })
    expect(await readLines(options.out.replace('.jsonl', '.rejected.jsonl'))).toEqual([
      { id: 'broken', reason: 'failed', detail: 'no disk' },
      { id: 'c', reason: 'no-supporting-passages' },
    ])
    await expect(buildDataset([item('a'), item('a')], await optionsFor())).rejects.toThrow(
      'two items have the id "a"',
    )
  })

  it('writes Parquet with the same rows', async () => {
    const out = join(await folder(), 'set.parquet')
    const report = await buildDataset(
      itemsOf(6),
      await optionsFor({ out, splits: readSplits('none') }),
    )
    expect(report.rows).toEqual({ all: 6 })
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(out) })
    expect(rows).toHaveLength(6)
    expect(rows[0]).toMatchObject({ id: 'passages/train/0' })
    const messages = JSON.parse(rows[0]!.messages as string) as readonly Message[]
    expect(messages[0]!.role).toBe('system')
    expect(JSON.parse(rows[0]!.notes as string)).toMatchObject({ recalls: 2, blocks: 8 })
  })
})

describe('readSplits', () => {
  it('reads names and shares, and refuses what does not add up', () => {
    expect(readSplits('train=0.9,test=0.1')).toEqual([
      { name: 'train', share: 0.9 },
      { name: 'test', share: 0.1 },
    ])
    expect(() => readSplits('train=0.9')).toThrow('add up to 0.9, not 1')
    expect(() => readSplits('train')).toThrow('"train" in "train" is not name=share')
    expect(() => readSplits('a=0.5,a=0.5')).toThrow('names a split twice')
    const names = Array.from({ length: 1000 }, (_, index) =>
      splitOf(`q${index}`, readSplits('train=0.9,test=0.1'), 3),
    )
    const tests = names.filter(name => name === 'test').length
    expect(tests).toBeGreaterThan(70)
    expect(tests).toBeLessThan(130)
  })
})

it('H4: a set holds no secret, in lines and in Parquet', async () => {
  const options = await optionsFor()
  const first = await buildDataset(itemsOf(3), options)
  const [line] = await readLines<Example>(first.files[0]!)
  const secret = textOf(line!.messages[1]!.content).slice(8, 28)
  keepSecret(secret)
  for (const { out } of [await optionsFor(), { out: join(await folder(), 'set.parquet') }]) {
    const { files } = await buildDataset(itemsOf(3), { ...options, out })
    const written = await Promise.all(files.map(file => readFile(file)))
    expect(written.some(bytes => bytes.includes(secret))).toBe(false)
  }
})
