import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { describe, expect, it } from 'vitest'
import { openEnvironment } from '../../engine/environments/registry.ts'
import { roll } from '../run/roll.ts'
import { checkTaskSource, countTasks, readTasks } from './tasks.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-tasks-'))
const environment = await openEnvironment('single-turn')

async function dataOf(path: string): Promise<readonly unknown[]> {
  const read: unknown[] = []
  for await (const { data } of readTasks(environment, path, { seed: 0 })) read.push(data)
  return read
}

describe('tasks of a file', () => {
  it('come in order from every row group of a parquet file', async () => {
    const path = join(folder, 'tasks.parquet')
    const prompts = ['1+1', '1+2', '1+3', '1+4', '1+5']
    const columnData = [
      { name: 'prompt', data: prompts },
      { name: 'answer', data: ['2', '3', '4', '5', '6'] },
    ]
    writeFileSync(path, Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: 2 })))
    expect(await dataOf(path)).toMatchObject(prompts.map(prompt => ({ prompt })))
  })

  it('are named by their line, blank ones counted', async () => {
    const path = join(folder, 'blank.jsonl')
    writeFileSync(path, '{"prompt":"1+1"}\n\n{"question":"2+2?"}\n')
    await expect(dataOf(path)).rejects.toThrow(/blank.jsonl:3: Not a task/)
  })

  it('that is wrong from the start leaves no run folder behind', async () => {
    const path = join(folder, 'wrong.jsonl')
    writeFileSync(path, '{"question":"2+2?"}\n')
    const answers = join(folder, 'answers.jsonl')
    writeFileSync(answers, '{"text":"4"}\n')
    const out = join(folder, 'run')
    const rolled = roll(environment, path, { policy: `scripted:${answers}`, out })
    await expect(rolled.next()).rejects.toThrow(/wrong.jsonl:1: Not a task/)
    expect(existsSync(out)).toBe(false)
  })

  it('may begin with a byte-order mark, which is no part of the first', async () => {
    const path = join(folder, 'marked.jsonl')
    writeFileSync(path, '\uFEFF{"id":"a","prompt":"1+1"}\n{"id":7,"prompt":"1+1"}\n')
    const ids: string[] = []
    for await (const { id } of readTasks(environment, path, { seed: 0 })) ids.push(id)
    expect(ids).toEqual(['a', '7'])
  })

  it.each(['12345678901234567891', '-9007199254740993', '1e400', '[0, 1E999]'])(
    'are refused where a number would be changed by reading it: %s',
    async number => {
      const path = join(folder, 'numbers.jsonl')
      const exact = '"7777777777777777777 1e999" , "x":9007199254740992, "y":-1.5e-3, "z":1e16'
      writeFileSync(path, `{"prompt":${exact}}\n{"prompt":"1+1","extra":${number}}\n`)
      await expect(dataOf(path)).rejects.toThrow(
        /numbers.jsonl:2: the number -?[\dEe]+ would be changed/,
      )
    },
  )

  it('are refused where they are no UTF-8, and hold any sign where they are', async () => {
    const path = join(folder, 'latin.jsonl')
    writeFileSync(path, Buffer.from('{"prompt":"caf\u00e9"}\n', 'latin1'))
    const read = () => dataOf(path)
    await expect(read()).rejects.toThrow(/latin.jsonl is not UTF-8, in line 1 or soon after/)
    const prompt = `\uFFFD\u2028${'\u2603\u{1F600}'.repeat(20_000)}`
    writeFileSync(path, `{"prompt":"${prompt}"}\r\n{"prompt":"1"}`)
    expect(await read()).toMatchObject([{ prompt }, { prompt: '1' }])
  })

  it.each(['{"x":1}', '""', '[1]', 'true'])('cannot have the id %s, and say where', async id => {
    const path = join(folder, 'ids.jsonl')
    writeFileSync(path, `{"prompt":"1+1"}\n{"id":${id},"prompt":"1+1"}\n`)
    await expect(checkTaskSource(environment, path)).rejects.toThrow(
      `ids.jsonl:2: the id ${id} is not possible: an id is a text`,
    )
  })

  it('that holds none is refused whatever it is: a file, nothing at all, or an empty pipe', async () => {
    const empty = join(folder, 'empty.jsonl')
    writeFileSync(empty, '')
    for (const path of [empty, '/dev/null']) {
      await expect(checkTaskSource(environment, path)).rejects.toThrow(`${path} holds no tasks`)
    }
    const pipe = join(folder, 'empty-pipe')
    execFileSync('mkfifo', [pipe])
    const writing = writeFile(pipe, '')
    const first = readTasks(environment, pipe, { seed: 0 }).next()
    await expect(first).rejects.toThrow('empty-pipe holds no tasks')
    await writing
  })

  it('that come through a pipe are neither counted nor checked before, for they come only once', async () => {
    const path = join(folder, 'pipe')
    execFileSync('mkfifo', [path])
    const writing = writeFile(path, '{"prompt":"1+1"}\n{"prompt":"2+2"}\n')
    await checkTaskSource(environment, path)
    expect(await countTasks(path)).toBeUndefined()
    let read = 0
    for await (const _ of readTasks(environment, path, { seed: 0 })) read++
    await writing
    expect(read).toBe(2)
  })
})
