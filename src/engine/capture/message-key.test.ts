import type { Message } from '@espalier/text'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeTokenBuffer } from '../rollout/token-buffer.ts'
import { messageKeys, tokensKey } from './message-key.ts'

const name = fc.constantFrom('look', 'sell')
const id = fc.constantFrom('1', '2', '3')
const call = fc.record({ id, name, input: fc.constantFrom('{}', '{"a": 1}') })
const message: fc.Arbitrary<Message> = fc.oneof(
  fc.record({ role: fc.constant('user' as const), content: fc.constantFrom('a', 'b') }),
  fc.record({ role: fc.constant('tool' as const), content: fc.constant('c'), tool_call_id: id }),
  fc.array(call, { maxLength: 2 }).map(calls => ({
    role: 'assistant' as const,
    content: 'd',
    tool_calls: calls.map(({ id: own, name: tool, input }) => ({
      id: own,
      type: 'function' as const,
      function: { name: tool, arguments: input },
    })),
  })),
)

describe('the keys of messages', () => {
  it('are the same whether or not those of an earlier request are known', () => {
    const conversation = fc.array(message, { maxLength: 8 })
    fc.assert(
      fc.property(conversation, conversation, fc.nat(8), (earlier, later, shared) => {
        const messages = [...earlier.slice(0, shared), ...later]
        const known = { messages: earlier, keys: { list: messageKeys(earlier) } }
        expect(messageKeys(structuredClone(messages), known)).toEqual(messageKeys(messages))
      }),
      { seed: 5 },
    )
  })
})

describe('the name of tokens', () => {
  it('is that of the same tokens in one piece, however the path grew', () => {
    const parts = fc.array(fc.array(fc.nat(100_000)))
    fc.assert(
      fc.property(parts, pieces => {
        const growing = makeTokenBuffer(new Int32Array(0))
        for (const piece of pieces) {
          growing.append(Int32Array.from(piece))
          expect(tokensKey(growing, [])).toBe(
            tokensKey(makeTokenBuffer(growing.view().slice()), []),
          )
        }
      }),
      { seed: 5 },
    )
  })
})
