import type { Message, ToolMessage } from '../message.ts'

/**
 * A conversation in which every tool message answers a call: the calls that a policy got wrong are
 * only in the words of its turn, and some templates refuse an answer that nobody asked for.
 */
export function completeCalls(messages: readonly Message[]): readonly Message[] {
  return messages.map((message, index) => {
    if (message.role !== 'assistant') return message
    const known = new Set((message.tool_calls ?? []).map(({ id }) => id))
    const missing = answersTo(messages, index).filter(answer => !known.has(answer.tool_call_id))
    if (missing.length === 0) return message
    const added = missing.map(({ tool_call_id: id, name = 'unknown' }) => ({
      id,
      type: 'function' as const,
      function: { name, arguments: '{}' },
    }))
    return { ...message, tool_calls: [...(message.tool_calls ?? []), ...added] }
  })
}

function answersTo(messages: readonly Message[], index: number): readonly ToolMessage[] {
  const answers: ToolMessage[] = []
  for (let next = index + 1; messages[next]?.role === 'tool'; next++) {
    answers.push(messages[next] as ToolMessage)
  }
  return answers
}
