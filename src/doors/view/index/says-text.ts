import { textOf } from '@espalier/text'
import type { Trajectory } from '../../../base/core/trajectory.ts'

/** Whether a trajectory's messages, reasoning, calls or failure contain a text, ignoring case. */
export function saysText(
  { messages, outcome }: Pick<Trajectory, 'messages' | 'outcome'>,
  needle: string,
): boolean {
  const says = (text: string): boolean => text.toLowerCase().includes(needle)
  if (outcome.kind === 'failed' && says(outcome.message)) return true
  return messages.some(message => {
    if (says(textOf(message.content))) return true
    if (message.role !== 'assistant') return false
    const calls = message.tool_calls ?? []
    return (
      says(message.reasoning_content ?? '') ||
      calls.some(({ function: call }) => says(`${call.name} ${call.arguments}`))
    )
  })
}
