import { type GrowingText, openGrowingText } from '../../base/core/process/growing-text.ts'
import { knownSecrets, withoutSecretsInJson } from '../../base/core/process/secrets.ts'
import type { ChatAnswer, ChatDelta } from '../../engine/capture/contract.ts'

type OnDelta = (delta: ChatDelta) => void

/** Asks for an answer and passes its pieces on without secrets, also if pieces split one. */
export async function hidePieces(
  onDelta: OnDelta,
  respond: (onDelta: OnDelta) => Promise<readonly ChatAnswer[]>,
): Promise<readonly ChatAnswer[]> {
  if (knownSecrets().length === 0) return await respond(onDelta)
  const open = new Map<number, OpenText>()
  const answers = await respond(delta => passOn(delta, open, onDelta))
  for (const answer of open.keys()) finish(answer, open, onDelta)
  return answers
}

/** What an answer is saying: its words or its reasoning. */
interface OpenText {
  readonly kind: 'text' | 'reasoning'
  readonly growing: GrowingText
}

function passOn(delta: ChatDelta, open: Map<number, OpenText>, onDelta: OnDelta): void {
  const { kind, answer } = delta
  if (open.get(answer)?.kind !== kind) finish(answer, open, onDelta)
  if (kind === 'call') {
    // A call comes whole.
    onDelta({ ...delta, arguments: withoutSecretsInJson(delta.arguments) })
    return
  }
  const saying = open.get(answer) ?? { kind, growing: openGrowingText() }
  open.set(answer, saying)
  tell(onDelta, { kind, answer, text: saying.growing.add(delta.text) })
}

/** Sends what was held back of an answer's open text. */
function finish(answer: number, open: Map<number, OpenText>, onDelta: OnDelta): void {
  const saying = open.get(answer)
  if (!saying) return
  open.delete(answer)
  tell(onDelta, { kind: saying.kind, answer, text: saying.growing.end() })
}

function tell(onDelta: OnDelta, delta: Exclude<ChatDelta, { kind: 'call' }>): void {
  if (delta.text !== '') onDelta(delta)
}
