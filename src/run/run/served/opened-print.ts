import { createHash } from 'node:crypto'
import type { AssistantMessage, Message, ToolDefinition } from '@espalier/text'
import type { RollParts } from '../roll-groups.ts'

/**
 * What must be equal wherever a run is opened, seen from what was opened, by the name used in messages: what its
 * model makes of a conversation, and what its environment says it is made of.
 */
export function printOpened({
  renderer,
  environment,
}: Pick<RollParts, 'renderer' | 'environment'>): Readonly<Record<string, string>> {
  const hash = createHash('sha256')
  const add = (ids: Int32Array): void => void hash.update(ids).update('|')
  for (const offered of [[], [tool]]) {
    // Templates may refuse tools, or a system message, with an error.
    for (const messages of [asked, called]) add(tried(() => renderer.render(messages, offered)))
    add(tried(() => renderer.encodeReply(call, offered)))
  }
  add(Int32Array.from([...renderer.stopIds, renderer.vocabulary]))
  return {
    'what its tokenizer and chat template make of a conversation': hash.digest('hex'),
    ...environment.madeOf,
  }
}

function tried(render: () => Int32Array): Int32Array {
  try {
    return render()
  } catch {
    return Int32Array.of(-1)
  }
}

const tool: ToolDefinition = {
  type: 'function',
  function: {
    name: 'look_up',
    description: 'Looks a word up.',
    parameters: {
      type: 'object',
      properties: { word: { type: 'string' }, most: { type: 'integer' } },
      required: ['word'],
    },
  },
}

/** Words of several scripts, numbers, code and spaces, which tokenizers cut in different ways. */
const text =
  'What does "naïve" mean? 価格は 1234.50 € — \tif (x <= 10) { return 1e-7 }\n\n  Straße, Москва 🙂'

const asked: readonly Message[] = [
  { role: 'system', content: 'Answer in one line.' },
  { role: 'user', content: text },
]

const call: AssistantMessage = {
  role: 'assistant',
  content: 'Let me see.',
  tool_calls: [
    {
      id: 'call_1',
      type: 'function',
      function: { name: 'look_up', arguments: '{"word": "naïve", "most": 3}' },
    },
  ],
}

const called: readonly Message[] = [
  { role: 'user', content: text },
  call,
  { role: 'tool', tool_call_id: 'call_1', name: 'look_up', content: '{"found": ["simple"]}' },
  { role: 'assistant', content: 'It means simple.' },
  { role: 'user', content: 'And now?' },
]
