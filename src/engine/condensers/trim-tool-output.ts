import type { Message } from '@espalier/text'
import type { CondenseCall, Condensed, Condenser, Condensing } from '../../base/core/condenser.ts'
import { leastTrimmed, trimToFit, trimTools } from './trim.ts'

/** How tool outputs are trimmed. */
export interface TrimToolOutputOptions {
  /** Code points that an older output keeps, half from its beginning and half from its end. @default 400 */
  readonly characters?: number
  /** Turns, counted from the last, whose outputs are only trimmed if nothing else helps. @default 1 */
  readonly keep?: number
}

/** Trims what tools said in older turns; what was said by anyone else stays as it is. */
export function trimToolOutput(options: TrimToolOutputOptions = {}): Condenser {
  const { characters = 400, keep = 1 } = options
  if (!(characters >= leastTrimmed)) {
    throw new RangeError(
      `trim-tool-output keeps ${characters} characters; it must keep at least ${leastTrimmed}.`,
    )
  }
  if (!(keep >= 0)) throw new RangeError(`trim-tool-output spares ${keep} turns; at least 0.`)
  const condensing: Condensing = {
    condense: async (messages, call) => trim(messages, call, { characters, keep }),
    fork: () => condensing,
  }
  return { name: 'trim-tool-output', condensesOpenings: false, open: () => condensing }
}

function trim(
  messages: readonly Message[],
  call: CondenseCall,
  { characters, keep }: Required<TrimToolOutputOptions>,
): Condensed {
  const spared = startOfLast(messages, keep)
  const older = (index: number): boolean => index < spared
  const first = trimTools(messages, characters, older)
  const shown = trimToFit(trimToFit(first, call, older), call)
  const outputs = shown.filter((each, index) => each !== messages[index]).length
  if (outputs === 0) return { kind: 'unchanged' }
  return {
    kind: 'rewritten',
    messages: shown,
    reason: `${outputs} tool ${outputs === 1 ? 'output' : 'outputs'} trimmed`,
    figures: { outputs },
  }
}

/** The number of the message with which the last `keep` turns begin. */
function startOfLast(messages: readonly Message[], keep: number): number {
  const starts = messages.flatMap(({ role }, index) => (role === 'assistant' ? [index] : []))
  return keep === 0 ? messages.length : (starts.at(-keep) ?? 0)
}
