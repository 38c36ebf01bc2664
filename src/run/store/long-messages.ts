import type { Message, ToolCall } from '@espalier/text'
import type { CallRecord } from '../../base/core/tool.ts'
import { type Lifting, mayHold, type TextPath } from './long-texts.ts'

/**
 * Messages without their long texts. Nearly all are short, and where long texts stand in them is known,
 * so they are not searched: that took a fifth of what writing a tree does.
 */
export function liftMessages(
  messages: readonly Message[],
  lifting: Lifting,
  ...path: TextPath
): readonly Message[] {
  return liftWhere(messages, isLongMessage, lifting, path)
}

/** Calls of tools without their long texts, which are lifted out. */
export function liftCalls(
  calls: readonly CallRecord[],
  lifting: Lifting,
  ...path: TextPath
): readonly CallRecord[] {
  return liftWhere(calls, isLongCall, lifting, path)
}

function liftWhere<Item>(
  items: readonly Item[],
  isLong: (item: Item) => boolean,
  lifting: Lifting,
  path: TextPath,
): readonly Item[] {
  let copy: Item[] | undefined
  for (let index = 0; index < items.length; index++) {
    const item = items[index]!
    if (!isLong(item)) continue
    copy ??= [...items]
    copy[index] = lifting.lift(item, ...path, index)
  }
  return copy ?? items
}

/** Whether a long text may stand in a message. */
export function isLongMessage(message: Message): boolean {
  if (mayHold(message.content)) return true
  if (message.role !== 'assistant') return false
  const { reasoning_content: reasoning, tool_calls: calls } = message
  return mayHold(reasoning) || calls?.some(isLongToolCall) === true
}

/** Messages may come from users' environments: nothing in them is taken for granted. */
function isLongToolCall(call: Partial<ToolCall>): boolean {
  return mayHold(call.function?.arguments)
}

/** Whether a long text may stand in a call of a tool. */
export function isLongCall({ input, output }: CallRecord): boolean {
  if (mayHold(output)) return true
  if (typeof input !== 'object' || input === null) return mayHold(input)
  for (const name in input) if (mayHold((input as Record<string, unknown>)[name])) return true
  return false
}
