import type { CallAttempt, Reply } from '@espalier/text'

/** A call to put into a reply: a tool's name with its input, or a text that is no call. */
export type ScriptedCall =
  | { readonly tool: string; readonly input?: unknown; readonly id?: string }
  | { readonly malformed: string; readonly problem?: string; readonly id?: string }

/** A reply as a renderer would have parsed it: for tests, scripts and demonstrations. */
export function replyOf(text: string, ...calls: readonly ScriptedCall[]): Reply {
  const attempts = calls.map(toAttempt)
  const tool_calls = attempts.flatMap(attempt =>
    attempt.kind === 'malformed'
      ? []
      : {
          id: attempt.id,
          type: 'function' as const,
          function: { name: attempt.name, arguments: attempt.arguments },
        },
  )
  const raw = attempts.map(attempt => (attempt.kind === 'malformed' ? attempt.raw : ''))
  const content = [text, ...raw].filter(Boolean).join('\n')
  return {
    message: { role: 'assistant', content, ...(tool_calls.length > 0 && { tool_calls }) },
    calls: attempts,
  }
}

function toAttempt(call: ScriptedCall, index: number): CallAttempt {
  const id = call.id ?? `call_${index}`
  if ('malformed' in call) {
    const problem = call.problem ?? 'no name and arguments in it'
    return { kind: 'malformed', id, raw: call.malformed, problem }
  }
  return { kind: 'parsed', id, name: call.tool, arguments: JSON.stringify(call.input ?? {}) }
}
