import type { Message } from '@espalier/text'
import { isTrained } from '../../rows/row-record.ts'
import {
  argumentsOf,
  type Conversation,
  conversationsOf,
  countUntrained,
  isTrainedTurn,
  turnAt,
  untilLastReply,
  withoutReasoning,
} from '../conversations.ts'
import type { ExportGroup, FormatOptions } from '../format.ts'
import { lineFormat } from '../line-format.ts'
import type { LossReport } from '../lost.ts'

/**
 * TRL's conversational format for supervised training: `messages` and `tools`, with the arguments of
 * calls as objects, as chat templates of transformers want them (TRL 1.16, docs/dataset_formats).
 * It has no weight per message, so turns that trajectories of a tree share are trained once for
 * each of them.
 */
export const trlSft = lineFormat({
  name: 'trl-sft',
  summary: 'Conversations for supervised training in TRL: messages and tools',
  carries: ['messages', 'tools'],
  start: options => source =>
    everyReplyTaught(source, options).map(({ messages, tree: { tools } }) => ({
      messages: untilLastReply(messages).map(withObjectArguments),
      ...(tools.length > 0 && { tools }),
    })),
  loading: file => [
    `python:  dataset = load_dataset("json", data_files=${JSON.stringify(file)}, split="train")`,
    '         trainer = SFTTrainer(model, train_dataset=dataset, args=SFTConfig(assistant_only_loss=True))',
  ],
})

/** The conversations of a group for a trainer that learns from every reply; counts what it should not learn from. */
function everyReplyTaught(source: ExportGroup, options: FormatOptions): readonly Conversation[] {
  const { lost } = options
  const taught = taughtIn(source, options)
  const shared = taught
    .filter(({ member }) => isTrained(member))
    .flatMap(({ turns }) => turns.filter(turn => !isTrainedTurn(turn)))
  lost.add('turns that another trajectory of the tree holds too', shared.length)
  countUntrained(taught, { lost, trainer: 'TRL' })
  return taught
}

/**
 * OpenAI's fine-tuning format. `weight` is 0 for what this trajectory does not train: turns that it
 * shares with one before it, and turns of dropped trajectories.
 */
export const openaiSft = lineFormat({
  name: 'openai-sft',
  summary: "Conversations for OpenAI's supervised fine-tuning, with a weight per reply",
  carries: ['messages', 'tools'],
  start: options => source => taughtIn(source, options).map(each => toExample(each, options.lost)),
  loading: file => [
    `curl https://api.openai.com/v1/files -F purpose=fine-tune -F file=@${file} -H "Authorization: Bearer $KEY"`,
  ],
})

function toExample(conversation: Conversation, lost: LossReport): object {
  const { tools } = conversation.tree
  const messages = untilLastReply(conversation.messages)
  lost.add('texts of reasoning', messages.filter(each => 'reasoning_content' in each).length)
  return {
    messages: messages.map((message, index) => {
      const plain = withoutReasoning(message)
      if (plain.role !== 'assistant') return plain
      const turn = turnAt(conversation, index)
      return { ...plain, weight: turn && isTrainedTurn(turn) ? 1 : 0 }
    }),
    ...(tools.length > 0 && { tools, parallel_tool_calls: hasParallelCalls(messages) }),
  }
}

/** The conversations that contain a reply; counts what supervised formats cannot carry. */
function taughtIn({ group }: ExportGroup, options: FormatOptions): readonly Conversation[] {
  const all = conversationsOf(group, options)
  const taught = all.filter(
    ({ turns, messages }) => turns.length > 0 && untilLastReply(messages).length > 0,
  )
  const { lost } = options
  lost.add(
    'trajectories in which the policy said nothing, or nothing that is known as a message',
    all.length - taught.length,
  )
  lost.add(
    'contexts that were rewritten: the whole conversation is written',
    taught.filter(({ paths }) => paths > 1).length,
  )
  return taught
}

function hasParallelCalls(messages: readonly Message[]): boolean {
  return messages.some(each => each.role === 'assistant' && (each.tool_calls?.length ?? 0) > 1)
}

/** A message with the arguments of its calls as objects instead of JSON text. */
export function withObjectArguments(message: Message): object {
  if (message.role !== 'assistant' || !message.tool_calls) return message
  const calls = message.tool_calls.map(call => ({
    ...call,
    function: { name: call.function.name, arguments: argumentsOf(call.function.arguments) },
  }))
  return { ...message, tool_calls: calls }
}
