import type { Message, ToolDefinition } from '../../core/message.ts'
import { type Fields, ReadError } from '../fields.ts'
import { type FormatReader, plainReward, type ReadTrajectory, unknownParts } from '../reader.ts'

/** OpenAI's supervised examples; there is no reward in them, and they count as worth 1. */
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
      reward: plainReward(1),
    }
  }
}

/** tau-bench's results; runs of one task are compared with each other. */
export const tauBenchReader: FormatReader = {
  name: 'tau-bench',
  kind: 'array',
  hasOnlyMessages: true,
  async *read(records) {
    for await (const result of records) {
      const task = String(result.integer('task_id'))
      const info = result.has('info') ? result.inner('info') : undefined
      const messages = readMessages(result, 'traj')
      yield {
        ...unknownParts,
        group: task,
        task,
        data: info?.value.task ?? null,
        member: result.has('trial') ? result.integer('trial') : 0,
        paths: [],
        messages,
        reward: messages.length === 0 ? null : plainReward(result.number('reward')),
        ...(messages.length === 0 && {
          outcome: {
            kind: 'failed',
            boundary: 'environment',
            message: JSON.stringify(info?.value.error ?? 'no conversation'),
          } as const,
        }),
      }
    }
  },
}

/** ART's groups: what the policy said are choices, whose token ids alone do not make a sequence. */
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
function readMessages(record: Fields, name: string): readonly Message[] {
  return record.each(name).map(entry => {
    const message = entry.has('message') ? entry.inner('message') : entry
    const role = message.text('role')
    if (!['system', 'developer', 'user', 'assistant', 'tool'].includes(role)) {
      throw new ReadError(`${message.place}: no role called "${role}"`)
    }
    const { weight: _weight, ...plain } = message.value
    if (!message.has('tool_calls')) return plain as unknown as Message
    const calls = message.each('tool_calls').map(readCall)
    return { ...plain, tool_calls: calls } as unknown as Message
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
