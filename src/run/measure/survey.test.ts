import { expect, it } from 'vitest'
import { openByteRenderer } from '../../../test/rolling.ts'
import { tokenSample } from '../../../test/token-sample.ts'
import { type Policy, plainCapabilities } from '../../base/core/policy.ts'
import { random, seedOf } from '../../base/math/random.ts'
import { smallTalk } from '../../engine/environments/built-in/small-talk.ts'
import { survey } from './survey.ts'

const model = await openByteRenderer()

/** Computes in calls behind examples, and half of its answers are wrong; without them it talks. */
const policy: Policy = {
  name: 'calculating',
  capabilities: { ...plainCapabilities, seed: true },
  async sample({ prompt, sampling, seed }) {
    const text = model.tokenizer.decode(prompt.ids)
    const next = random(seedOf('calculating', seed))
    const turns = text.split('assistant\n').length - 2
    const isShown = text.includes('14 plus 22 minus 5')
    const [, first, plus, minus] = /(\d+) plus (\d+) minus (\d+)/.exec(
      text.slice(text.lastIndexOf(' plus ') - 3),
    )!
    const sum = Number(first) + Number(plus)
    const isWrong = sampling.temperature > 0 && next() < 0.5
    const said = !isShown
      ? 'The sum is large.'
      : turns === 6
        ? `${first}+${plus}`
        : turns === 7
          ? `${sum}-${minus}`
          : `Answer: ${sum - Number(minus) + Number(isWrong)}`
    return tokenSample(model.tokenizer.encode(`${said}<|im_end|>`), {
      prompt: prompt.ids.length,
      next,
    })
  },
  async [Symbol.asyncDispose]() {},
}

it('says what examples change, what fails without them, and what training would need', async () => {
  const seen: number[] = []
  const found = await survey(smallTalk('calc2'), 8, {
    ...{ policy, model, group: 4, shots: 2, seed: 1 },
    onArm: ({ shots }) => seen.push(shots),
  })
  expect(seen).toEqual([0, 2])
  const [plain, shown] = found.arms
  expect(plain).toMatchObject({
    ...{ success: 0, greedy: 0, attempts: 32, contrast: 0, turns: 1 },
    fails: { format: 1, strategy: 0 },
    example: 'The sum is large.',
  })
  expect(shown!.success).toBeGreaterThan(0.3)
  expect(shown).toMatchObject({ greedy: 1, turns: 3, fails: { format: 0 } })
  expect(shown!.contrast).toBeGreaterThan(0.6)
  expect(found.advice).toMatchObject({ verdict: 'worth training', shots: 2, learningRate: 5e-4 })
})
