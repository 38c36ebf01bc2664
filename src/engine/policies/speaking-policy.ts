import type { Message } from '@espalier/text'
import { unlessStopped } from '../../base/core/call.ts'
import { type Policy, plainCapabilities, type TextSample } from '../../base/core/policy.ts'
import type { Speaker } from '../../base/core/speaker.ts'

/** Says something in answer to a conversation: a rule, a script, somebody's own program. */
export type SayFunction = (messages: readonly Message[]) => string | Promise<string>

/** A bound on the answer: more than any context holds. */
const mostCharacters = 2 ** 24

/** A function of a conversation as a speaker. */
export function functionSpeaker(name: string, say: SayFunction): Speaker {
  return {
    name,
    async say(messages) {
      const content: unknown = await say(messages)
      if (typeof content !== 'string') {
        throw new TypeError(`${name} said ${String(content)}, which is not a text`)
      }
      if (content.length > mostCharacters) {
        throw new RangeError(`${name} said ${content.length} characters at one time`)
      }
      return {
        message: { role: 'assistant', content },
        finish: 'stop',
        usage: { prompt: 0, sampled: 0 },
      }
    },
  }
}

/** A speaker as a policy: it gives words and calls, and no tokens of its own. */
export function speakingPolicy(speaker: Speaker): Policy {
  return {
    name: speaker.name,
    capabilities: { ...plainCapabilities, ids: false, logprobs: false },
    async sample({ prompt, maxTokens, sampling, seed }, { signal }): Promise<TextSample> {
      const { temperature } = sampling
      const { tools } = prompt
      const asked = { signal, temperature, maxTokens, seed, tools }
      // A user's function may ignore the signal, and may change the list it is given.
      const saying = speaker.say(structuredClone(prompt.messages), asked)
      const { message, finish, usage } = await unlessStopped({ signal }, saying)
      return {
        kind: 'text',
        message,
        version: { from: 0, to: 0 },
        finish: { kind: finish },
        usage: { ...usage, seconds: 0 },
      }
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}
