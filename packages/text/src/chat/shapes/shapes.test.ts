import { expect, it } from 'vitest'
import { random, seedOf } from '../../../../../src/base/math/random.ts'
import { openByteRenderer } from '../../../../../test/rolling.ts'
import { concat } from '../bridge.ts'
import { randomConversation } from '../random-conversation.ts'

const shaped = await openByteRenderer()
const plain = await openByteRenderer({ shapes: false })

const { profile } = shaped
/** What people and tools may spell out though it is a control token. */
const spelled = ['<|im_end|>', '<|im_start|>']

it('give the tokens that the template gives without them, whatever is said', () => {
  const draw = random(seedOf('shapes'))
  for (let round = 0; round < 60; round++) {
    const { opening, tools, turns } = randomConversation({ profile, random: draw, spelled })
    expect(shaped.render(opening, tools)).toEqual(plain.render(opening, tools))
    const messages = [...opening]
    let path = shaped.render(opening, tools)
    for (const { message, observed } of turns) {
      const turnStart = path.length
      path = concat(path, shaped.encodeReply(message, tools))
      messages.push(message, ...observed)
      const request = { path, turnStart, messages, observed: observed.length, tools }
      const bridge = shaped.bridge(request)
      expect(bridge).toEqual(plain.bridge(request))
      path = concat(path, bridge.ids)
    }
  }
})
