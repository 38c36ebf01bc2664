import type { Message } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { expectCaptured, withOwnRecord } from '../../../test/captured.ts'
import { attemptAt, contextOf, openByteRenderer, script } from '../../../test/rolling.ts'
import { tokenSample } from '../../../test/token-sample.ts'
import { singleTurn } from '../environments/built-in/single-turn.ts'
import { openCapture } from './capture.ts'

const renderer = await openByteRenderer()
const world = singleTurn({ match: 'exact' })
const { signal } = new AbortController()
const go: Message = { role: 'user', content: 'Go.' }
const on: Message = { role: 'user', content: 'On.' }

/** A capture of a policy whose samples have these tokens; an empty text has none, as where a server hides its stop token. */
function openSaying(texts: readonly string[]) {
  const left = [...texts]
  const policy = withOwnRecord({
    ...script(renderer, []),
    async sample({ prompt }) {
      const ids = renderer.tokenizer.encode(left.shift() ?? '')
      return tokenSample(ids, { prompt: prompt.ids.length })
    },
  })
  const context = contextOf({ environment: world, renderer, policy })
  const attempt = attemptAt(world, { prompt: 'x', answer: 'x' })
  return { capture: openCapture({ context, attempt }), policy }
}

describe('the tree of an attempt', () => {
  it.each([
    ['', 'Yes.<|im_end|>'],
    ['Yes.<|im_end|>', ''],
    ['', ''],
  ])(
    '[T3] holds answers without tokens as turns, asked on from and asked again: %j, %j',
    async (...texts) => {
      for (const isAgain of [false, true]) {
        const { capture, policy } = openSaying(texts)
        const [first] = await capture.respond({ messages: [go], tools: [] }, { signal })
        const messages = isAgain ? [go] : [go, first!.message, on]
        await capture.respond({ messages, tools: [] }, { signal })
        const [tree] = await capture.end()
        const { outcome, turns } = tree.trajectories[0]!
        expect(outcome).toEqual({ kind: 'completed' })
        expect(turns).toHaveLength(2)
        expectCaptured(
          tree,
          policy.record.filter(({ sampled }) => sampled.length > 0),
        )
      }
    },
  )
})
