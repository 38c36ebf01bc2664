import { type Content, type Message, type ToolCall, textOf } from '@espalier/text'

/**
 * A conversation while it is read from dialects that tell one answer in several items: reasoning,
 * words and calls that follow each other are one message of the assistant.
 */
export interface Turns {
  /** A message of anybody else. */
  add(message: Message): void
  say(content: Content): void
  reason(text: string): void
  call(call: ToolCall): void
  end(): readonly Message[]
}

interface Open {
  words: string | undefined
  reasoning: string | undefined
  readonly calls: ToolCall[]
}

/** Begins a conversation. */
export function makeTurns(): Turns {
  const messages: Message[] = []
  let open: Open | undefined

  const opened = (): Open => (open ??= { words: undefined, reasoning: undefined, calls: [] })
  const close = (): void => {
    if (!open) return
    const { words, reasoning, calls } = open
    messages.push({
      role: 'assistant',
      content: words ?? null,
      ...(reasoning !== undefined && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls }),
    })
    open = undefined
  }

  return {
    add(message) {
      close()
      messages.push(message)
    },
    say(content) {
      // Words after calls begin the next answer: within one answer no policy here speaks after its calls.
      if (open && open.calls.length > 0) close()
      const turn = opened()
      turn.words = (turn.words ?? '') + textOf(content)
    },
    reason(text) {
      if (open && open.calls.length > 0) close()
      const turn = opened()
      turn.reasoning = (turn.reasoning ?? '') + text
    },
    call(call) {
      opened().calls.push(call)
    },
    end() {
      close()
      return messages
    },
  }
}
