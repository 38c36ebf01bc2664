import { describe, expect, it } from 'vitest'
import { openFields } from '../fields.ts'
import type { ReadTrajectory } from '../reader.ts'
import { tauBenchReader } from './tau-bench.ts'

async function readAll(results: readonly object[]): Promise<readonly ReadTrajectory[]> {
  const records = (async function* () {
    for (const [index, result] of results.entries()) yield openFields(result, `[${index}]`)
  })()
  const read: ReadTrajectory[] = []
  for await (const trajectory of tauBenchReader.read(records)) read.push(trajectory)
  return read
}

const info = { task: { user_id: 'u' }, source: 'user', user_cost: null, reward_info: null }
const said = [
  { role: 'user', content: 'Hello' },
  { content: 'Bye', role: 'assistant', tool_calls: null, function_call: null },
]
const result = (task_id: number, trial: number, reward: number): object => ({
  task_id,
  reward,
  info,
  traj: said,
  trial,
})

describe('result files of tau-bench', () => {
  it('are written trial by trial and read task by task', async () => {
    const read = await readAll([result(3, 0, 1), result(1, 0, 0), result(3, 1, 0), result(1, 1, 1)])
    const seen = read.map(({ task, member, reward }) => [task, member, reward?.total])
    expect(seen).toEqual([
      ['3', 0, 1],
      ['3', 1, 0],
      ['1', 0, 0],
      ['1', 1, 1],
    ])
    expect(read[0]).toMatchObject({
      data: { user_id: 'u' },
      report: { index: 3, source: 'user', reward_info: null },
      fidelity: { kind: 're-encoded' },
    })
  })

  it('keep both where a trial is there twice', async () => {
    const read = await readAll([result(0, 0, 1), result(0, 0, 0)])
    expect(read.map(({ member }) => member)).toEqual([0, 1])
  })

  it('have messages without the fields a library writes out empty', async () => {
    const [read] = await readAll([result(0, 0, 1)])
    expect(read?.messages[1]).toEqual({ role: 'assistant', content: 'Bye' })
  })

  it('have errors instead of conversations, which are not worth 0', async () => {
    const broken = { task_id: 0, reward: 0, trial: 0, traj: [], info: { error: 'no key' } }
    const [read] = await readAll([broken])
    expect(read).toMatchObject({ reward: null, outcome: { kind: 'failed', message: 'no key' } })
  })

  it('name the entry that is not one', async () => {
    await expect(readAll([{ ...result(0, 0, 1), traj: 'x' }])).rejects.toThrow(
      '[0]: traj should be a list, found "x"',
    )
  })
})
