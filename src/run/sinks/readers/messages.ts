import type { Message, ToolDefinition } from '@espalier/text'
import { type Fields, openFields } from '../fields.ts'
import {
  type FormatReader,
  plainReward,
  type ReadTrajectory,
  shownReward,
  unknownParts,
} from '../reader.ts'
import { checkedMessage } from './checked.ts'

/** OpenAI's supervised examples; they have no reward and get 1. */
export const openaiSftReader: FormatReader = {
  name: 'openai-sft',
  kind: 'lines',
  hasOnlyMessages: true,
  read: readExamples,
}

/** TRL's supervised examples. */
export const trlSftReader: FormatReader = {
  name: 'trl-sft',
  kind: 'lines',
  hasOnlyMessages: true,
  read: readExamples,
}

async function* readExamples(records: AsyncIterable<Fields>): AsyncGenerator<ReadTrajectory> {
  let number = 0
  for await (const example of records) {
    number++
    yield {
      ...unknownParts,
      group: String(number),
      task: String(number),
      data: null,
      member: 0,
      paths: [],
      messages: readMessages(example, 'messages'),
      tools: example.has('tools') ? (example.list('tools') as readonly ToolDefinition[]) : [],
      reward: shownReward,
    }
  }
}

/** ART's groups: the policy's messages are choices with token ids, which alone do not make a sequence. */
export const artReader: FormatReader = {
  name: 'art',
  kind: 'lines',
  hasOnlyMessages: true,
  async *read(records) {
    let number = 0
    for await (const group of records) {
      number++
      const metadata = group.has('metadata') ? group.inner('metadata') : undefined
      const name = metadata?.has('group') ? metadata.text('group') : String(number)
      for (const [member, each] of group.each('trajectories').entries()) {
        yield {
          ...unknownParts,
          group: name,
          task: name,
          data: null,
          member,
          paths: [],
          messages: readMessages(each, 'messages_and_choices'),
          tools: each.has('tools') ? (each.list('tools') as readonly ToolDefinition[]) : [],
          reward: plainReward(each.number('reward')),
        }
      }
    }
  },
}

/** Messages in OpenAI's schema; calls with objects for arguments get their text back. */
export function readMessages(record: Fields, name: string): readonly Message[] {
  return record.each(name).map(entry => {
    const message = entry.has('message') ? entry.inner('message') : entry
    const plain = Object.fromEntries(
      // Libraries write null for fields that a message does not have; drop them, except `content`.
      Object.entries(message.value).filter(
        ([name, value]) => name !== 'weight' && (value !== null || name === 'content'),
      ),
    )
    const calls = message.has('tool_calls') ? message.each('tool_calls').map(readCall) : undefined
    const whole = { ...plain, ...(calls && { tool_calls: calls }) }
    return checkedMessage(openFields(whole, message.place))
  })
}

function readCall(call: Fields): object {
  const called = call.inner('function')
  const given = called.value.arguments
  return {
    id: call.has('id') ? call.text('id') : '',
    type: 'function',
    function: {
      name: called.text('name'),
      arguments: typeof given === 'string' ? given : JSON.stringify(given ?? {}),
    },
  }
}
