import type { Renderer, TurnPiece } from '@espalier/text'
import { type AssistantMessage, textOf } from '@espalier/text'
import type { ChatAnswer, ChatCall, ChatDelta, ChatRequest } from './contract.ts'
import type { Prompted } from './turn.ts'

/** Sends an answer piece by piece. */
export interface Deltas {
  /** Takes the tokens of a turn as they come; undefined if nobody listens. */
  readonly watch: ((ids: Int32Array) => void) | undefined
  /** Sends what has not been sent yet. */
  finish(message: AssistantMessage): void
}

/** Sends nothing. */
const noDeltas: Deltas = { watch: undefined, finish: () => {} }

/** What deltas are made from. */
export interface DeltaSource {
  /** The answer's number among those of its request. */
  readonly index: number
  readonly prompted: Prompted
  readonly renderer: Renderer
  readonly request: ChatRequest
}

/** Begins to send one answer. */
export function makeDeltas({ onDelta }: ChatCall, source: DeltaSource): Deltas {
  if (!onDelta) return noDeltas
  const { index: answer, request, renderer, prompted } = source
  const { stop = [] } = request
  const tell = (kind: TurnPiece['kind']) => (text: string) => onDelta({ kind, answer, text })
  const texts = {
    reasoning: makeTelling(tell('reasoning'), []),
    text: makeTelling(tell('text'), stop),
  }
  const reader = renderer.openTurn?.(prompted.tools)
  let read = 0
  return {
    watch:
      reader &&
      (ids => {
        for (const { kind, text } of reader.push(ids.subarray(read))) texts[kind].add(text)
        read = ids.length
      }),
    finish(message) {
      texts.reasoning.finish(message.reasoning_content ?? '')
      texts.text.finish(textOf(message.content))
      for (const delta of callsOf(message, answer)) onDelta(delta)
    },
  }
}

/** Sends answers that were drawn before to somebody who asks for them again. */
export function tellAgain({ onDelta }: ChatCall, answers: readonly ChatAnswer[]): void {
  if (!onDelta) return
  answers.forEach(({ message }, answer) => {
    const { reasoning_content: reasoning = '', content } = message
    const text = textOf(content)
    if (reasoning !== '') onDelta({ kind: 'reasoning', answer, text: reasoning })
    if (text !== '') onDelta({ kind: 'text', answer, text })
    for (const delta of callsOf(message, answer)) onDelta(delta)
  })
}

function callsOf({ tool_calls: calls = [] }: AssistantMessage, answer: number): ChatDelta[] {
  return calls.map(({ id, function: called }, index) => ({
    kind: 'call',
    answer,
    index,
    id,
    ...called,
  }))
}

/**
 * Sends a text as it grows. White space at its ends and stop texts may turn out not to belong to the
 * message, so they are held back until the next tokens decide.
 */
function makeTelling(
  tell: (text: string) => void,
  stop: readonly string[],
): { add(text: string): void; finish(whole: string): void } {
  const held = stop.reduce((most, text) => Math.max(most, text.length), 0)
  let all = ''
  let sent = 0
  return {
    add(text) {
      all = (all + text).slice(all === '' ? leading(text) : 0)
      const until = endByStop(all, stop, sent) ?? all.trimEnd().length - held
      if (until <= sent) return
      tell(all.slice(sent, until))
      sent = until
    },
    finish(whole) {
      const rest = whole.slice(sent)
      if (rest !== '') tell(rest)
    },
  }
}

/** Where the first of the texts begins that end an answer, if one is in it. */
export function endByStop(text: string, stop: readonly string[], from = 0): number | undefined {
  const places = stop.filter(each => each !== '').map(each => text.indexOf(each, from))
  const found = places.filter(place => place >= 0)
  return found.length === 0 ? undefined : Math.min(...found)
}

function leading(text: string): number {
  return text.length - text.trimStart().length
}
