import { expect, it } from 'vitest'
import { openByteRenderer, script } from '../../../test/rolling.ts'
import type { Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { defaultLimits } from '../../engine/rollout/attempt.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { evaluateHeldOut } from './held-out.ts'

it('a task that is held out many times counts as much as one that is there once', async () => {
  const renderer = await openByteRenderer()
  const environment = singleTurn()
  const prompts = ['often', 'often', 'often', 'once']
  const tasks = prompts.map((prompt, index): Task => {
    const data = { prompt, answer: prompt === 'often' ? 'yes' : 'no' }
    return { id: `${index}` as TaskId, data: environment.readTask(data) }
  })
  const parts = {
    environment,
    policy: script(renderer, new Array(4).fill('yes<|im_end|>')),
    renderer,
    estimate: makeEstimate('grpo'),
    limits: defaultLimits,
    seed: 1,
  }
  const asked = { name: 'evaluation', successAt: 1, order: 0 }
  const { success, meanReward, scored } = await evaluateHeldOut(tasks, parts, asked)
  expect([success, meanReward, scored]).toEqual([0.5, 0.5, 4])
})
