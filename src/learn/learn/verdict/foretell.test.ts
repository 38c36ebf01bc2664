import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { openByteRenderer } from '../../../../test/rolling.ts'
import { singleTurn } from '../../../engine/environments/built-in/single-turn.ts'
import { makeEstimate } from '../../../engine/weigh/estimate.ts'
import { openModel } from '../../model/model.ts'
import { embeddedPolicy } from '../../model/policy.ts'
import { linesBefore } from './foretell.ts'

const folder = fileURLToPath(new URL('../../../../test/fixtures/pretrained/qwen2', import.meta.url))

it('says of a pretrained model what it takes and how long it may learn here, and leaves it as it was', async () => {
  await using model = await openModel({ folder }, { threads: 1 })
  const policy = embeddedPolicy(model, { folder })
  const parts = {
    environment: singleTurn(),
    policy,
    renderer: await openByteRenderer(),
    estimate: makeEstimate('grpo'),
    group: 8,
    limits: { turns: 4, newTokens: 12 },
  }
  const [line] = await linesBefore(parts, { policy, steps: 10, tasksPerStep: 8 })
  expect(line).toMatch(
    /^qwen2: [\d.]+ MB of memory, .+; \d+ tokens a second at first\. A step samples 3\.1k tokens at most: .+ with learning, .+ for 10\.$/,
  )
  expect(model.version()).toBe(0)
})
