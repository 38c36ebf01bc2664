import { type Message, textOf } from '@espalier/text'
import type { CondenseCall } from '../src/base/core/condenser.ts'
import { makeLane } from '../src/base/core/lane.ts'
import type { SpeakCall, Speaker, Speech } from '../src/base/core/speaker.ts'

/** What a speaker was asked. */
export interface Asked {
  readonly messages: readonly Message[]
  readonly call: SpeakCall
}

/** A speaker that answers from a list, or by a function, and keeps what it was asked. */
export function speaking(
  answers: readonly (string | Partial<Speech> | Error)[] | ((asked: Asked) => string),
): Speaker & { readonly asked: Asked[] } {
  const asked: Asked[] = []
  return {
    name: 'speaking',
    asked,
    async say(messages, call) {
      call.signal.throwIfAborted()
      const index = asked.push({ messages, call }) - 1
      const answer =
        typeof answers === 'function' ? answers(asked[index]!) : answers[index % answers.length]!
      if (answer instanceof Error) throw answer
      const content = typeof answer === 'string' ? answer : ''
      return {
        message: { role: 'assistant', content },
        finish: 'stop',
        usage: { prompt: 10, sampled: 2 },
        ...(typeof answer === 'object' && answer),
      }
    },
  }
}

/** A call to a condenser in which a token is a character and a message costs four more. */
export function condenseCall(parts: Partial<CondenseCall> = {}): CondenseCall {
  return {
    signal: new AbortController().signal,
    tokens: 1000,
    context: 2000,
    turn: 0,
    opening: 1,
    count: messages => messages.reduce((sum, message) => sum + 4 + lengthOf(message), 0),
    lane: makeLane('policy', 4),
    self: speaking(['notes']),
    ...parts,
  }
}

function lengthOf(message: Message): number {
  const calls = message.role === 'assistant' ? JSON.stringify(message.tool_calls ?? '') : ''
  return textOf(message.content).length + calls.length
}

/** A conversation of turns in which a tool says a text of so many characters each. */
export function toolTurns(count: number, characters: number): readonly Message[] {
  const turns = Array.from({ length: count }, (_, turn): readonly Message[] => [
    {
      role: 'assistant',
      content: `turn ${turn}`,
      tool_calls: [
        { id: `c${turn}`, type: 'function', function: { name: 'read', arguments: '{}' } },
      ],
    },
    {
      role: 'tool',
      tool_call_id: `c${turn}`,
      name: 'read',
      content: `result ${turn} `.repeat(characters).slice(0, characters),
    },
  ])
  return [{ role: 'user', content: 'Do it.' }, ...turns.flat()]
}
