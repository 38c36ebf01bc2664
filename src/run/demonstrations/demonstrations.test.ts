import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openByteRenderer, script } from '../../../test/rolling.ts'
import { type Filter, heldOutFilter } from '../../base/core/group.ts'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { roll } from '../run/roll.ts'
import { readDemonstrations } from './demonstrations.ts'

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
