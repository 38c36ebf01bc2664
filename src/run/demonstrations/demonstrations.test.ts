import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openByteRenderer, script } from '../../../test/rolling.ts'
import { type Filter, heldOutFilter } from '../../base/core/group.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { roll } from '../run/roll.ts'
import { openDemonstrations, readDemonstrations, shareSolved } from './demonstrations.ts'

const model = await openByteRenderer()

it('the held-out attempts of a training run are not learned from', async () => {
  const out = join(mkdtempSync(join(tmpdir(), 'espalier-shown-')), 'run')
  const policy = script(model, ['yes<|im_end|>', 'yes<|im_end|>'])
  const tasks = ['trained', 'held'].map(id => ({ id, prompt: id, answer: 'yes' }))
  const dropped = { reason: 'held out', from: 'loss-and-statistics' } as const
  const holdOut: Filter = {
    name: heldOutFilter,
    judge: ({ task, members }) =>
      new Map(task === 'held' ? members.map(({ trajectory }) => [trajectory.id, dropped]) : []),
  }
  const environment = singleTurn()
  const options = { policy, model, group: 1, concurrency: 1, filters: [holdOut], out }
  for await (const _ of roll(environment, tasks, options));
  const shown = await readDemonstrations(out, { successAt: 1, tasks: [] })
  expect(shown.map(({ messages }) => messages.at(-2)?.content)).toEqual(['trained'])
})

it('only what earns its reward is kept of a function that guesses, if that is asked for', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-shown-'))
  const file = join(folder, 'show.mjs')
  writeFileSync(
    file,
    `export const show = ({ task, turn }) => turn === 0 ? (task.id === 'one' ? 'yes' : 'no') : undefined
export const wrong = ({ turn }) => turn === 0 ? 'never' : undefined`,
  )
  writeFileSync(join(folder, 'said.jsonl'), '{"messages":[]}')
  const tasks = ['one', 'two'].map(id => ({
    id: id as TaskId,
    data: { prompt: id, answer: 'yes' },
  }))
  const { signal } = new AbortController()
  const opening = { environment: singleTurn(), tasks, signal, isSolvedOnly: true }
  const shown = await openDemonstrations(`${file}#show`, opening)
  expect(shown.map(({ task, messages }) => [task, messages.at(-1)?.content])).toEqual([
    ['one', 'yes'],
  ])
  expect(await shareSolved(`${file}#show`, opening)).toBe(0.5)
  await expect(openDemonstrations(`${file}#wrong`, opening)).rejects.toThrow('none of 2')
  await expect(openDemonstrations(join(folder, 'said.jsonl'), opening)).rejects.toThrow(
    'nobody can',
  )
})
