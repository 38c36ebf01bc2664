import type { AssistantMessage } from '../core/message.ts'
import { textOf } from '../core/message.ts'
import type { Renderer } from '../core/renderer.ts'
import type { ChatCall, ChatRequest } from './contract.ts'
import type { Prompted } from './turn.ts'

/** Tells an answer piece by piece. */
export interface Deltas {
  /** Looks at the tokens of a turn as they come; nothing where nobody wants to be told. */
  readonly watch?: (ids: Int32Array) => void
  /** Tells what has not been told yet. */
  finish(message: AssistantMessage): void
}

/** What deltas are made from. */
export interface DeltaSource {
  /** The answer's number among those of its request. */
  readonly index: number
  readonly prompted: Prompted
  readonly renderer: Renderer
  readonly request: ChatRequest
}

/** Opens the telling of one answer. */
export function openDeltas({ onDelta }: ChatCall, { index: answer }: DeltaSource): Deltas {
  if (!onDelta) return { finish: () => {} }
  return {
    finish(message) {
      const { reasoning_content: reasoning = '' } = message
      const text = textOf(message.content)
      if (reasoning !== '') onDelta({ kind: 'reasoning', answer, text: reasoning })
      if (text !== '') onDelta({ kind: 'text', answer, text })
      message.tool_calls?.forEach(({ id, function: called }, index) => {
        onDelta({ kind: 'call', answer, index, id, ...called })
      })
    },
  }
}
